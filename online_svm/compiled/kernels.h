/* Kernel values whose bits depend on the two points alone.

Points are stored feature-major, shape (d, n), so that compilers vectorise *across* points. The sum of each pair runs
over the features in order, with one rounding a term, whatever the position of the point. Hence k(u, v) == k(v, u) bit
for bit. Values of the rbf kernel are rounded to 24 bits, so that rows can be kept as float32; WIDE_RBF keeps 53. */
#ifndef ONLINE_SVM_KERNELS_H
#define ONLINE_SVM_KERNELS_H

#include "compiled/kernel.h"

typedef enum { LINEAR, POLY, RBF, WIDE_RBF } KernelCode;

/* `Kernel.shape` in Python: code, gamma, coef0, degree. */
typedef struct {
    int64_t code;
    double gamma, coef0;
    int64_t degree;
} KernelShape;

#define KERNEL_SHAPE "shape: (code: int gamma: float coef0: float degree: int)"
enum { KERNEL_SHAPE_SLOTS = 4, ROWS_TOGETHER = 4 };
enum { BLOCK = 128 }; /* BLOCK points of 20 features are 20 KiB, which stay in the cache */

/* Read the shape from the arguments declared by KERNEL_SHAPE. */
static inline KernelShape kernel_shape_of(const Slot *a) {
    return (KernelShape){a[0].integer, a[1].real, a[2].real, a[3].integer};
}

/* Write |x - X[:, first + j]|^2 to sums[j] for the points from `first` to `stop`. */
void squared_distances(Matrix X, const double *x, int64_t first, int64_t stop, double *sums);

/* The same for n <= ROWS_TOGETHER rows x, shape (n, d); each writes its sums `step` after those of the one before. */
void squared_distances_of_rows(Matrix X, const double *x, int64_t n, int64_t first, int64_t stop, double *sums,
                               int64_t step);

/* Write k(x, X[:, j]) to out[j - first] for first <= j < stop. */
void kernel_row(KernelShape shape, Matrix X, const double *x, int64_t first, int64_t stop, double *out);

/* The same for n <= ROWS_TOGETHER rows x, shape (n, d), and a block of points; `out` has shape (n, BLOCK). */
void kernel_rows(KernelShape shape, Matrix X, const double *x, int64_t n, int64_t first, int64_t stop, double *out);

/* `kernel_row` in float32, which is exact for the rbf kernel. */
void kernel_row_floats(KernelShape shape, Matrix X, const double *x, int64_t first, int64_t stop, float *out);

/* k(u, v) of two points of d features, with the bits of `kernel_row`. */
double kernel_value(KernelShape shape, const double *u, const double *v, int64_t d);

#endif
