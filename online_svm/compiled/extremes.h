/* Minima and maxima. Of two equal numbers, or if one is NaN, the first argument is returned, as in Python. */
#ifndef ONLINE_SVM_EXTREMES_H
#define ONLINE_SVM_EXTREMES_H

#include <math.h>
#include <stdint.h>

static inline double lesser(double a, double b) { return b < a ? b : a; }
static inline double greater(double a, double b) { return b > a ? b : a; }

/* x clipped to a range. */
static inline double bounded_by(double x, double lower, double upper) { return lesser(greater(x, lower), upper); }

/* The index of the first maximum of n values, n >= 1. */
static inline int64_t argmax(const double *values, int64_t n) {
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++)
        if (values[k] > values[best]) best = k;
    return best;
}

/* The largest magnitude of n values; NaN if any value is NaN. */
static inline double largest_magnitude(const double *values, int64_t n) {
    double largest = 0.0;
    for (int64_t k = 0; k < n; k++) {
        if (isnan(values[k])) return NAN;
        largest = fabs(values[k]) > largest ? fabs(values[k]) : largest;
    }
    return largest;
}

static inline int64_t lesser_int(int64_t a, int64_t b) { return b < a ? b : a; }
static inline int64_t greater_int(int64_t a, int64_t b) { return b > a ? b : a; }

#endif
