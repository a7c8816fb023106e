/* Scores of each row, their smoothed ranks among earlier rows, and the heights bet on. */
#include "compiled/elementary.h"
#include "compiled/extremes.h"
#include "compiled/kernel.h"
#include "stream/split.h"
#include <math.h>

enum { SCORER_CLASSES = 16 };

/* Counts, means and sums of squares by class and feature, shape (SCORER_CLASSES, n_features) each. */
typedef struct {
    double *counts, *means, *squares;
} Moments;

/* Gaussian densities by class: constants (-inf for a class without examples), means and precisions by feature. */
typedef struct {
    const double *constants, *means, *precisions;
} FrozenScorer;

/* ln(share of the class * density of the row in the class) for the first n classes; n = 0 without a scorer. */
typedef struct {
    double at[SCORER_CLASSES];
    int64_t n;
} Densities;

#define MEANS_MEMORY 250.0 /* memory, in rows, of the recent mean of a feature; as in `exchangeability.py` */

/* Add a value to the count, mean and sum of squares at `at` (Welford's recursion). */
static void add_to_moments(Moments moments, int64_t at, double value) {
    moments.counts[at] += 1.0;
    double step = value - moments.means[at];
    moments.means[at] += step / moments.counts[at];
    moments.squares[at] += step * (value - moments.means[at]);
}

/* Add a row to the moments of its class, update the recent means, and compute its densities. One pass over the features
does all three, because it takes most of the time of these tests.

Missing values are skipped. A label without a class adds nothing to the moments. Without a scorer only the moments are
updated. */
static void take_row(const double *x, int64_t label, Moments moments, FrozenScorer scorer, Vector recent,
                     Densities *densities) {
    int64_t d = recent.n;
    bool has_class = 0 <= label && label < SCORER_CLASSES;
    for (int64_t c = 0; c < densities->n; c++) densities->at[c] = scorer.constants[c];
    for (int64_t f = 0; f < d; f++) {
        double value = x[f];
        if (!isfinite(value)) continue;
        if (has_class) add_to_moments(moments, label * d + f, value);
        if (densities->n == 0) continue;
        recent.at[f] += (value - recent.at[f]) / MEANS_MEMORY;
        for (int64_t c = 0; c < densities->n; c++) {
            if (!(densities->at[c] > -INFINITY)) continue;
            double step = value - scorer.means[c * d + f];
            densities->at[c] -= 0.5 * scorer.precisions[c * d + f] * step * step;
        }
    }
}

/* Return ln of the sum of the densities of all classes except `without` (-1: all classes); -inf for an empty sum. */
static double log_density(const Densities *densities, int64_t without) {
    const double *logs = densities->at;
    double most = -INFINITY, sum = 0.0;
    for (int64_t c = 0; c < densities->n; c++)
        if (c != without && logs[c] > most) most = logs[c];
    if (most == -INFINITY) return most;
    if (densities->n == 2 && without >= 0) return most + 0.0; /* only one class is left */
    for (int64_t c = 0; c < densities->n; c++)
        if (c != without && logs[c] > -INFINITY) sum += exp_of(logs[c] - most);
    return most + log_of(sum);
}

enum {
    CELLS = 256,
    PLACED = 100, /* rows that fix the cells of a scorer's scores */
    LABEL = 0,
    DENSITY,
    ODDS,
    OF_CLASS, /* ranked quantities; the last ones are by class */
    RANKED = OF_CLASS + SCORER_CLASSES,
    PLACE_COUNT = 0,
    PLACE_MEAN,
    PLACE_SQUARES,
    N_PLACE,
};

#define STRANGEST 1e30 /* the score of a row with density 0 in every class */

/* `RankState` of Python. */
typedef struct {
    int64_t *rows;
    Moments moments;
    FrozenScorer scorer;
    Vector recent;
    double *places;
    int64_t *trees;
} RankState;

/* Return a pseudorandom number in [0, 1) from the three arguments, by SplitMix64. */
static double uniform(uint64_t seed, int64_t row, int64_t stream) {
    uint64_t key = mix(seed + GOLDEN_GAMMA * (uint64_t)(stream + 1));
    return uniform_of(mix(key ^ ((uint64_t)row + 1) * GOLDEN_GAMMA));
}

/* Return the cell of a score, 0 ... CELLS - 1; half of the cells lie within `spread` of the centre. */
static int64_t cell_of(double score, double centre, double spread) {
    double z = (score - centre) / spread;
    return lesser_int(CELLS - 1, (int64_t)((double)CELLS * 0.5 * (1.0 + z / (1.0 + fabs(z)))));
}

/* Count a score and return its p-value: (number above it + u (number equal to it)) / (number of all).

`counts`, shape (2 cells,), is a sum tree: the leaves are the second half, and node i holds the sum of nodes 2 i and
2 i + 1. */
static double ranked(int64_t *counts, int64_t cells, int64_t cell, double u) {
    int64_t node = cells + cell, above = 0, equal = ++counts[node];
    while (node > 1) {
        /* Branch-free: a branch on "left child" would be mispredicted half of the time. */
        above += counts[node ^ 1] * ((node & 1) ^ 1);
        node /= 2;
        counts[node]++;
    }
    return ((double)above + u * (double)equal) / (double)counts[1];
}

/* Add a score to the count, mean and sum of squares that fix the cells. */
static void add_to_place(double *place, double score) {
    place[PLACE_COUNT] += 1.0;
    double step = score - place[PLACE_MEAN];
    place[PLACE_MEAN] += step / place[PLACE_COUNT];
    place[PLACE_SQUARES] += step * (score - place[PLACE_MEAN]);
}

/* Return the p-value of a score of ranked quantity `at`, or NaN while its cells are being fixed. */
static double p_value(const RankState *held, int64_t at, double score, uint64_t seed) {
    double *place = held->places + N_PLACE * at;
    /* The score is NaN for -inf minus -inf. */
    score = isnan(score) ? STRANGEST : lesser(greater(score, -STRANGEST), STRANGEST);
    if (place[PLACE_COUNT] < (double)PLACED) {
        add_to_place(place, score);
        return NAN;
    }
    double spread = sqrt(place[PLACE_SQUARES] / (double)PLACED) + 1e-12;
    int64_t cell = cell_of(score, place[PLACE_MEAN], spread);
    return ranked(held->trees + (int64_t)2 * CELLS * at, CELLS, cell, uniform(seed, *held->rows, at));
}

/* Heights bet on, of mean 1/2: a large score has a small p-value. */
static double of_one_end(double p) { return 1.0 - p; }
static double of_both_ends(double p) { return 2.0 * fabs(p - 0.5); }

/* Score and rank one row, given its densities, and fill its heights. */
static void rank_row(const RankState *held, const Densities *logs, int64_t common, int64_t label,
                     const int64_t *of_class, uint64_t seed, double *heights) {
    /* 1. The label given the features; then the odds of the other classes against the row's own class. */
    double density = log_density(logs, -1);
    if (0 <= label && label < logs->n) {
        double own = logs->at[label];
        heights[0] = of_one_end(p_value(held, LABEL, density - own, seed));
        double odds = log_density(logs, label) - own;
        heights[of_class[label]] = of_one_end(p_value(held, OF_CLASS + label, odds, seed));
    }
    /* 2. The features alone: the density and the odds of the commonest class. */
    double p = p_value(held, DENSITY, -density, seed);
    heights[1] = of_one_end(p);
    heights[2] = of_both_ends(p);
    p = p_value(held, ODDS, logs->at[common] - log_density(logs, common), seed);
    heights[3] = of_one_end(p);
    heights[4] = of_both_ends(p);
}

static void rank_rows(Matrix X, const int64_t *labels, uint64_t seed, const RankState *held, IntVector of_class,
                      Matrix heights) {
    Densities logs = {.n = lesser_int(of_class.n, SCORER_CLASSES)};
    int64_t common = argmax(held->scorer.constants, SCORER_CLASSES);
    for (int64_t i = 0; i < heights.rows * heights.columns; i++) heights.at[i] = NAN;
    for (int64_t i = 0; i < X.rows; i++) {
        ++*held->rows;
        take_row(X.at + i * X.columns, labels[i], held->moments, held->scorer, held->recent, &logs);
        if (logs.n > 0) rank_row(held, &logs, common, labels[i], of_class.at, seed, heights.at + i * heights.columns);
    }
}

/* What `rank_labels` knows of a class: its column of heights (-1: none), and the counts of its rows and of all rows. */
typedef struct {
    IntVector columns;
    int64_t *counts;     /* shape (SCORER_CLASSES, 2) */
    const double *zones; /* shape (SCORER_CLASSES, 2); the height falls from one edge to the other */
} LabelState;

/* Count a row of a class, or of another; return the p-value of that: rows of the class are the strange ones. */
static double label_p_value(int64_t *counts, bool is_own, double u) {
    counts[0] += is_own;
    double own = (double)counts[0], all = (double)++counts[1];
    return (is_own ? u * own : own + u * (all - own)) / all;
}

/* Height bet on: 1 below the zone, 0 above, and linear in it. */
static double of_zone(double p, const double *edges) {
    return lesser(1.0, greater(0.0, (edges[1] - p) / (edges[1] - edges[0])));
}

#define TAIL 0.05                     /* p-values up to this have the largest height */
#define TAIL_MEAN 0.19978661367769955 /* mean of min(1, TAIL / p): TAIL (1 + ln(1 / TAIL)) */

/* Height bet on, of mean 1/2, for a small share of strange rows, such as wrong labels. */
static double of_tail(double p) { return 0.5 + 0.5 * (TAIL / greater(p, TAIL) - TAIL_MEAN) / (1.0 - TAIL_MEAN); }

static void rank_labels(IntVector labels, uint64_t seed, int64_t before, bool has_scorer, LabelState held,
                        Matrix heights) {
    for (int64_t i = 0; i < labels.n; i++) {
        double *row = heights.at + i * heights.columns;
        for (int64_t c = 0; c < held.columns.n; c++) {
            double u = uniform(seed, before + i + 1, RANKED + c);
            double p = label_p_value(held.counts + 2 * c, labels.at[i] == c, u);
            bool is_bet_on = has_scorer && held.counts[2 * c + 1] > PLACED; /* early ranks are little but chance */
            if (is_bet_on && held.columns.at[c] >= 0) row[held.columns.at[c]] = of_zone(p, held.zones + 2 * c);
        }
        if (!isnan(row[0])) row[0] = of_tail(1.0 - row[0]); /* `of_one_end` gave 1 - p */
    }
}

static void call_rank_labels(const Slot *a, Slot *r) {
    (void)r;
    LabelState held = {a[4].int_vector, a[5].int_matrix.at, a[6].matrix.at};
    rank_labels(a[0].int_vector, (uint64_t)a[1].integer, a[2].integer, a[3].integer, held, a[7].matrix);
}

static void call_cell_of(const Slot *a, Slot *r) { r->integer = cell_of(a[0].real, a[1].real, a[2].real); }

static void call_rank_rows(const Slot *a, Slot *r) {
    (void)r;
    RankState held = {
        .rows = a[3].int_vector.at,
        .moments = {a[4].matrix.at, a[5].matrix.at, a[6].matrix.at},
        .scorer = {a[7].vector.at, a[8].matrix.at, a[9].matrix.at},
        .recent = a[10].vector,
        .places = a[11].matrix.at,
        .trees = a[12].int_matrix.at,
    };
    rank_rows(a[0].matrix, a[1].int_vector.at, (uint64_t)a[2].integer, &held, a[13].int_vector, a[14].matrix);
}

const Kernel metrics_sequential_exchangeability_kernels[] = {
    {"metrics.sequential.exchangeability.cell_of", "score: float centre: float spread: float -> int", call_cell_of,
     false},
    {"metrics.sequential.exchangeability.rank_rows",
     "X: f64[m,d] labels: i64[m] seed: uint"
     " held: (rows: =i64[1] moments: (counts: =f64[16,d] means: =f64[16,d] squares: =f64[16,d])"
     " scorer: (constants: f64[16] means: f64[16,d] precisions: f64[16,d]) recent: =f64[d]"
     " places: =f64[19,3] trees: =i64[19,512])"
     " of_class: i64[c] heights: =f64[m,w+5]",
     call_rank_rows, true},
    {"metrics.sequential.exchangeability.rank_labels",
     "labels: i64[m] seed: uint before: int has_scorer: bool"
     " held: (columns: i64[c] counts: =i64[16,2] zones: f64[16,2]) heights: =f64[m,w+1]",
     call_rank_labels, true},
    {0},
};
