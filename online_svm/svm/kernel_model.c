/* Scores of rows by several machines over one set of support vectors. */
#include "compiled/kernels.h"
#include "compiled/ordered_sums.h"

enum { CHUNK = 16 }; /* rows that share one pass over the support vectors, which then stay in the cache */

/* S machines over n support vectors; `vectors` is feature-major, and its columns beyond n are not read. */
typedef struct {
    KernelShape shape;
    Matrix vectors, coef;
    const double *intercept;
} KernelModel;

/* Add coef_sj k(v_j, x_i) of a block of support vectors to the lanes of rows i and machines s. */
static void add_block(const KernelModel *model, Matrix X, int64_t first, int64_t stop, double *lanes) {
    double values[ROWS_TOGETHER * BLOCK];
    int64_t n = model->coef.columns, machines = model->coef.rows;
    for (int64_t top = 0; top < X.rows; top += ROWS_TOGETHER) {
        int64_t count = X.rows - top < ROWS_TOGETHER ? X.rows - top : ROWS_TOGETHER;
        kernel_rows(model->shape, model->vectors, X.at + top * X.columns, count, first, stop, values);
        for (int64_t i = 0; i < count; i++)
            for (int64_t s = 0; s < machines; s++, lanes += LANES)
                add_to_lanes(values + i * BLOCK, model->coef.at + s * n + first, stop - first, lanes);
    }
}

/* Write sum_j coef_sj k(v_j, x_i) + intercept_s of at most CHUNK rows, in an order fixed by j alone. */
static void score_chunk(const KernelModel *model, Matrix X, double *lanes, double *out) {
    int64_t n = model->coef.columns, machines = model->coef.rows;
    for (int64_t k = 0; k < X.rows * machines * LANES; k++) lanes[k] = 0.0;
    /* 1. For each block of support vectors, add the terms of all rows to their lanes. */
    for (int64_t first = 0; first < n; first += BLOCK)
        add_block(model, X, first, n - first < BLOCK ? n : first + BLOCK, lanes);
    /* 2. Sum over the lanes. */
    for (int64_t i = 0; i < X.rows; i++)
        for (int64_t s = 0; s < machines; s++)
            out[i * machines + s] = sum_of_lanes(lanes + (i * machines + s) * LANES) + model->intercept[s];
}

static void call_score(const Slot *a, Slot *r) {
    (void)r;
    KernelShape shape = kernel_shape_of(a);
    a += KERNEL_SHAPE_SLOTS;
    KernelModel model = {shape, a[0].matrix, a[1].matrix, a[2].vector.at};
    Matrix X = a[3].matrix, out = a[5].matrix;
    for (int64_t top = 0; top < X.rows; top += CHUNK) {
        Matrix part = {X.at + top * X.columns, X.rows - top < CHUNK ? X.rows - top : CHUNK, X.columns};
        score_chunk(&model, part, a[4].cube.at, out.at + top * out.columns);
    }
}

const Kernel svm_kernel_model_kernels[] = {
    {"svm.kernel_model._score",
     KERNEL_SHAPE " machines: (vectors: f64[d,*] coef: f64[S,n] intercept: f64[S]) X: f64[m,d] lanes: =f64[16,S,64]"
                  " out: =f64[m,S]",
     call_score, true},
    {0},
};
