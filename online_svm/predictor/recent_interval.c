/* Class intervals from recent probabilities: a shift of the log-odds in each bin. */
#include <math.h>

#include "compiled/elementary.h"
#include "compiled/kernel.h"
#include "compiled/search.h"
#include "metrics/binomial_interval.h"

#define FLOOR 1e-6 /* as in the mixture; keeps the odds finite */
#define CEILING (1.0 - FLOOR)
#define MAX_ODDS 1e9 /* more than any odds between them */

/* `Shifts` of Python: the edges of the bins of each class, and how they shift the odds. */
typedef struct {
    int64_t bins; /* of each class */
    double *edges, *low, *high, *outer;
    double moved;
} Shifts;

#define SHIFTS "shifts: (edges: =f64[c,e] low: =f64[c,b] high: =f64[c,b] outer: =f64[c,2] moved: f64[1])"
enum { SHIFTS_SLOTS = 5 };

static Shifts shifts_of(const Slot *a) {
    return (Shifts){a[1].matrix.columns, a[0].matrix.at, a[1].matrix.at,
                    a[2].matrix.at,      a[3].matrix.at, a[4].vector.at[0]};
}

/* `RecentPoints` of Python: labelled examples in order of arrival. */
typedef struct {
    Matrix points;
    int64_t *columns;
} RecentPoints;

/* `RowsToAnswer` of Python: rows to answer, and the arrays for their intervals. */
typedef struct {
    IntVector columns;
    const double *point;
    double *lower, *upper;
} RowsToAnswer;

/* How far the odds lie outside the outer means, as a ratio: below 1 there, else 1. */
static inline double widening(double odds, const double outer[2]) {
    return odds < outer[0] ? odds / outer[0] : outer[1] < odds ? outer[1] / odds : 1.0;
}

/* Write the interval of the probability p of class y. */
static inline Interval shifted(Shifts shifts, int64_t y, double p) {
    int64_t b = y * shifts.bins + lower_bound(shifts.edges + y * (shifts.bins - 1), shifts.bins - 1, p);
    double q = bounded_by(p, FLOOR, CEILING), factor = widening(q / (1.0 - q), shifts.outer + 2 * y);
    double raised = q * (shifts.low[b] * factor);
    double low = raised / (1.0 - q + raised), high = q / (q + (1.0 - q) * (shifts.high[b] * factor));
    return (Interval){lesser(greater(low - shifts.moved, 0.0), p), greater(lesser(high + shifts.moved, 1.0), p)};
}

/* Write the intervals of rows from `row` on and append labelled rows, until `size` reaches `until`. */
static void answer(Shifts shifts, RowsToAnswer rows, int64_t *row, RecentPoints recent, int64_t *size, int64_t until) {
    int64_t n_classes = recent.points.columns;
    for (; *row < rows.columns.n && *size < until; ++*row) {
        const double *point = rows.point + *row * n_classes;
        for (int64_t y = 0; y < n_classes; y++) {
            Interval ends = shifted(shifts, y, point[y]);
            rows.lower[*row * n_classes + y] = ends.low;
            rows.upper[*row * n_classes + y] = ends.high;
        }
        if (rows.columns.at[*row] < 0) continue;
        for (int64_t y = 0; y < n_classes; y++) recent.points.at[*size * n_classes + y] = point[y];
        recent.columns[*size] = rows.columns.at[*row];
        ++*size;
    }
}

static inline double deviation(double p) { return sqrt(p * (1.0 - p)); }

/* Write the edges of bins of about equal sum of sqrt(p (1 - p)); equal values stay together. */
static void cut(const double *ascending, int64_t n, double *edges, int64_t bins) {
    double total = 0.0, so_far = 0.0;
    for (int64_t i = 0; i < n; i++) total += deviation(ascending[i]);
    for (int64_t i = 0, b = 0; i < n; i++) {
        so_far += deviation(ascending[i]);
        for (; b < bins - 1 && so_far * (double)bins >= total * (double)(b + 1); b++) edges[b] = ascending[i];
    }
}

enum { MOST_BINS = 10 };

/* The examples of a bin, the hits of the class among them, and the sum of its probabilities. */
typedef struct {
    int64_t total, hits;
    double together;
} Bin;

/* Count the examples of each bin of class y. */
static void count_bins(RecentPoints recent, int64_t y, const double *edges, Bin *bins, int64_t n_bins) {
    for (int64_t b = 0; b < n_bins; b++) bins[b] = (Bin){0, 0, 0.0};
    for (int64_t i = 0; i < recent.points.rows; i++) {
        double p = recent.points.at[i * recent.points.columns + y];
        Bin *bin = bins + lower_bound(edges, n_bins - 1, p);
        bin->total++;
        bin->hits += recent.columns[i] == y;
        bin->together += p;
    }
}

static inline double mean_of(Bin bin) { return bounded_by(bin.together / (double)bin.total, FLOOR, CEILING); }

static inline double odds_of(double p) { return p / (1.0 - p); }

/* Write the edges and shifts of each class; `ascending` are its probabilities, sorted. */
static void count(const BinomialIntervals *intervals, RecentPoints recent, const double *ascending, Shifts shifts) {
    Bin bins[MOST_BINS];
    for (int64_t y = 0; y < recent.points.columns; y++) {
        /* 1. The examples of each bin. */
        double *edges = shifts.edges + y * (shifts.bins - 1);
        cut(ascending + y * recent.points.rows, recent.points.rows, edges, shifts.bins);
        count_bins(recent, y, edges, bins, shifts.bins);
        /* 2. Odds ratios between the mean probability and the ends of the interval. */
        for (int64_t b = 0; b < shifts.bins; b++) {
            double *low = shifts.low + y * shifts.bins + b, *high = shifts.high + y * shifts.bins + b;
            *low = *high = 0.0;
            if (bins[b].total == 0) continue;
            Interval ends = binomial_interval(intervals, bins[b].hits, bins[b].total);
            double mean = mean_of(bins[b]);
            *low = ends.low * (1.0 - mean) / ((1.0 - ends.low) * mean);
            *high = (1.0 - ends.high) * mean / (ends.high * (1.0 - mean));
        }
        /* 3. The odds outside which the shifts grow. */
        if (shifts.bins < 1) continue;
        Bin first = bins[0], last = bins[shifts.bins - 1];
        shifts.outer[2 * y] = first.total ? odds_of(mean_of(first)) : 0.0;
        shifts.outer[2 * y + 1] = last.total ? odds_of(mean_of(last)) : MAX_ODDS;
    }
}

static void call_answer(const Slot *a, Slot *r) {
    Shifts shifts = shifts_of(a);
    a += SHIFTS_SLOTS;
    RowsToAnswer rows = {a[0].int_vector, a[1].matrix.at, a[2].matrix.at, a[3].matrix.at};
    RecentPoints recent = {a[5].matrix, a[6].int_vector.at};
    r[0].integer = a[4].integer;
    r[1].integer = a[7].integer;
    answer(shifts, rows, &r[0].integer, recent, &r[1].integer, a[8].integer);
}

static void call_count(const Slot *a, Slot *r) {
    (void)r;
    BinomialIntervals intervals = binomial_intervals_of(a);
    a += BINOMIAL_INTERVALS_SLOTS;
    RecentPoints recent = {a[0].matrix, a[1].int_vector.at};
    count(&intervals, recent, a[2].matrix.at, shifts_of(a + 3));
}

const Kernel predictor_recent_interval_kernels[] = {
    {"predictor.recent_interval._answer",
     SHIFTS " rows: (columns: i64[m] point: f64[m,c] lower: =f64[m,c] upper: =f64[m,c]) row: int<=m"
            " recent: (points: =f64[N,c] columns: =i64[N]) room: (size: int<=N until: int) -> int int",
     call_answer, false},
    {"predictor.recent_interval._count",
     BINOMIAL_INTERVALS " recent: (points: f64[n,c] columns: i64[n]) ascending: f64[c,n] " SHIFTS, call_count, true},
    {0},
};
