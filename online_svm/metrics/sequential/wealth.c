/* Bets on parts of the rows: likelihood ratios against a tolerance, and bets on a mean; see `wealth.py`. */
#include "compiled/extremes.h"
#include "compiled/kernel.h"
#include <math.h>
#include <stddef.h>

enum { LANES = 4, BETS = 12, PART_BETS = 8, FIRST_GROUP_BITS = 11, FIRST_GROUP = 1 << FIRST_GROUP_BITS };

/* The bets, as in `wealth.py`. Shifts come in pairs, up and down: the odds of the edge times or divided by the size. */
static const double SHIFTS[PART_BETS / 2] = {1.2, 1.5, 2.5, 6.0};
static const double NOISES[] = {0.05, 0.12, 0.35};
enum { FIRST_NOISE = PART_BETS, OUTWARD = BETS - 1 };

/* Shares of the bets, in proportion to k^-.4 with k = ln(size)^2, (2.5 noise)^2, or 2 (1.5 - 1)^2: of all bets, and of
the shifts alone. */
static const double ALL_SHARES[BETS] = {0.152127, 0.152127, 0.080263, 0.080263, 0.041807, 0.041807,
                                        0.024449, 0.024449, 0.205755, 0.102136, 0.043378, 0.051439};
static const double PART_SHARES[PART_BETS] = {0.254695, 0.254695, 0.134378, 0.134378,
                                              0.069995, 0.069995, 0.040932, 0.040932};

/* Bets on a height: its odds are multiplied or divided by these. At a mean of 1/2 they stake .12, .3, .6 and .95. */
static const double HEIGHT_SHIFTS[PART_BETS / 2] = {1.27, 1.86, 4.0, 39.0};
static const double EVEN_SHARES[PART_BETS] = {0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125};

/* Stakes are capped here: the wealth remains a supermartingale and cannot overflow. */
#define MOST 1e200

#define MOST_CERTAIN 1e-4 /* probabilities are at least this, and at most 1 less this */
#define LEAST_EDGE 1e-6   /* the same of the edges of the tolerance */
#define LEAST_TOLERANCE 0.002
#define ODDS_RATIO 1.5 /* largest ratio of the odds of an edge to those of the probability */
#define RIGHT_AGAIN 200.0

enum { TESTS, RESTS, FOUND, SINCE, OPEN, OPENED, COUNTS };
enum { ALARM = 1, NOTICE = 2 };

/* `Held` of Python. */
typedef struct {
    const int64_t *partition; /* of each part */
    IntVector ages;
    double *waiting;
    const double *limits, *notice_limits;
    IntMatrix counts;
    double *stakes, *sums, *closing, *wealth;
} Held;

/* The factors of all bets on one row of a part, and the shares of the bets. */
typedef struct {
    double at[BETS];
    const double *shares;
    int64_t n;
} Factors;

/* Return the share of the stake on bets that start with row t = 1, 2, ...

Half of the stake is spread evenly over the first group. Group g = 1, 2, ... after it gets 1 / ((g + 1) (g + 2)) and is
as long as all earlier groups together. */
static double share_of_start(int64_t t) {
    if (t < FIRST_GROUP) return 0.5 / (FIRST_GROUP - 1);
    uint64_t bits = 63 - (uint64_t)__builtin_clzll((uint64_t)t), group = bits - FIRST_GROUP_BITS + 1;
    return 1.0 / (double)((group + 1) * (group + 2) << bits);
}

/* Fill the likelihood ratios of a row with announced probability p against the nearest edge of its tolerance. */
static void fill_ratios(double p, bool happened, double tolerance, double doubt, Factors *factors) {
    /* 1. The edges: `tolerance`, but no more than a ratio of the odds; at least the doubt about p. */
    p = lesser(greater(p, MOST_CERTAIN), 1.0 - MOST_CERTAIN);
    double odds = p / (1.0 - p), above = ODDS_RATIO * odds, below = odds / ODDS_RATIO;
    double least = greater(lesser(tolerance, LEAST_TOLERANCE), sqrt(doubt * p * (1.0 - p)));
    double high = p + greater(least, lesser(tolerance, above / (1.0 + above) - p));
    double low = p - greater(least, lesser(tolerance, p - below / (1.0 + below)));
    high = lesser(greater(high, LEAST_EDGE), 1.0 - LEAST_EDGE);
    low = lesser(greater(low, LEAST_EDGE), 1.0 - LEAST_EDGE);
    /* 2. Shifts: odds a o above the upper edge, o / a below the lower one. */
    double up = high / (1.0 - high), down = low / (1.0 - low);
    for (int64_t k = 0; k < PART_BETS / 2; k++) {
        double a = SHIFTS[k];
        factors->at[2 * k] = (happened ? a : 1.0) * (1.0 + up) / (1.0 + a * up);
        factors->at[2 * k + 1] = (happened ? 1.0 : a) * (1.0 + down) / (a + down);
    }
    if (factors->n == PART_BETS) return;
    /* 3. Noise: the probability moves towards 1/2. Outward: it moves away from 1/2. */
    double inner = high < 0.5 ? high : low > 0.5 ? low : 0.5, outer = high < 0.5 ? low : low > 0.5 ? high : 0.5;
    for (int k = FIRST_NOISE; k < OUTWARD; k++) {
        double q = inner + NOISES[k - FIRST_NOISE] * (1.0 - 2.0 * inner);
        factors->at[k] = happened ? q / inner : (1.0 - q) / (1.0 - inner);
    }
    double o = outer / (1.0 - outer), q = o * sqrt(o) / (1.0 + o * sqrt(o));
    factors->at[OUTWARD] = happened ? q / outer : (1.0 - q) / (1.0 - outer);
}

/* Fill the bets that a height in [0, 1] with a known mean is above it, and that it is below. */
static void fill_bets_on_mean(double height, double mean, Factors *factors) {
    for (int64_t k = 0; k < PART_BETS / 2; k++) {
        double a = HEIGHT_SHIFTS[k], more = a - 1.0;
        factors->at[2 * k] = (1.0 + more * height) / (1.0 + more * mean);
        factors->at[2 * k + 1] = (a - more * height) / (a - more * mean);
    }
}

/* Advance one accumulator of a part by a row: M becomes f (M + start), where the bets share what starts; return the sum.
The lanes are added in an order of their own, so that the compiler may use vectors. */
static double accumulate(double *sums, const Factors *factors, double start) {
    double lanes[LANES] = {0.0};
    for (int64_t k = 0; k < factors->n; k += LANES)
        for (int64_t j = 0; j < LANES; j++) {
            sums[k + j] = factors->at[k + j] * (sums[k + j] + factors->shares[k + j] * start);
            lanes[j] += sums[k + j];
        }
    double sum = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
    if (sum > MOST)
        for (int64_t k = 0; k < factors->n; k++) sums[k] = lesser(sums[k], MOST);
    return sum;
}

/* Return the gentlest bet in the direction of bet k: it decides when an open notice ends. */
static int64_t gentlest(int64_t k) { return k < FIRST_NOISE ? k % 2 : k < OUTWARD ? FIRST_NOISE : OUTWARD; }

/* Advance the sums of a part for notices, or the evidence that an open one is over. Return whether one changed. */
static bool notice(const Held *held, int64_t part, const Factors *factors, double width, int64_t n) {
    int64_t *counts = held->counts.at + COUNTS * part;
    double *sums = held->sums + BETS * part;
    if (counts[OPEN] >= 0) {
        held->closing[part] = greater(held->closing[part], 1.0) / factors->at[counts[OPEN]];
        if (held->closing[part] < RIGHT_AGAIN) return false;
        counts[OPEN] = -1;
        return true;
    }
    if (accumulate(sums, factors, 1.0 / width) < held->notice_limits[part]) return false;
    counts[OPEN] = gentlest(argmax(sums, factors->n));
    counts[OPENED] = n;
    held->closing[part] = 1.0;
    for (int64_t k = 0; k < factors->n; k++) sums[k] = 0.0;
    return true;
}

/* Advance a part by one of its rows; return what it reached. `width` parts of its partition have the row, `size`
multiplies the bets, and n examples were learned before the row. */
static int64_t advance(const Held *held, int64_t part, Factors *factors, double width, double size, int64_t n) {
    int64_t *counts = held->counts.at + COUNTS * part, partition = held->partition[part], reached = 0;
    if (held->ages.at[partition] <= 0) return 0; /* all parts rest */
    if (counts[SINCE] < 0) counts[SINCE] = n;
    if (size != 1.0)
        for (int64_t k = 0; k < factors->n; k++) factors->at[k] = 1.0 + size * (factors->at[k] - 1.0);
    if (held->notice_limits[part] < INFINITY && notice(held, part, factors, width, n)) reached = NOTICE;
    if (counts[RESTS] > 0) {
        counts[RESTS]--;
        return reached;
    }
    double start = share_of_start(held->ages.at[partition]) / width;
    held->wealth[part] =
        greater(held->waiting[partition], 0.0) + accumulate(held->stakes + BETS * part, factors, start);
    return reached | (held->wealth[part] >= held->limits[part] ? ALARM : 0);
}

/* Count a row of a partition: part of the stake starts with it. */
static void count_row(const Held *held, int64_t partition) {
    if (++held->ages.at[partition] > 0) held->waiting[partition] -= share_of_start(held->ages.at[partition]);
}

static Held held_of(const Slot *a) {
    return (Held){a[0].int_vector.at, a[1].int_vector, a[2].vector.at, a[3].vector.at, a[4].vector.at,
                  a[5].int_matrix,    a[6].matrix.at,  a[7].matrix.at, a[8].vector.at, a[9].vector.at};
}

/* The rows of a call: sizes of the bets (empty: all 1), width of each column, and examples learned before each row. */
typedef struct {
    Vector sizes;
    const double *widths;
    const int64_t *n;
    int64_t begin, count, columns;
} BetRows;

static BetRows rows_of(const Slot *a, int64_t columns) {
    return (BetRows){a[0].vector, a[1].vector.at, a[2].int_vector.at, a[3].integer, a[2].int_vector.n, columns};
}

/* Count a row of the partition of a part, unless the part before it was of the same partition; then advance the part.
Return what it reached. */
static int64_t bet_on(const Held *held, const BetRows *rows, int64_t i, int64_t c, int64_t part, Factors *factors,
                      int64_t *counted) {
    int64_t partition = held->partition[part];
    if (partition != *counted) count_row(held, *counted = partition);
    double size = rows->sizes.n > 0 ? rows->sizes.at[i] : 1.0;
    return advance(held, part, factors, rows->widths[c], size, rows->n[i]);
}

static void call_bet_on_means(const Slot *a, Slot *r) {
    const int64_t *cells = a[0].int_vector.at;
    Matrix heights = a[1].matrix;
    const double *means = a[2].vector.at;
    BetRows rows = rows_of(a + 3, a[0].int_vector.n);
    Held held = held_of(a + 7);
    int64_t i = rows.begin, reached = 0;
    for (; i < rows.count && reached == 0; i++)
        for (int64_t c = 0, counted = -1; c < rows.columns; c++) {
            int64_t part = cells[c];
            if (part < 0 || part >= heights.columns || isnan(heights.at[i * heights.columns + part])) continue;
            Factors factors = {.n = PART_BETS, .shares = EVEN_SHARES};
            fill_bets_on_mean(heights.at[i * heights.columns + part], means[part], &factors);
            reached |= bet_on(&held, &rows, i, c, part, &factors, &counted);
        }
    r[0].integer = i;
    r[1].integer = reached;
}

static void call_bet_on_probabilities(const Slot *a, Slot *r) {
    IntMatrix cells = a[0].int_matrix;
    const double *happened = a[1].matrix.at, *announced = a[2].matrix.at, *doubts = a[3].matrix.at;
    BetRows rows = rows_of(a + 5, cells.columns);
    Held held = held_of(a + 9);
    int64_t i = rows.begin, reached = 0;
    for (; i < rows.count && reached == 0; i++)
        for (int64_t c = 0, counted = -1; c < rows.columns; c++) {
            int64_t at = i * rows.columns + c, part = cells.at[at];
            if (part < 0 || part >= held.counts.rows) continue;
            Factors factors = {.n = c == 0 ? BETS : PART_BETS, .shares = c == 0 ? ALL_SHARES : PART_SHARES};
            fill_ratios(announced[at], happened[at] > 0.0, a[4].real, doubts[at], &factors);
            reached |= bet_on(&held, &rows, i, c, part, &factors, &counted);
        }
    r[0].integer = i;
    r[1].integer = reached;
}

#define SPEC_OF_ROWS                                                                                                   \
    " sizes: f64[z] widths: f64[c] n: i64[m] begin: int<=m held: (partition: i64[p] ages: =i64[q] waiting: =f64[q]"    \
    " limits: f64[p] notice_limits: f64[p] counts: =i64[p,6] stakes: =f64[p,12] sums: =f64[p,12] closing: =f64[p]"     \
    " wealth: =f64[p]) -> int int"

const Kernel metrics_sequential_wealth_kernels[] = {
    {"metrics.sequential.wealth.bet_on_means", "cells: i64[c] heights: f64[m,p] means: f64[p]" SPEC_OF_ROWS,
     call_bet_on_means, true},
    {"metrics.sequential.wealth.bet_on_probabilities",
     "cells: i64[m,c] happened: f64[m,c] announced: f64[m,c] doubts: f64[m,c] tolerance: float" SPEC_OF_ROWS,
     call_bet_on_probabilities, true},
    {0},
};
