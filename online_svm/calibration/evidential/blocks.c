/* Bounds, beliefs and contours of a proportion after some hits and misses; see `blocks.py`. */
#include "compiled/elementary.h"
#include "compiled/kernel.h"
#include "compiled/special.h"

/* Return log(share^hits (1 - share)^misses), with 0^0 = 1. */
static double log_likelihood(double hits, double misses, double share) {
    double value = hits > 0.0 ? hits * log_of(share) : 0.0;
    return value + (misses > 0.0 ? misses * log1p_of(-share) : 0.0);
}

/* Return the lower bound of an interval. The beta distribution is undefined for zero hits; the bound is then 0. */
static double lower_bound(double hits, double misses, double tail) {
    return hits > 0.0 ? beta_quantile(hits, misses + 1.0, tail) : 0.0;
}

/* Return the maximum likelihood proportion x minus the integral of the contour below it.

The integral is B(a, b) I_x(a, b) divided by the likelihood at x. The powers x^a (1 - x)^b / (x^(a - 1) (1 - x)^(b - 1))
reduce to x (1 - x), so nothing underflows. */
static double belief(double hits, double misses) {
    double total = hits + misses;
    double share = total > 0.0 ? hits / total : 0.5;
    double a = hits + 1.0, b = misses + 1.0;
    double below = share < 1.0 ? (1.0 - share) * beta_fraction(a, b, share) / a : 1.0 / a;
    double found = share * (1.0 - below);
    return 0.0 > found ? 0.0 : found;
}

static inline double at_most_one(double value) { return 1.0 < value ? 1.0 : value; }

static double relative_likelihood(double hits, double misses, double share) {
    double n = hits + misses;
    double best = log_likelihood(hits, misses, hits / (1.0 > n ? 1.0 : n));
    return at_most_one(exp_of(log_likelihood(hits, misses, share) - best));
}

/* Return the binomial probability of the hits. */
static double probability(double hits, double misses, double share) {
    double log_ways = -log_beta(hits + 1.0, misses + 1.0) - log1p_of(hits + misses);
    return at_most_one(exp_of(log_ways + log_likelihood(hits, misses, share)));
}

typedef double (*OfThree)(double hits, double misses, double share);

static void write_each(OfThree function, const Slot *a) {
    for (int64_t i = 0; i < a[3].vector.n; i++)
        a[3].vector.at[i] = function(a[0].vector.at[i], a[1].vector.at[i], a[2].vector.at[i]);
}

static void call_lower_bound(const Slot *a, Slot *r) {
    (void)r;
    write_each(lower_bound, a);
}

static void call_relative_likelihood(const Slot *a, Slot *r) {
    (void)r;
    write_each(relative_likelihood, a);
}

static void call_probability(const Slot *a, Slot *r) {
    (void)r;
    write_each(probability, a);
}

static void call_belief(const Slot *a, Slot *r) {
    (void)r;
    for (int64_t i = 0; i < a[2].vector.n; i++) a[2].vector.at[i] = belief(a[0].vector.at[i], a[1].vector.at[i]);
}

static void call_log_likelihood(const Slot *a, Slot *r) { r->real = log_likelihood(a[0].real, a[1].real, a[2].real); }

const Kernel calibration_evidential_blocks_kernels[] = {
    {"calibration.evidential.blocks._write_lower_bound", "hits: f64[n] misses: f64[n] tail: f64[n] found: =f64[n]",
     call_lower_bound, false},
    {"calibration.evidential.blocks._write_belief", "hits: f64[n] misses: f64[n] found: =f64[n]", call_belief, false},
    {"calibration.evidential.blocks._write_relative_likelihood",
     "hits: f64[n] misses: f64[n] shares: f64[n] found: =f64[n]", call_relative_likelihood, false},
    {"calibration.evidential.blocks._write_probability", "hits: f64[n] misses: f64[n] shares: f64[n] found: =f64[n]",
     call_probability, false},
    {"calibration.evidential.blocks.log_likelihood", "hits: float misses: float share: float -> float",
     call_log_likelihood, false},
    {0},
};
