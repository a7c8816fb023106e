/* Sums in a fixed order that still allows vector instructions.

Term j is added to lane j mod LANES; the lanes are then added pairwise. Terms of weight zero change nothing and may be
omitted. */
#ifndef ONLINE_SVM_ORDERED_SUMS_H
#define ONLINE_SVM_ORDERED_SUMS_H

#include "compiled/floats.h"

enum { LANES = 64 };

/* Add coef_j values_j to lane j mod LANES, for all j. */
static inline void add_to_lanes(const double *values, const double *coef, int64_t n, double lanes[LANES]) {
    int64_t first = 0;
    for (; first + LANES <= n; first += LANES)
        for (int k = 0; k < LANES; k++) lanes[k] = multiply_add(coef[first + k], values[first + k], lanes[k]);
    for (int64_t j = first; j < n; j++) lanes[j - first] = multiply_add(coef[j], values[j], lanes[j - first]);
}

/* The same for float32 values, converted to double. */
static inline void add_floats_to_lanes(const float *values, const double *coef, int64_t n, double lanes[LANES]) {
    int64_t first = 0;
    for (; first + LANES <= n; first += LANES)
        for (int k = 0; k < LANES; k++) lanes[k] = multiply_add(coef[first + k], (double)values[first + k], lanes[k]);
    for (int64_t j = first; j < n; j++) lanes[j - first] = multiply_add(coef[j], (double)values[j], lanes[j - first]);
}

/* The sum over the lanes, which are overwritten: the upper half is added to the lower until one lane is left. */
static inline double sum_of_lanes(double lanes[LANES]) {
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++) lanes[k] += lanes[k + half];
    return lanes[0];
}

/* The same for each column of `lanes`, shape (LANES, m); the sums are written to row 0. */
static inline void sum_rows_of_lanes(double *lanes, int64_t m) {
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int64_t i = 0; i < half * m; i++) lanes[i] += lanes[half * m + i];
}

/* sum_j weights_j values_j */
static inline double dot(const double *values, const double *weights, int64_t n) {
    double lanes[LANES] = {0.0};
    add_to_lanes(values, weights, n, lanes);
    return sum_of_lanes(lanes);
}

/* sum_j values_j */
static inline double total(const double *values, int64_t n) {
    double lanes[LANES] = {0.0};
    int64_t first = 0;
    for (; first + LANES <= n; first += LANES)
        for (int k = 0; k < LANES; k++) lanes[k] += values[first + k];
    for (int64_t j = first; j < n; j++) lanes[j - first] += values[j];
    return sum_of_lanes(lanes);
}

#endif
