/* Intervals of two classes from the counts of a growing calibration set. */
#include "compiled/extremes.h"
#include "compiled/floats.h"
#include "compiled/kernel.h"
#include "compiled/search.h"
#include "metrics/binomial_interval.h"

enum { COLUMNS = 3, UNSEEN = 2 }; /* the two classes, and unseen labels */

/* `HeldBins` of Python: calibration examples in order of arrival, with room for new ones. */
typedef struct {
    int64_t *bins, *columns, size, limit;
} HeldBins;

/* `IntervalRows` of Python: rows to answer, and the arrays for their intervals. */
typedef struct {
    const double *scores;
    IntVector columns;
    Matrix point;
    double *lower, *upper;
} IntervalRows;

/* Widen an interval to contain the row's probability, and write it. */
static inline void write_interval(IntervalRows rows, int64_t at, Interval interval) {
    rows.lower[at] = lesser(interval.low, rows.point.at[at]);
    rows.upper[at] = greater(interval.high, rows.point.at[at]);
}

/* Write the intervals of rows and add labelled rows in turn; return how many examples left. */
static int64_t answer(const BinomialIntervals *intervals, Vector edges, IntervalRows rows, HeldBins held,
                      int64_t *counts) {
    int64_t gone = 0, stop = held.size, n_unseen = 0;
    for (int64_t b = 0; b <= edges.n; b++) n_unseen += counts[b * COLUMNS + UNSEEN];
    for (int64_t i = 0; i < rows.columns.n; i++) {
        /* 1. The interval of the second class in its bin; the first class gets its mirror image. */
        int64_t b = lower_bound(edges.at, edges.n, rows.scores[i]), first = i * rows.point.columns;
        int64_t *of_bin = counts + b * COLUMNS;
        Interval second = binomial_interval(intervals, of_bin[1], of_bin[0] + of_bin[1] + of_bin[2]);
        write_interval(rows, first + 1, second);
        write_interval(rows, first, (Interval){1.0 - second.high, 1.0 - second.low});
        /* 2. The interval of unseen labels, over all scores. */
        if (rows.point.columns == COLUMNS)
            write_interval(rows, first + UNSEEN, binomial_interval(intervals, n_unseen, stop - gone));
        int64_t column = rows.columns.at[i];
        if (column < 0) continue;
        /* 3. Join the calibration set. */
        held.bins[stop] = b;
        held.columns[stop] = column;
        of_bin[column]++;
        n_unseen += column == UNSEEN;
        stop++;
        /* 4. The oldest example leaves a full window. */
        if (held.limit >= 0 && stop - gone > held.limit) {
            counts[held.bins[gone] * COLUMNS + held.columns[gone]]--;
            n_unseen -= held.columns[gone] == UNSEEN;
            gone++;
        }
    }
    return gone;
}

static void call_answer(const Slot *a, Slot *r) {
    BinomialIntervals intervals = binomial_intervals_of(a);
    a += BINOMIAL_INTERVALS_SLOTS;
    IntervalRows rows = {a[1].vector.at, a[2].int_vector, a[3].matrix, a[4].matrix.at, a[5].matrix.at};
    HeldBins held = {a[6].int_vector.at, a[7].int_vector.at, a[8].integer, a[9].integer};
    r->integer = answer(&intervals, a[0].vector, rows, held, a[10].int_matrix.at);
}

const Kernel predictor_frequency_interval_kernels[] = {
    {"predictor.frequency_interval._answer",
     BINOMIAL_INTERVALS " edges: f64[e]"
                        " rows: (scores: f64[m] columns: i64[m] point: f64[m,c] lower: =f64[m,c] upper: =f64[m,c])"
                        " held: (bins: =i64[N] columns: =i64[N] size: int<=N limit: int) counts: =i64[e+1,3] -> int",
     call_answer, true},
    {0},
};
