/* Class intervals from recent probabilities: shifts of the log-odds at the means of bins. */
#include <math.h>

#include "compiled/elementary.h"
#include "compiled/kernel.h"
#include "compiled/search.h"
#include "compiled/special.h"

#define FLOOR 1e-6 /* as in the mixture; keeps the odds finite */
#define CEILING (1.0 - FLOOR)
#define BELIEVED 0.87        /* how far the frequency of a bin moves the centre of its interval */
#define UNKNOWN_VARIANCE 5.0 /* added to the variance of the labels around a probability */
#define EULER 2.718281828459045

enum { BINS = 8, NEWEST = 125, NEWEST_BINS = 4 };

/* `Shifts` of Python: ascending probabilities of each class, and how the odds shift there. */
typedef struct {
    double *means, *low, *high;
    double moved;
} Shifts;

#define SHIFTS "shifts: (means: =f64[c,8] low: =f64[c,8] high: =f64[c,8] moved: f64[1])"
enum { SHIFTS_SLOTS = 4 };

static Shifts shifts_of(const Slot *a) {
    return (Shifts){a[0].matrix.at, a[1].matrix.at, a[2].matrix.at, a[3].vector.at[0]};
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

typedef struct {
    double low, high;
} Interval;

static inline double odds_of(double p) { return p / (1.0 - p); }

static inline double probability_of(double odds) { return odds / (1.0 + odds); }

/* Write the interval of the probability p of class y. */
static inline Interval shifted(Shifts shifts, int64_t y, double p) {
    const double *means = shifts.means + y * BINS, *lows = shifts.low + y * BINS, *highs = shifts.high + y * BINS;
    double q = bounded_by(p, FLOOR, CEILING), odds = odds_of(q);
    int64_t above = lower_bound(means, BINS, q);
    double low, high;
    if (0 < above && above < BINS) {
        /* 1. Between two means, the shifts are interpolated. */
        double part = (q - means[above - 1]) / (means[above] - means[above - 1]);
        low = lows[above - 1] + part * (lows[above] - lows[above - 1]);
        high = highs[above - 1] + part * (highs[above] - highs[above - 1]);
    } else {
        /* 2. Outside, they grow by the distance in log-odds from the nearest mean. */
        int64_t b = above > 0 ? BINS - 1 : 0;
        double nearest = odds_of(means[b]), factor = above > 0 ? nearest / odds : odds / nearest;
        low = lows[b] * factor;
        high = highs[b] * factor;
    }
    low = probability_of(odds * low);
    high = q / (q + (1.0 - q) * high);
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

static inline double variance_of(double p) { return p * (1.0 - p); }

/* Write the edges of bins of about equal sum of sqrt(p (1 - p)); equal values stay together. */
static void cut(const double *ascending, int64_t n, double *edges) {
    double total = 0.0, so_far = 0.0;
    for (int64_t i = 0; i < n; i++) total += sqrt(variance_of(ascending[i]));
    for (int64_t i = 0, b = 0; i < n; i++) {
        so_far += sqrt(variance_of(ascending[i]));
        for (; b < BINS - 1 && so_far * (double)BINS >= total * (double)(b + 1); b++) edges[b] = ascending[i];
    }
}

/* Examples of similar probability of a class. */
typedef struct {
    double total, hits, sum, variance; /* number, labels of the class, sum of p, sum of p (1 - p) */
} Bin;

/* Sum up the examples from `first` on by bin of class y, where `step` bins between edges are one. */
static void fill(RecentPoints recent, int64_t first, int64_t y, const double *edges, int64_t step, Bin *bins) {
    for (int64_t b = 0; b < BINS / step; b++) bins[b] = (Bin){0.0, 0.0, 0.0, 0.0};
    for (int64_t i = first; i < recent.points.rows; i++) {
        double p = recent.points.at[i * recent.points.columns + y];
        Bin *bin = bins + lower_bound(edges, BINS - 1, p) / step;
        bin->total += 1.0;
        bin->hits += recent.columns[i] == y ? 1.0 : 0.0;
        bin->sum += p;
        bin->variance += variance_of(p);
    }
}

/* The squared error in log-odds that the newest labels show, less its chance and one standard error of it. */
static double newest_error(RecentPoints recent, int64_t y, const double *edges) {
    Bin bins[NEWEST_BINS];
    int64_t n = recent.points.rows;
    fill(recent, n < NEWEST ? 0 : n - NEWEST, y, edges, BINS / NEWEST_BINS, bins);
    double excess = 0.0, squares = 1e-12;
    for (int64_t b = 0; b < NEWEST_BINS; b++) {
        double residual = bins[b].hits - bins[b].sum;
        excess += residual * residual - bins[b].variance;
        squares += bins[b].variance * bins[b].variance;
    }
    return excess / squares - sqrt(2.0 / squares);
}

/* The sum of p (1 - p) over the probabilities whose odds are within a factor of e of those of `middle`. */
static double nearby_variance(const double *ascending, int64_t n, double middle) {
    double odds = odds_of(middle), sum = 0.0, end = probability_of(odds * EULER);
    for (int64_t i = lower_bound(ascending, n, probability_of(odds / EULER)); i < n && ascending[i] <= end; i++)
        sum += variance_of(ascending[i]);
    return sum;
}

/* The interval of the frequency of a class where its mean probability is `mean`, which the interval contains.

`error` is the usual squared error of a state in log-odds there. */
static Interval frequency_interval(Bin bin, double mean, double error, double tail) {
    /* 1. At least the error that the bin itself shows. */
    double noise = 1.0 / greater(bin.variance, 1e-9);
    double difference = logit((bin.hits + 0.5) / (bin.total + 1.0)) - logit(mean);
    error = greater(error, difference * difference - noise);
    /* 2. The posterior: its mean, and the number of examples that a beta distribution as wide would have counted. */
    double weight = BELIEVED * error / (error + noise);
    double middle = bounded_by(mean + weight * (bin.hits - bin.sum) / bin.total, FLOOR, CEILING);
    double n = 1.0 / (variance_of(middle) * error * (1.0 - BELIEVED * weight));
    double k = n * middle, misses = n * (1.0 - middle);
    return (Interval){lesser(mean, beta_quantile(k, misses + 1.0, tail)),
                      greater(mean, 1.0 - beta_quantile(misses, k + 1.0, tail))};
}

/* Write the means and shifts of class y; `ascending` are its probabilities, sorted. */
static void count(double spread, double tail, RecentPoints recent, int64_t y, const double *ascending, Shifts shifts) {
    double edges[BINS - 1];
    Bin bins[BINS];
    int64_t n = recent.points.rows, last = y * BINS;
    /* 1. The examples of each bin, and the error of the newest. */
    cut(ascending, n, edges);
    fill(recent, 0, y, edges, 1, bins);
    double least = newest_error(recent, y, edges);
    /* 2. Odds ratios between the mean and the ends of its interval; those of empty bins are left out. */
    for (int64_t b = 0; b < BINS; b++) {
        if (bins[b].total == 0.0) continue;
        double mean = bounded_by(bins[b].sum / bins[b].total, FLOOR, CEILING);
        double usual = spread / sqrt(nearby_variance(ascending, n, mean) + UNKNOWN_VARIANCE);
        Interval ends = frequency_interval(bins[b], mean, greater(usual, least), tail);
        shifts.means[last] = mean;
        shifts.low[last] = odds_of(ends.low) / odds_of(mean);
        shifts.high[last] = odds_of(mean) * (1.0 - ends.high) / ends.high;
        last++;
    }
    /* 3. The last one again in the remaining places. */
    for (int64_t b = last; b < (y + 1) * BINS; b++) {
        shifts.means[b] = shifts.means[last - 1];
        shifts.low[b] = shifts.low[last - 1];
        shifts.high[b] = shifts.high[last - 1];
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
    RecentPoints recent = {a[2].matrix, a[3].int_vector.at};
    if (recent.points.rows == 0) return;
    for (int64_t y = 0; y < recent.points.columns; y++)
        count(a[0].real, a[1].real, recent, y, a[4].matrix.at + y * recent.points.rows, shifts_of(a + 5));
}

const Kernel predictor_recent_interval_kernels[] = {
    {"predictor.recent_interval._answer",
     SHIFTS " rows: (columns: i64[m] point: f64[m,c] lower: =f64[m,c] upper: =f64[m,c]) row: int<=m"
            " recent: (points: =f64[N,c] columns: =i64[N]) room: (size: int<=N until: int) -> int int",
     call_answer, false},
    {"predictor.recent_interval._count",
     "spread: float tail: float recent: (points: f64[n,c] columns: i64[n]) ascending: f64[c,n] " SHIFTS, call_count,
     true},
    {0},
};
