#include "compiled/kernels.h"

#include "compiled/elementary.h"

/* base^degree by repeated multiplication: the order of roundings is fixed. */
static inline double power(double base, int64_t degree) {
    double value = base;
    for (int64_t k = 1; k < degree; k++) value *= base;
    return value;
}

enum { TILE = 32, TILE_OF_ROWS = 16 }; /* points whose sums stay in registers while all features are added */

/* Write |x - X[:, first + j]|^2 to sums[j] for j < n <= TILE; inlined twice, once with the constant n = TILE. */
static inline void distances_of_tile(Matrix X, const double *x, int64_t first, int64_t n, double *sums) {
    double tile[TILE] = {0};
    for (int64_t f = 0; f < X.rows; f++) {
        const double *A = X.at + f * X.columns + first;
        for (int64_t j = 0; j < n; j++) {
            double p = x[f] - A[j];
            tile[j] = multiply_add(p, p, tile[j]);
        }
    }
    for (int64_t j = 0; j < n; j++) sums[j] = tile[j];
}

void squared_distances(Matrix X, const double *x, int64_t first, int64_t stop, double *sums) {
    for (; stop - first >= TILE; first += TILE, sums += TILE) distances_of_tile(X, x, first, TILE, sums);
    distances_of_tile(X, x, first, stop - first, sums);
}

/* The same for ROWS_TOGETHER rows x and TILE_OF_ROWS points: each point is read once for all of them. */
static inline void distances_of_rows(Matrix X, const double *x, int64_t first, double *sums, int64_t step) {
    double tile[ROWS_TOGETHER][TILE_OF_ROWS] = {{0}};
    for (int64_t f = 0; f < X.rows; f++) {
        const double *A = X.at + f * X.columns + first;
        for (int64_t j = 0; j < TILE_OF_ROWS; j++)
            for (int64_t i = 0; i < ROWS_TOGETHER; i++) {
                double p = x[i * X.rows + f] - A[j];
                tile[i][j] = multiply_add(p, p, tile[i][j]);
            }
    }
    for (int64_t i = 0; i < ROWS_TOGETHER; i++)
        for (int64_t j = 0; j < TILE_OF_ROWS; j++) sums[i * step + j] = tile[i][j];
}

void squared_distances_of_rows(Matrix X, const double *x, int64_t n, int64_t first, int64_t stop, double *sums,
                               int64_t step) {
    if (n == ROWS_TOGETHER)
        for (; stop - first >= TILE_OF_ROWS; first += TILE_OF_ROWS, sums += TILE_OF_ROWS)
            distances_of_rows(X, x, first, sums, step);
    for (int64_t i = 0; i < n; i++) squared_distances(X, x + i * X.rows, first, stop, sums + i * step);
}

/* Write x . X[:, first + j] to sums[j]; n as in `distances_of_tile`. */
static inline void products_of_tile(Matrix X, const double *x, int64_t first, int64_t n, double *sums) {
    double tile[TILE] = {0};
    for (int64_t f = 0; f < X.rows; f++) {
        const double *A = X.at + f * X.columns + first;
        for (int64_t j = 0; j < n; j++) tile[j] = multiply_add(x[f], A[j], tile[j]);
    }
    for (int64_t j = 0; j < n; j++) sums[j] = tile[j];
}

static void products(Matrix X, const double *x, int64_t first, int64_t stop, double *sums) {
    for (; stop - first >= TILE; first += TILE, sums += TILE) products_of_tile(X, x, first, TILE, sums);
    products_of_tile(X, x, first, stop - first, sums);
}

/* Replace distances or products by kernel values; rbf values are not yet rounded. */
static void values_of_sums(KernelShape shape, double *sums, int64_t n) {
    if (shape.code == RBF || shape.code == WIDE_RBF)
        for (int64_t j = 0; j < n; j++) sums[j] = exp_nonpositive(-shape.gamma * sums[j]);
    else if (shape.code == POLY)
        for (int64_t j = 0; j < n; j++) sums[j] = power(multiply_add(shape.gamma, sums[j], shape.coef0), shape.degree);
}

static void kernel_block(KernelShape shape, Matrix X, const double *x, int64_t first, int64_t stop,
                         double sums[BLOCK]) {
    if (shape.code == RBF || shape.code == WIDE_RBF)
        squared_distances(X, x, first, stop, sums);
    else
        products(X, x, first, stop, sums);
    values_of_sums(shape, sums, stop - first);
}

static inline int64_t end_of_block(int64_t start, int64_t stop) { return stop - start < BLOCK ? stop : start + BLOCK; }

void kernel_row(KernelShape shape, Matrix X, const double *x, int64_t first, int64_t stop, double *out) {
    double sums[BLOCK];
    for (int64_t start = first; start < stop; start += BLOCK) {
        int64_t n = end_of_block(start, stop) - start;
        kernel_block(shape, X, x, start, start + n, sums);
        double *to = out + (start - first);
        if (shape.code == RBF)
            for (int64_t j = 0; j < n; j++) to[j] = (double)(float)sums[j];
        else
            for (int64_t j = 0; j < n; j++) to[j] = sums[j];
    }
}

void kernel_row_floats(KernelShape shape, Matrix X, const double *x, int64_t first, int64_t stop, float *out) {
    double sums[BLOCK];
    for (int64_t start = first; start < stop; start += BLOCK) {
        int64_t n = end_of_block(start, stop) - start;
        kernel_block(shape, X, x, start, start + n, sums);
        float *to = out + (start - first);
        for (int64_t j = 0; j < n; j++) to[j] = (float)sums[j];
    }
}

void kernel_rows(KernelShape shape, Matrix X, const double *x, int64_t n, int64_t first, int64_t stop, double *out) {
    if (shape.code != RBF && shape.code != WIDE_RBF) {
        for (int64_t i = 0; i < n; i++) kernel_row(shape, X, x + i * X.rows, first, stop, out + i * BLOCK);
        return;
    }
    squared_distances_of_rows(X, x, n, first, stop, out, BLOCK);
    for (int64_t i = 0; i < n; i++, out += BLOCK) {
        values_of_sums(shape, out, stop - first);
        for (int64_t j = 0; j < stop - first && shape.code == RBF; j++) out[j] = (double)(float)out[j];
    }
}

double kernel_value(KernelShape shape, const double *u, const double *v, int64_t d) {
    double sum = 0.0;
    if (shape.code == RBF || shape.code == WIDE_RBF) {
        for (int64_t f = 0; f < d; f++) {
            double p = u[f] - v[f];
            sum = multiply_add(p, p, sum);
        }
        double value = exp_nonpositive(-shape.gamma * sum);
        return shape.code == WIDE_RBF ? value : (double)(float)value;
    }
    for (int64_t f = 0; f < d; f++) sum = multiply_add(u[f], v[f], sum);
    return shape.code == LINEAR ? sum : power(multiply_add(shape.gamma, sum, shape.coef0), shape.degree);
}

static void call_gram(const Slot *a, Slot *r) {
    (void)r;
    KernelShape shape = kernel_shape_of(a);
    a += KERNEL_SHAPE_SLOTS;
    Matrix X = a[0].matrix, rows = a[1].matrix, out = a[2].matrix;
    for (int64_t i = 0; i < rows.rows; i++)
        kernel_row(shape, X, rows.at + i * rows.columns, 0, X.columns, out.at + i * out.columns);
}

static void call_diagonal(const Slot *a, Slot *r) {
    (void)r;
    KernelShape shape = kernel_shape_of(a);
    a += KERNEL_SHAPE_SLOTS;
    Matrix X = a[0].matrix;
    for (int64_t i = 0; i < X.rows; i++) {
        const double *x = X.at + i * X.columns;
        a[1].vector.at[i] = kernel_value(shape, x, x, X.columns);
    }
}

const Kernel compiled_kernels_kernels[] = {
    {"compiled.kernels.gram", KERNEL_SHAPE " X: f64[d,n] rows: f64[m,d] out: =f64[m,n]", call_gram, true},
    {"compiled.kernels._diagonal", KERNEL_SHAPE " X: f64[n,d] out: =f64[n]", call_diagonal, false},
    {0},
};
