/* Add rows to a ring, and to weighted sums over all rows. */
#include "metrics/window_ring.h"

#include "compiled/extremes.h"
#include "compiled/kernel.h"
#include "metrics/scores.h"

/* The arrays of `WindowRing`, each with `size` places along its last axis. */
typedef struct {
    Matrix point;
    int64_t *truth, *label;
    double *values;
    IntMatrix codes;
    double *sums;
    int64_t size;
} Ring;

/* Rows to add; column j of their probabilities is of class to[j] of the ring. */
typedef struct {
    const int64_t *to, *truth;
    Matrix point;
    const double *lower, *upper;
    IntMatrix codes;
    const double *weights;
} Rows;

/* Write row i to place `at` of the ring; multiply the weighted sums by `kept` before adding it. */
static void add_row(const Ring *ring, const Rows *rows, int64_t i, int64_t at, double kept) {
    int64_t k = rows->point.columns, size = ring->size, truth = rows->truth[i];
    const double *point = rows->point.at + i * k;
    /* 1. Probabilities, labels and slices of the row; adding zero turns -0.0 into 0.0. */
    for (int64_t c = 0; c < ring->point.rows; c++) ring->point.at[c * size + at] = 0.0;
    for (int64_t j = 0; j < k; j++) ring->point.at[rows->to[j] * size + at] = point[j] + 0.0;
    int64_t chosen = argmax(point, k);
    ring->truth[at] = rows->to[truth];
    ring->label[at] = rows->to[chosen];
    for (int64_t j = 0; j < ring->codes.rows; j++)
        ring->codes.at[j * size + at] = rows->codes.at[i * rows->codes.columns + j];
    /* 2. Bounds and probability of the predicted label, and the log loss. */
    double *values = ring->values + at;
    values[RING_LOWER * size] = rows->lower[i * k + chosen];
    values[RING_PROBABILITY * size] = point[chosen] + 0.0;
    values[RING_UPPER * size] = rows->upper[i * k + chosen];
    values[RING_LOG_LOSS * size] = log_loss(point[truth]);
    /* 3. The weighted sums. */
    double *sums = ring->sums, weight = rows->weights[i];
    for (int j = 0; j < RING_VALUES; j++) sums[j] = kept * sums[j] + weight * values[j * size];
    sums[RING_HIT] = kept * sums[RING_HIT] + weight * (chosen == truth);
    sums[RING_BRIER] = kept * sums[RING_BRIER] + weight * brier_sum(point, k, truth);
    sums[RING_WEIGHT] = kept * sums[RING_WEIGHT] + weight;
}

static void call_add_rows(const Slot *a, Slot *r) {
    (void)r;
    uint64_t count = (uint64_t)a[0].integer;
    Ring ring = {a[2].matrix,     a[3].int_vector.at, a[4].int_vector.at, a[5].matrix.at,
                 a[6].int_matrix, a[7].vector.at,     a[3].int_vector.n};
    Rows rows = {a[8].int_vector.at, a[9].int_vector.at, a[10].matrix,   a[11].matrix.at,
                 a[12].matrix.at,    a[13].int_matrix,   a[14].vector.at};
    for (int64_t i = 0; i < rows.point.rows; i++) {
        uint64_t at = (count + (uint64_t)i) % (uint64_t)ring.size;
        add_row(&ring, &rows, i, (int64_t)at, a[1].real);
    }
}

const Kernel metrics_window_ring_kernels[] = {
    {"metrics.window_ring._add_rows",
     "count: int kept: float"
     " ring: (point: =f64[k,s+1] truth: =i64[s+1] label: =i64[s+1] values: =f64[4,s+1] codes: =i64[c,s+1] sums: "
     "=f64[7])"
     " to: i64[j+1]"
     " added: (truth: i64[m] point: f64[m,j+1] lower: f64[m,j+1] upper: f64[m,j+1] codes: i64[m,c] weights: f64[m])",
     call_add_rows, false},
    {0},
};
