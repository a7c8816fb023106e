/* Ranks of each feature's values and gaps among earlier ones, and bets that they are uniform; see `feature_monitor.py`. */
#include "compiled/extremes.h"
#include "compiled/kernel.h"
#include "stream/split.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 64, FIRST = 200, BETS = 8, WIDER = 6 };
enum { GAP, VALUE, QUANTITIES };            /* two ranked quantities of a feature */
enum { ROWS, OPEN, OPENED, SINCE, COUNTS }; /* counts of a quantity */

#define MOST 1e200
#define RIGHT_AGAIN 200.0
#define BEGUN 1e-3   /* part of the limit below which a change has not begun */
#define MEMORY 20.0  /* rows, of the mean rank */
#define RELEARN 2000 /* rows after which what is new has become usual */

/* State of d features: `first` (d, FIRST) values and `edges` (d, CELLS - 1); of 2 d quantities `trees` (2 CELLS),
`counts`, `sums` (BETS), `closing`, and mean rank, usual and recent share. */
typedef struct {
    double *first, *edges;
    int64_t *trees, *counts;
    double *sums, *closing, *means;
} Features;

static double uniform(uint64_t seed, int64_t row, int64_t stream) {
    uint64_t key = mix(seed + GOLDEN_GAMMA * (uint64_t)(stream + 1));
    return uniform_of(mix(key ^ ((uint64_t)row + 1) * GOLDEN_GAMMA));
}

static int compared(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Count a cell so many times. */
static void count(int64_t *tree, int64_t cell, int64_t times) {
    for (int64_t node = CELLS + cell; node > 0; node /= 2) tree[node] += times;
}

/* Count a cell; return its rank from 0 to 1 among all counted so far, itself included, ties by u. */
static double ranked(int64_t *tree, int64_t cell, double u) {
    int64_t node = CELLS + cell, below = 0, equal = ++tree[node];
    while (node > 1) {
        below += tree[node ^ 1] * (node & 1);
        node /= 2;
        tree[node]++;
    }
    return ((double)below + u * (double)equal) / (double)tree[1];
}

/* Fill the factors of the bets on a rank: up and down gently, strongly and at one end; wider; narrower. */
static void fill(double u, double *factors) {
    double z = 2.0 * u - 1.0, spread = 2.0 * fabs(z) - 1.0, down = 1.0 - u;
    factors[0] = 1.0 + 0.35 * z;
    factors[1] = 1.0 - 0.35 * z;
    factors[2] = 1.0 + 0.9 * z;
    factors[3] = 1.0 - 0.9 * z;
    factors[4] = 4.0 * u * u * u;
    factors[5] = 4.0 * down * down * down;
    factors[WIDER] = 1.0 + 0.6 * spread;
    factors[WIDER + 1] = 1.0 - 0.6 * spread;
}

/* Bet on the rank of quantity q; return whether a notice opened or closed. */
static bool bet(const Features *held, int64_t q, double u, double start, double limit, int64_t n) {
    int64_t *counts = held->counts + COUNTS * q;
    double factors[BETS], *sums = held->sums + BETS * q, sum = 0.0;
    fill(u, factors);
    held->means[q] += (u - held->means[q]) / MEMORY;
    if (counts[OPEN] >= 0) {
        held->closing[q] = greater(held->closing[q], 1.0) / factors[counts[OPEN]];
        if (held->closing[q] < RIGHT_AGAIN) return false;
        counts[OPEN] = -1;
        return true;
    }
    for (int64_t k = 0; k < BETS; k++) sums[k] = lesser(factors[k] * (sums[k] + start), MOST);
    for (int64_t k = 0; k < BETS; k += 4) sum += (sums[k] + sums[k + 1]) + (sums[k + 2] + sums[k + 3]);
    if (sum < BEGUN * limit) counts[SINCE] = n;
    if (sum < limit) return false;
    int64_t best = argmax(sums, BETS);
    counts[OPEN] = best < WIDER ? best % 2 : best;
    counts[OPENED] = counts[ROWS];
    held->closing[q] = 1.0;
    memset(sums, 0, BETS * sizeof *sums);
    return true;
}

/* Begin quantity q anew: what comes is usual. */
static void forget(const Features *held, int64_t q) {
    memset(held->trees + (int64_t)2 * CELLS * q, 0, sizeof *held->trees * 2 * CELLS);
    memset(held->sums + BETS * q, 0, BETS * sizeof *held->sums);
    held->counts[COUNTS * q + ROWS] = 0;
    held->counts[COUNTS * q + OPEN] = -1;
}

/* Rank value x of a feature, or that it is a gap, and bet on the rank. */
static bool take(const Features *held, int64_t f, int64_t q, double x, uint64_t seed, int64_t row, double start,
                 double limit, int64_t n) {
    int64_t *counts = held->counts + COUNTS * q, rows = counts[ROWS]++;
    double *first = held->first + FIRST * f, *edges = held->edges + (CELLS - 1) * f;
    bool is_value = q % QUANTITIES == VALUE;
    if (rows < FIRST) {
        if (rows == 0) {
            counts[SINCE] = n;
            held->means[q] = 0.5;
        }
        if (is_value) first[rows] = x;
        if (is_value && rows == FIRST - 1) {
            qsort(first, FIRST, sizeof *first, compared);
            for (int64_t c = 0; c < CELLS - 1; c++) edges[c] = first[(c + 1) * FIRST / CELLS];
        }
        if (is_value) return false;
    }
    int64_t cell = x > 0.0 ? 1 : 0, *tree = held->trees + (int64_t)2 * CELLS * q;
    if (is_value) {
        /* Number of edges up to x. All are compared, in vectors: steps of a search would wait for each other. */
        cell = 0;
        for (int64_t c = 0; c < CELLS - 1; c++) cell += edges[c] <= x;
    }
    /* A quantity with one cell so far says nothing. Whether to bet may not depend on this row. */
    bool has_gaps = is_value || (tree[CELLS] > 0 && tree[CELLS + 1] > 0);
    if (!has_gaps) {
        bool is_empty = tree[1] == 0; /* rows before the first gap are counted with it: many features have none */
        if (is_empty && cell > 0) count(tree, 0, rows);
        if (!is_empty || cell > 0) count(tree, cell, 1);
        return false;
    }
    double u = ranked(tree, cell, uniform(seed, row, q));
    if (rows < FIRST) return false;
    bool has_changed = bet(held, q, u, start, limit, n);
    if (counts[OPEN] >= 0 && counts[ROWS] - counts[OPENED] >= RELEARN) {
        forget(held, q);
        return true;
    }
    return has_changed;
}

static void call_watch(const Slot *a, Slot *r) {
    Matrix X = a[0].matrix;
    const int64_t *n = a[1].int_vector.at;
    int64_t i = a[2].integer, *rows = a[5].int_vector.at;
    uint64_t seed = (uint64_t)a[3].integer;
    double limit = a[4].real, start = 1.0 / (double)(greater_int(X.columns, 1) * BETS * QUANTITIES);
    Features held = {a[6].matrix.at,  a[7].matrix.at,  a[8].int_matrix.at, a[9].int_matrix.at,
                     a[10].matrix.at, a[11].vector.at, a[12].vector.at};
    bool has_changed = false;
    for (; i < X.rows && !has_changed; i++) {
        int64_t row = (*rows)++;
        for (int64_t f = 0; f < X.columns; f++) {
            double x = X.at[i * X.columns + f];
            int64_t q = QUANTITIES * f;
            bool is_gap = !isfinite(x);
            has_changed |= take(&held, f, q + GAP, is_gap, seed, row, start, limit, n[i]);
            if (!is_gap) has_changed |= take(&held, f, q + VALUE, x, seed, row, start, limit, n[i]);
        }
    }
    r[0].integer = i;
    r[1].integer = has_changed;
}

const Kernel metrics_sequential_feature_monitor_kernels[] = {
    {"metrics.sequential.feature_monitor.watch",
     "X: f64[m,d] n: i64[m] begin: int<=m seed: uint limit: float"
     " held: (rows: =i64[1] first: =f64[d,200] edges: =f64[d,63] trees: =i64[2d,128] counts: =i64[2d,4]"
     " sums: =f64[2d,8] closing: =f64[2d] means: =f64[2d])"
     " -> int bool",
     call_watch, true},
    {0},
};
