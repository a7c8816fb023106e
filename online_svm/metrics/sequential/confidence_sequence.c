/* Confidence sequences: boundaries, groups of starts, and sums of deviations.

The gamma functions of the gamma-exponential mixture (Howard et al. 2021, proposition 9) cancel. With f(a, x) = x^-a e^x gamma(a, x) and the lower incomplete gamma function, it is
f(V + rho, S + V + rho) / f(rho, rho). */
#include "compiled/elementary.h"
#include "compiled/extremes.h"
#include "compiled/kernel.h"
#include "compiled/special.h"
#include <math.h>
#include <stdint.h>

enum {
    MOST_STEPS = 100,     /* of Newton's method; usually about seven are needed */
    MOST_DOUBLINGS = 2100 /* of a start below the root; usually one or two, and 2100 pass every finite float */
};
#define EXACT 1e-13 /* relative to the boundary; a smaller step is the last */

#define EXPECTED_MEMORY 32.0 /* memory, in rows, of the mean about which squares are taken */

typedef struct {
    double log, slope;
} Mixture;

/* Return the logarithm of a mixture, given the logarithm of its denominator. */
static double log_ratio(double s, double v, double rho, double log_denominator) {
    if (!(v >= 0.0 && rho > 0.0)) return NAN;
    return s + v + rho > 0.0 ? log_lower_gamma(v + rho, s) - log_denominator : -INFINITY;
}

static double log_denominator_of(double rho) { return rho > 0.0 ? log_lower_gamma(rho, 0.0) : NAN; }

static double log_mixture(double s, double v, double rho) { return log_ratio(s, v, rho, log_denominator_of(rho)); }

/* Return the logarithm of the mean of several mixtures, and its derivative by s. */
static Mixture log_mean_mixture(double s, double v, Vector rhos) {
    double top = -INFINITY, sum = 0.0, slopes = 0.0;
    for (int64_t i = 0; i < rhos.n; i++) top = greater(top, log_mixture(s, v, rhos.at[i]));
    if (top == -INFINITY) return (Mixture){top, 0.0};
    for (int64_t i = 0; i < rhos.n; i++) {
        double rho = rhos.at[i], log_denominator = log_denominator_of(rho);
        double found = log_ratio(s, v, rho, log_denominator), weight = exp_of(found - top);
        sum += weight;
        /* f(x) = x^-a e^x gamma(a, x) has the derivative f'(x) = (1 - a/x) f(x) + 1/x. */
        slopes += weight * (s + exp_of(-found - log_denominator)) / (s + (v + rho));
    }
    return (Mixture){top + log_of(sum / (double)rhos.n), slopes / sum};
}

/* Return the sum at which the mean of several mixtures has the logarithm `wanted`, > 0.

The logarithm is convex in the sum, so Newton's method descends to the root from any start above it. */
static double boundary_of_mean(double v, double wanted, Vector rhos) {
    double s = 1.0 + sqrt(v + rhos.at[0]) + wanted;
    Mixture found = log_mean_mixture(s, v, rhos);
    for (int k = 0; k < MOST_DOUBLINGS && found.log < wanted; k++) {
        s *= 2.0;
        found = log_mean_mixture(s, v, rhos);
    }
    for (int k = 0; k < MOST_STEPS; k++) {
        double step = (found.log - wanted) / found.slope;
        s -= step;
        if (!(step > EXACT * s)) break;
        found = log_mean_mixture(s, v, rhos);
    }
    return s;
}

static void call_log_mixture(const Slot *a, Slot *r) { r->real = log_mixture(a[0].real, a[1].real, a[2].real); }

static void call_log_mean_mixture(const Slot *a, Slot *r) {
    Mixture found = log_mean_mixture(a[0].real, a[1].real, a[2].vector);
    r[0].real = found.log;
    r[1].real = found.slope;
}

static void call_boundary_of_mean(const Slot *a, Slot *r) {
    r->real = boundary_of_mean(a[0].real, a[1].real, a[2].vector);
}

enum { FIRST_GROUP = 128 };

/* Return the group of a start: 0; 1 ... 127; 128 ... 255; 256 ... 511; and so on. */
static int64_t group_of_start(int64_t number) {
    int64_t group = lesser_int(number, 1);
    for (int64_t rest = number / FIRST_GROUP; rest > 0; rest /= 2) group++;
    return group;
}

static void call_group_of(const Slot *a, Slot *r) { r->integer = group_of_start(a->integer); }

enum { SPACING = 64, DOUBLINGS = 24, GROUPS = 48 };
enum { COUNT, SUM, SQUARES, ANNOUNCED, N_SUMS };

/* The sums of each series, now and at each start, shape (2 * DOUBLINGS, n_series, N_SUMS). */
typedef struct {
    int64_t *rows;
    Vector expected; /* exponentially weighted mean of the earlier rows */
    double *sums;
    int64_t *starts; /* number of each start, and examples learned before it */
    double *before;
} DeviationSums;

/* ---- Search for the strongest deviation ---- */

/* Write an upper bound of each interval's distance from 0 (-1 without rows); return the largest bound and the start
with the largest z (-1 before the first row).

No mixture exceeds exp(s^2 / (2 v)). So a boundary is at least sqrt(2 v ln(1 / level)), which is cheap to compute. */
static void call_outlook(const Slot *a, Slot *r) {
    const double *sums = a[1].matrix.at + N_SUMS * a[0].integer, *logs = a[4].vector.at;
    Cube before = a[2].cube;
    double *distances = a[5].vector.at, most = -1.0, best = -1.0;
    int64_t chosen = -1;
    for (int64_t i = 0; i < before.planes; i++) {
        const double *then = before.at + N_SUMS * (i * before.rows + a[0].integer);
        double count = sums[COUNT] - then[COUNT];
        distances[i] = -1.0;
        if (count < 1.0) continue;
        double total = fabs(sums[SUM] - then[SUM]), squares = greater(0.0, sums[SQUARES] - then[SQUARES]);
        int64_t group = lesser_int(group_of_start(a[3].int_matrix.at[2 * i]), GROUPS - 1);
        double least = sqrt(2.0 * squares * logs[group]);
        distances[i] = (total - least) / count;
        most = greater(most, distances[i]);
        double z = total / sqrt(squares + 1.0);
        if (z > best) {
            best = z;
            chosen = i;
        }
    }
    r[0].real = most;
    r[1].integer = chosen;
}

/* ---- Adding rows ---- */

/* At a start row keep the sums so far. For each j, the last two multiples of SPACING 2^j rows are kept. */
static void keep_start(const DeviationSums *held, int64_t n) {
    int64_t number = *held->rows / SPACING, size = N_SUMS * held->expected.n;
    for (int j = 0; j < DOUBLINGS && number % (INT64_C(1) << j) == 0; j++) {
        int64_t at = (int64_t)2 * j + (number >> j) % 2;
        held->starts[2 * at] = number;
        held->starts[2 * at + 1] = n;
        for (int64_t k = 0; k < size; k++) held->before[at * size + k] = held->sums[k];
    }
}

/* Add y - p of one series, multiplied by `size`. Its sign determines y and p, and so its range [-p, 1 - p] times size.
The centre of its square must lie in that range. */
static void add_value(double value, double size, double *expected, double *sums) {
    double lowest = value < 0.0 ? value : value - size;
    double about = value != 0.0 ? lesser(greater(*expected, lowest), lowest + size) : 0.0;
    sums[COUNT] += size;
    sums[SUM] += value;
    sums[SQUARES] += (value - about) * (value - about);
    *expected += (value - *expected) / EXPECTED_MEMORY;
}

static void call_add(const Slot *a, Slot *r) {
    (void)r;
    IntMatrix cells = a[0].int_matrix;
    const double *happened = a[1].matrix.at, *announced = a[2].matrix.at;
    Vector sizes = a[4].vector;
    const int64_t *n = a[3].int_vector.at;
    DeviationSums held = {a[5].int_vector.at, a[6].vector, a[7].matrix.at, a[8].int_matrix.at, a[9].cube.at};
    for (int64_t i = 0; i < cells.rows; i++) {
        if (*held.rows > 0 && *held.rows % SPACING == 0) keep_start(&held, n[i]);
        ++*held.rows;
        double size = sizes.n > 0 ? sizes.at[i] : 1.0;
        for (int64_t at = i * cells.columns; at < (i + 1) * cells.columns; at++) {
            int64_t k = cells.at[at];
            if (k < 0 || k >= held.expected.n) continue;
            add_value(size * (happened[at] - announced[at]), size, held.expected.at + k, held.sums + N_SUMS * k);
            held.sums[N_SUMS * k + ANNOUNCED] += size * announced[at];
        }
    }
}

/* Write squares about an exponentially weighted mean of earlier values. */
static void call_squares(const Slot *a, Slot *r) {
    (void)r;
    Vector values = a[0].vector;
    double mean = 0.0;
    for (int64_t i = 0; i < values.n; i++) {
        double apart = values.at[i] - mean;
        a[1].vector.at[i] = apart * apart;
        mean += apart / EXPECTED_MEMORY;
    }
}

const Kernel metrics_sequential_confidence_sequence_kernels[] = {
    {"metrics.sequential.confidence_sequence.log_mixture", "s: float v: float rho: float -> float", call_log_mixture,
     false},
    {"metrics.sequential.confidence_sequence.log_mean_mixture", "s: float v: float rhos: f64[n] -> float float",
     call_log_mean_mixture, false},
    {"metrics.sequential.confidence_sequence.boundary_of_mean", "v: float wanted: float rhos: f64[n+1] -> float",
     call_boundary_of_mean, false},
    {"metrics.sequential.confidence_sequence.group_of", "number: int -> int", call_group_of, false},
    {"metrics.sequential.confidence_sequence._outlook",
     "series: int<k sums: f64[k,4] before: f64[s,k,4] starts: i64[s,2] logs: f64[48] distances: =f64[s] -> float int",
     call_outlook, false},
    {"metrics.sequential.confidence_sequence._add",
     "cells: i64[m,c] happened: f64[m,c] announced: f64[m,c] n: i64[m] sizes: f64[z]"
     " held: (rows: =i64[1] expected: =f64[k] sums: =f64[k,4] starts: =i64[48,2] before: =f64[48,k,4])",
     call_add, false},
    {"metrics.sequential.confidence_sequence.squares_about_mean", "values: f64[n] squares: =f64[n]", call_squares,
     false},
    {0},
};
