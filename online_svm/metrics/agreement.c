/* Sums over labelled answers, by range of the probability and by class, for several spans at once. */
#include "compiled/elementary.h"
#include "compiled/kernel.h"

enum { RANGES = 10, CHUNKS = 11, CHUNK_LABELS = 100, SINCE = CHUNKS };

/* Sums of a range, and of all answers, as in `agreement.py`. */
enum { WEIGHT, ANNOUNCED, HAPPENED, VARIANCE, SQUARE, N_OF_RANGE };
enum {
    LABELS = RANGES * N_OF_RANGE,
    LEARNED,
    HITS,
    SQUARED_EXCESS,
    SQUARED_VARIANCE,
    TOP,
    TOP_VARIANCE,
    GAIN_WEIGHT,
    GAIN_SQUARE,
    GAIN,
    GAIN_CROSS,
    GAIN_SQUARED,
};
enum { CLASS_ANNOUNCED, CLASS_HAPPENED, CLASS_VARIANCE, N_OF_CLASS };

#define LEAST_P 1e-4  /* probabilities in the gain are at least this */
#define UNCOUNTED 100 /* first labels of a feed, which have no base rate yet */

static const double ENDS[RANGES - 1] = {0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99};

static int64_t range_of(double p) {
    int64_t at = 0;
    while (at < RANGES - 1 && p >= ENDS[at]) at++;
    return at;
}

static int64_t largest(const double *p, int64_t k) {
    int64_t top = 0;
    for (int64_t j = 1; j < k; j++)
        if (p[j] > p[top]) top = j;
    return top;
}

typedef struct {
    const double *p;
    int64_t k, truth, top;
    double weight, learned, gain;
    bool has_gain;
    const int64_t *places; /* of the columns among the classes of all rows */
} Row;

static void add_row(const Row *row, double *sums, double *by_class) {
    double w = row->weight, top = row->p[row->top];
    bool is_right = row->truth == row->top;
    /* 1. The event: the second of two classes, or that the predicted label is right. */
    double p = row->k == 2 ? row->p[1] : top;
    bool happened = row->k == 2 ? row->truth == 1 : is_right;
    double miss = (double)happened - p, variance = p * (1.0 - p), slope = 1.0 - 2.0 * p;
    double *range = sums + N_OF_RANGE * range_of(p);
    range[WEIGHT] += w;
    range[ANNOUNCED] += w * p;
    range[HAPPENED] += w * happened;
    range[VARIANCE] += w * w * variance;
    range[SQUARE] += w * w;
    sums[SQUARED_EXCESS] += w * (miss * miss - variance);
    sums[SQUARED_VARIANCE] += w * w * variance * slope * slope;
    /* 2. The predicted label, and the gain over the base rate. */
    sums[LABELS] += 1.0;
    sums[LEARNED] += row->learned;
    sums[HITS] += w * is_right;
    sums[TOP] += w * top;
    sums[TOP_VARIANCE] += w * w * top * (1.0 - top);
    if (row->has_gain) {
        sums[GAIN_WEIGHT] += w;
        sums[GAIN_SQUARE] += w * w;
        sums[GAIN] += w * row->gain;
        sums[GAIN_CROSS] += w * w * row->gain;
        sums[GAIN_SQUARED] += w * w * row->gain * row->gain;
    }
    /* 3. Each class. */
    for (int64_t j = 0; j < row->k; j++) {
        double *of = by_class + N_OF_CLASS * row->places[j];
        of[CLASS_ANNOUNCED] += w * row->p[j];
        of[CLASS_HAPPENED] += w * (j == row->truth);
        of[CLASS_VARIANCE] += w * w * row->p[j] * (1.0 - row->p[j]);
    }
}

static void clear(double *sums, int64_t n) {
    for (int64_t i = 0; i < n; i++) sums[i] = 0.0;
}

/* Add labelled rows to the chunk under way and to the span since the start; return the number of labels. */
static void call_add(const Slot *a, Slot *r) {
    Matrix point = a[0].matrix, spans = a[5].matrix;
    Cube by_class = a[6].cube;
    IntVector truth = a[1].int_vector, learned = a[3].int_vector;
    const double *weights = a[2].vector.at;
    const int64_t *places = a[4].int_vector.at;
    double *seen = a[7].vector.at;
    int64_t labels = a[8].integer, of_span = by_class.rows * by_class.columns;
    double total = 0.0;
    for (int64_t c = 0; c < a[7].vector.n; c++) total += seen[c];
    for (int64_t i = 0; i < truth.n; i++) {
        const double *p = point.at + i * point.columns;
        if (isnan(p[0])) continue;
        int64_t k = point.columns, at = labels / CHUNK_LABELS % CHUNKS, of_truth = places[truth.at[i]];
        double base = (seen[of_truth] + 1.0 / (double)k) / (total + 1.0);
        double gain = log_of(lesser(greater(p[truth.at[i]], LEAST_P), 1.0 - LEAST_P) / base);
        Row row = {p,     k, truth.at[i], largest(p, k), weights[i], (double)learned.at[i], gain, total >= UNCOUNTED,
                   places};
        if (labels % CHUNK_LABELS == 0) {
            clear(spans.at + at * spans.columns, spans.columns);
            clear(by_class.at + at * of_span, of_span);
        }
        add_row(&row, spans.at + at * spans.columns, by_class.at + at * of_span);
        add_row(&row, spans.at + SINCE * spans.columns, by_class.at + SINCE * of_span);
        seen[of_truth] += weights[i];
        total += weights[i];
        labels++;
    }
    r[0].integer = labels;
}

/* Count answers, and those with a label, by range of the event's probability. */
static void call_count(const Slot *a, Slot *r) {
    (void)r;
    Matrix point = a[0].matrix;
    IntVector truth = a[1].int_vector;
    IntMatrix counts = a[2].int_matrix;
    int64_t k = point.columns;
    for (int64_t i = 0; i < truth.n; i++) {
        const double *p = point.at + i * k;
        if (isnan(p[0])) continue;
        int64_t at = range_of(k == 2 ? p[1] : p[largest(p, k)]);
        counts.at[at]++;
        counts.at[counts.columns + at] += truth.at[i] >= 0;
    }
}

const Kernel metrics_agreement_kernels[] = {
    {"metrics.agreement._add",
     "point: f64[m,k] truth: i64[m] weights: f64[m] learned: i64[m] places: i64[k]"
     " spans: =f64[12,62] by_class: =f64[12,c,3] seen: =f64[c] labels: int -> int",
     call_add, true},
    {"metrics.agreement._count", "point: f64[m,k] truth: i64[m] counts: =i64[2,10]", call_count, false},
    {0},
};
