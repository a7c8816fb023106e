/* The bounds for k hits among n are quantiles of beta distributions (Clopper & Pearson 1934). At level 1 - a the lower
bound solves I_x(k, n - k + 1) = a / 2 and the upper bound I_x(k + 1, n - k) = 1 - a / 2, where I is the regularised
incomplete beta function. */
#include "compiled/kernel.h"
#include "compiled/special.h"

enum { SLOTS = 1 << 15 };

/* `BinomialIntervals` of Python. */
typedef struct {
    double tail;
    IntVector keys;
    Matrix bounds;
} BinomialIntervals;

typedef struct {
    double low, high;
} Interval;

static Interval computed(double tail, int64_t hits, int64_t total) {
    Interval found = {0.0, 1.0};
    if (hits < 0 || hits > total) return found;
    double k = (double)hits, misses = (double)(total - hits);
    if (hits > 0) found.low = beta_quantile(k, misses + 1.0, tail);
    /* One minus the lower bound for the misses: I_x(a, b) = 1 - I_(1-x)(b, a). */
    if (hits < total) found.high = 1.0 - beta_quantile(misses, k + 1.0, tail);
    return found;
}

/* Return the interval of the frequency given `hits` among `total`, both below 2^31. */
static Interval binomial_interval(const BinomialIntervals *intervals, int64_t hits, int64_t total) {
    uint64_t k = (uint64_t)hits, n = (uint64_t)total;
    int64_t key = (int64_t)(n << 32 | k);
    uint64_t slot = (n * 1000003 + k) % SLOTS;
    double *bounds = intervals->bounds.at + 2 * slot;
    if (intervals->keys.at[slot] != key) {
        Interval found = computed(intervals->tail, hits, total);
        intervals->keys.at[slot] = key;
        bounds[0] = found.low;
        bounds[1] = found.high;
    }
    return (Interval){bounds[0], bounds[1]};
}

static void call_interval(const Slot *a, Slot *r) {
    BinomialIntervals intervals = {a[0].real, a[1].int_vector, a[2].matrix};
    Interval found = binomial_interval(&intervals, a[3].integer, a[4].integer);
    r[0].real = found.low;
    r[1].real = found.high;
}

const Kernel metrics_binomial_interval_kernels[] = {
    {"metrics.binomial_interval.interval",
     "intervals: (tail: float keys: =i64[32768] bounds: =f64[32768,2]) hits: int total: int -> float float",
     call_interval, false},
    {0},
};
