/* The Clopper-Pearson interval of a frequency, with a cache of computed intervals. */
#ifndef ONLINE_SVM_BINOMIAL_INTERVAL_H
#define ONLINE_SVM_BINOMIAL_INTERVAL_H

#include "compiled/kernel.h"

/* `BinomialIntervals` of Python. */
typedef struct {
    double tail;
    IntVector keys;
    Matrix bounds;
} BinomialIntervals;

#define BINOMIAL_INTERVALS "intervals: (tail: float keys: =i64[32768] bounds: =f64[32768,2])"
enum { BINOMIAL_INTERVALS_SLOTS = 3 };

/* Read the intervals from the arguments declared by BINOMIAL_INTERVALS. */
static inline BinomialIntervals binomial_intervals_of(const Slot *a) {
    return (BinomialIntervals){a[0].real, a[1].int_vector, a[2].matrix};
}

typedef struct {
    double low, high;
} Interval;

/* Return the interval of the frequency given `hits` among `total`, both below 2^31. */
Interval binomial_interval(const BinomialIntervals *intervals, int64_t hits, int64_t total);

#endif
