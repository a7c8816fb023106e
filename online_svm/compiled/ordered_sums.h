/* Sums in a fixed order that still lets a processor take many terms at a time.

Term j is added to lane j mod LANES; the lanes are then added by halves. Terms of weight zero change nothing, so they
may be left out. */
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

/* The same for values of float32, which are widened first. */
static inline void add_floats_to_lanes(const float *values, const double *coef, int64_t n, double lanes[LANES]) {
    int64_t first = 0;
    for (; first + LANES <= n; first += LANES)
        for (int k = 0; k < LANES; k++) lanes[k] = multiply_add(coef[first + k], (double)values[first + k], lanes[k]);
    for (int64_t j = first; j < n; j++) lanes[j - first] = multiply_add(coef[j], (double)values[j], lanes[j - first]);
}

/* The sum over the lanes, added up by halves, in place. */
static inline double sum_of_lanes(double lanes[LANES]) {
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++) lanes[k] += lanes[k + half];
    return lanes[0];
}

/* The same for each column of `lanes`, shape (LANES, m): into row 0. */
static inline void sum_rows_of_lanes(double *lanes, int64_t m) {
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int64_t i = 0; i < half * m; i++) lanes[i] += lanes[half * m + i];
}

/* The sum of weights_j values_j. */
static inline double dot(const double *values, const double *weights, int64_t n) {
    double lanes[LANES] = {0.0};
    add_to_lanes(values, weights, n, lanes);
    return sum_of_lanes(lanes);
}

/* The sum of the values. */
static inline double total(const double *values, int64_t n) {
    double lanes[LANES] = {0.0};
    int64_t first = 0;
    for (; first + LANES <= n; first += LANES)
        for (int k = 0; k < LANES; k++) lanes[k] += values[first + k];
    for (int64_t j = first; j < n; j++) lanes[j - first] += values[j];
    return sum_of_lanes(lanes);
}

#endif
