/* Logistic regression with a quadratic penalty, by Newton's method, with sums in a fixed order. */
#include "refit/committee/ridge_logistic.h"

#include "compiled/elementary.h"
#include "compiled/kernel.h"
#include "compiled/ordered_sums.h"

#define FORCING 1e-3        /* relative residual at which a truncated Newton direction is accepted */
enum { MAX_PRODUCTS = 60 }; /* products with the Hessian for one direction */

/* A regression of n examples on p features, and its scratch; see `Regression` in Python. */
typedef struct {
    const double *features; /* shape (p, n) */
    const double *targets, *costs, *centre, *ridge;
    int64_t p, n;
    double *values, *curvature, *residuals, *products; /* shape (n,) */
    double *diagonal, *rest, *scaled, *search, *image; /* shape (p,): conjugate gradients */
    double *gradient, *direction, *start;              /* shape (p,) */
} Regression;

/* Write sum_f weights_f features[f, i] to out[i]. */
static void weighted_sums(const Regression *of, const double *weights, double *out) {
    for (int64_t i = 0; i < of->n; i++) out[i] = 0.0;
    for (int64_t f = 0; f < of->p; f++) {
        const double *row = of->features + f * of->n;
        for (int64_t i = 0; i < of->n; i++) out[i] = multiply_add(weights[f], row[i], out[i]);
    }
}

/* Write the gradient at `weights`, and the curvature c_i p_i (1 - p_i) of each example, for costs c_i. */
static void write_gradient(const Regression *of, const double *weights) {
    weighted_sums(of, weights, of->values);
    for (int64_t i = 0; i < of->n; i++) {
        double p = logistic(of->values[i]);
        of->residuals[i] = of->costs[i] * (p - of->targets[i]);
        of->curvature[i] = of->costs[i] * p * (1.0 - p);
    }
    for (int64_t f = 0; f < of->p; f++) {
        double penalty = of->ridge[f] * (weights[f] - of->centre[f]);
        of->gradient[f] = dot(of->features + f * of->n, of->residuals, of->n) + penalty;
    }
}

/* Approximate H^-1 gradient by conjugate gradients, preconditioned by the diagonal of H. */
static void find_direction(const Regression *of) {
    int64_t n = of->n, p = of->p;
    /* 1. The diagonal; start at zero, where the residual is the whole gradient. */
    for (int64_t f = 0; f < p; f++) {
        const double *row = of->features + f * n;
        for (int64_t i = 0; i < n; i++) of->products[i] = of->curvature[i] * row[i];
        of->diagonal[f] = dot(row, of->products, n) + of->ridge[f];
        of->direction[f] = 0.0;
        of->rest[f] = of->gradient[f];
        of->search[f] = of->scaled[f] = of->rest[f] / of->diagonal[f];
    }
    double size = dot(of->rest, of->scaled, p);
    double tolerance = FORCING * FORCING * size;
    for (int k = 0; k < MAX_PRODUCTS; k++) {
        if (!(size > tolerance)) return;
        /* 2. The Hessian times the search direction. */
        weighted_sums(of, of->search, of->products);
        for (int64_t i = 0; i < n; i++) of->products[i] *= of->curvature[i];
        for (int64_t f = 0; f < p; f++)
            of->image[f] = dot(of->features + f * n, of->products, n) + of->ridge[f] * of->search[f];
        /* 3. Move to the minimum along it; the next direction is conjugate to it. */
        double step = size / dot(of->search, of->image, p);
        for (int64_t f = 0; f < p; f++) {
            of->direction[f] += step * of->search[f];
            of->rest[f] -= step * of->image[f];
            of->scaled[f] = of->rest[f] / of->diagonal[f];
        }
        double before = size;
        size = dot(of->rest, of->scaled, p);
        for (int64_t f = 0; f < p; f++) of->search[f] = of->scaled[f] + size / before * of->search[f];
    }
}

/* Take truncated Newton steps (Dembo and Steihaug 1983); return their number. */
static int64_t fit(const Regression *of, double *weights, int64_t steps, double tol) {
    write_gradient(of, weights);
    for (int64_t taken = 0; taken < steps; taken++) {
        /* 1. Stop at the minimum. */
        double largest = 0.0;
        for (int64_t f = 0; f < of->p; f++) largest = fabs(of->gradient[f]) > largest ? fabs(of->gradient[f]) : largest;
        if (!(largest > tol)) return taken;
        /* 2. The Newton direction; a step against it descends with `slope`. */
        find_direction(of);
        double slope = dot(of->gradient, of->direction, of->p), step = 1.0;
        for (int64_t f = 0; f < of->p; f++) of->start[f] = weights[f];
        /* 3. Halve the step while the objective ascends at its end. */
        for (int k = 0; k < MAX_HALVINGS; k++) {
            for (int64_t f = 0; f < of->p; f++) weights[f] = of->start[f] - step * of->direction[f];
            write_gradient(of, weights);
            if (-dot(of->gradient, of->direction, of->p) <= OVERSHOOT * slope) break;
            step *= 0.5;
        }
    }
    return steps;
}

static void call_fit(const Slot *a, Slot *r) {
    int64_t p = a[0].matrix.rows, n = a[0].matrix.columns;
    double *of_rows = a[8].matrix.at, *of_features = a[9].matrix.at;
    Regression of = {
        .features = a[0].matrix.at,
        .targets = a[1].vector.at,
        .costs = a[2].vector.at,
        .centre = a[3].vector.at,
        .ridge = a[4].vector.at,
        .p = p,
        .n = n,
        .values = of_rows,
        .curvature = of_rows + n,
        .residuals = of_rows + 2 * n,
        .products = of_rows + 3 * n,
        .diagonal = of_features,
        .rest = of_features + p,
        .scaled = of_features + 2 * p,
        .search = of_features + 3 * p,
        .image = of_features + 4 * p,
        .gradient = of_features + 5 * p,
        .direction = of_features + 6 * p,
        .start = of_features + 7 * p,
    };
    r->integer = fit(&of, a[5].vector.at, a[6].integer, a[7].real);
}

const Kernel refit_committee_ridge_logistic_kernels[] = {
    {"refit.committee.ridge_logistic._fit",
     "problem: (features: f64[p,n] targets: f64[n] costs: f64[n] centre: f64[p] ridge: f64[p]) weights: =f64[p] "
     "steps: int tol: float of_rows: =f64[4,n] of_features: =f64[8,p] -> int",
     call_fit, true},
    {0},
};
