/* The start of each machine of a bank on the solution path, and the decision values of a packed bank.

From one machine to the next, most coefficients at a bound stay there. The kernel values of the points at a bound are
therefore summed once, and the sum is corrected when a point reaches or leaves its bound. Only free coefficients are
stored for each machine. */
#include "compiled/kernel.h"
#include "compiled/kernels.h"
#include "svm/exact/kernel_cache.h"
#include <math.h>
#include <stddef.h>

/* The bounds of the coefficients of one machine. */
typedef struct {
    const double *lower, *upper;
} Bounds;

static Bounds bounds_of(Matrix rows) { return (Bounds){rows.at, rows.at + rows.columns}; }

/* Write 2 last - before, clipped to the bounds. */
static void extrapolate(const double *before, const double *last, Bounds bounds, Vector out) {
    for (int64_t i = 0; i < out.n; i++) {
        double value = 2.0 * last[i] - before[i];
        if (bounds.lower[i] > value) value = bounds.lower[i];
        out.at[i] = bounds.upper[i] < value ? bounds.upper[i] : value;
    }
}

/* Keep a coefficient that was at a bound exactly at that bound; the extrapolation is rounded. */
static void follow_bounds(const double *last, Bounds last_bounds, Bounds bounds, Vector out) {
    for (int64_t i = 0; i < out.n; i++) {
        if (last[i] == last_bounds.upper[i])
            out.at[i] = bounds.upper[i];
        else if (last[i] == last_bounds.lower[i])
            out.at[i] = bounds.lower[i];
    }
}

/* Move coefficients, or only free ones, towards a bound until their sum has no excess; return the remaining excess. */
static double remove_excess(double excess, Vector beta, Bounds bounds, bool only_free) {
    for (int64_t i = 0; i < beta.n && excess != 0.0; i++) {
        double *value = &beta.at[i];
        if (only_free && !(bounds.lower[i] < *value && *value < bounds.upper[i])) continue;
        double end = excess > 0.0 ? bounds.lower[i] : bounds.upper[i];
        double room = *value - end;
        if (fabs(room) <= fabs(excess)) {
            *value = end;
            excess -= room;
        } else {
            *value -= excess;
            excess = 0.0;
        }
    }
    return excess;
}

/* Make the coefficients sum to zero, if possible by changing free ones only. */
static void balance(Vector beta, Bounds bounds) {
    double excess = 0.0;
    for (int64_t i = 0; i < beta.n; i++) excess += beta.at[i];
    excess = remove_excess(excess, beta, bounds, true);
    remove_excess(excess, beta, bounds, false);
}

static void call_start(const Slot *a, Slot *r) {
    (void)r;
    const double *before = a[0].vector.at, *last = a[1].vector.at;
    Bounds last_bounds = bounds_of(a[2].matrix), bounds = bounds_of(a[3].matrix);
    Vector beta = a[4].vector;
    extrapolate(before, last, bounds, beta);
    follow_bounds(last, last_bounds, bounds, beta);
    balance(beta, bounds);
}

/* `Packing` of Python: the coefficients of m machines over n vectors. */
typedef struct {
    Matrix vectors;
    Vector intercept, highest, lowest;
    IntVector moves, sides, move_ends, free;
    Vector free_coef;
    IntVector free_ends;
} Packing;

static Packing packing_from(const Slot *a) {
    return (Packing){a[0].matrix,     a[1].vector,     a[2].vector,     a[3].vector, a[4].int_vector,
                     a[5].int_vector, a[6].int_vector, a[7].int_vector, a[8].vector, a[9].int_vector};
}

/* Return the sum of coef_f values[free_f], in four independent partial sums. */
static inline double sum_free(const int64_t *free, const double *coef, int64_t n, Row values) {
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    int64_t f = 0;
    for (; f + 4 <= n; f += 4) {
        a += coef[f] * value_at(values, free[f]);
        b += coef[f + 1] * value_at(values, free[f + 1]);
        c += coef[f + 2] * value_at(values, free[f + 2]);
        d += coef[f + 3] * value_at(values, free[f + 3]);
    }
    for (; f < n; f++) a += coef[f] * value_at(values, free[f]);
    return (a + b) + (c + d);
}

/* Write the decision values of one row, given its kernel values with all support vectors of the bank. */
static inline void decide(const Packing *packing, Row values, double *out) {
    double up = 0.0, down = 0.0;
    int64_t move = 0, first = 0;
    for (int64_t j = 0; j < packing->intercept.n; j++) {
        /* 1. Sums of the kernel values at the bounds: add what reaches a bound, subtract what leaves it. */
        for (; move < packing->move_ends.at[j]; move++) {
            int64_t number = packing->moves.at[move];
            double value = number > 0 ? value_at(values, number - 1) : -value_at(values, -number - 1);
            if (packing->sides.at[move] != 0)
                up += value;
            else
                down += value;
        }
        /* 2. Support vectors with free coefficients. */
        int64_t stop = packing->free_ends.at[j];
        double sum = sum_free(packing->free.at + first, packing->free_coef.at + first, stop - first, values);
        first = stop;
        /* 3. The decision value. */
        double at_bounds = packing->highest.at[j] * up + packing->lowest.at[j] * down;
        out[j] = packing->intercept.at[j] + at_bounds + sum;
    }
}

static void call_decide(const Slot *a, Slot *r) {
    (void)r;
    enum { PACKING_SLOTS = 10 };
    KernelShape shape = kernel_shape_of(a);
    a += KERNEL_SHAPE_SLOTS;
    Packing packing = packing_from(a);
    a += PACKING_SLOTS;
    Matrix X = a[0].matrix, out = a[2].matrix;
    Array values = a[1].array;
    int64_t n = packing.vectors.columns;
    for (int64_t i = 0; i < X.rows; i++) {
        const double *x = X.at + i * X.columns;
        double *decisions = out.at + i * out.columns;
        if (values.type == FLOAT32) {
            kernel_row_floats(shape, packing.vectors, x, 0, n, values.at);
            decide(&packing, (Row){values.at, FLOAT32}, decisions);
        } else {
            kernel_row(shape, packing.vectors, x, 0, n, values.at);
            decide(&packing, (Row){values.at, FLOAT64}, decisions);
        }
    }
}

const Kernel svm_implied_bank_kernels[] = {
    {"svm.implied_bank._start", "before: f64[n] last: f64[n] last_bounds: f64[2,n] bounds: f64[2,n] beta: =f64[n]",
     call_start, false},
    {"svm.implied_bank._decide",
     KERNEL_SHAPE " packing: (vectors: f64[d,n] intercept: f64[m] highest: f64[m] lowest: f64[m] moves: i64[move] "
                  "sides: i64[move] move_ends: i64[m] free: i64[free] free_coef: f64[free] free_ends: i64[m]) "
                  "X: f64[rows,d] values: =f32|f64[n] out: =f64[rows,m]",
     call_decide, true},
    {0},
};
