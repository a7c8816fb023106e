/* The "not a knot" cubic spline; see `logistic.py`. */
#include "compiled/kernel.h"

/* Scratch, one value a knot: distance to the next knot, rise over it, and the tridiagonal system of the slopes. */
typedef struct {
    double *h, *rise, *diagonal, *above, *slopes;
} System;

/* Write the slopes at the m knots, by Gaussian elimination. */
static void solve(const System *of, int64_t m) {
    double *h = of->h, *rise = of->rise, *diagonal = of->diagonal, *above = of->above, *slopes = of->slopes;
    /* 1. First row: the third derivative is continuous between the first two pieces. */
    double first = h[0] + h[1], last = h[m - 2] + h[m - 3];
    diagonal[0] = h[1], above[0] = first;
    slopes[0] = ((h[0] + 2.0 * first) * h[1] * rise[0] + h[0] * h[0] * rise[1]) / first;
    /* 2. Inner rows: the second derivative is continuous. */
    for (int64_t i = 1; i < m - 1; i++) {
        double factor = h[i] / diagonal[i - 1];
        diagonal[i] = 2.0 * (h[i - 1] + h[i]) - factor * above[i - 1];
        above[i] = h[i - 1];
        slopes[i] = 3.0 * (h[i] * rise[i - 1] + h[i - 1] * rise[i]) - factor * slopes[i - 1];
    }
    /* 3. Last row, like the first; then back substitution. */
    double end = (2.0 * last + h[m - 2]) * h[m - 3] * rise[m - 2] + h[m - 2] * h[m - 2] * rise[m - 3];
    double factor = last / diagonal[m - 2];
    slopes[m - 1] = (end / last - factor * slopes[m - 2]) / (h[m - 3] - factor * above[m - 2]);
    for (int64_t i = m - 2; i >= 0; i--) slopes[i] = (slopes[i] - above[i] * slopes[i + 1]) / diagonal[i];
}

static void call_fit(const Slot *a, Slot *r) {
    (void)r;
    Vector knots = a[0].vector;
    Matrix values = a[1].matrix;
    double *found = a[2].cube.at, *scratch = a[3].matrix.at;
    int64_t m = knots.n, functions = values.columns, piece = (m - 1) * functions;
    if (m < 4) return;
    System of = {scratch, scratch + m, scratch + 2 * m, scratch + 3 * m, scratch + 4 * m};
    for (int64_t i = 0; i < m - 1; i++) of.h[i] = knots.at[i + 1] - knots.at[i];
    for (int64_t k = 0; k < functions; k++) {
        const double *value = values.at + k;
        for (int64_t i = 0; i < m - 1; i++) of.rise[i] = (value[(i + 1) * functions] - value[i * functions]) / of.h[i];
        solve(&of, m);
        /* Compute the pieces from the values and slopes at their ends. */
        for (int64_t i = 0; i < m - 1; i++) {
            double bend = (of.slopes[i] + of.slopes[i + 1] - 2.0 * of.rise[i]) / of.h[i];
            double *at = found + i * functions + k;
            at[0] = bend / of.h[i];
            at[piece] = (of.rise[i] - of.slopes[i]) / of.h[i] - bend;
            at[2 * piece] = of.slopes[i];
            at[3 * piece] = value[i * functions];
        }
    }
}

const Kernel calibration_evidential_logistic_kernels[] = {
    {"calibration.evidential.logistic._fit", "knots: f64[m] values: f64[m,k] found: =f64[4,m-1,k] scratch: =f64[5,m]",
     call_fit, false},
    {0},
};
