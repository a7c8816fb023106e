/* Softmax of linear functions of rows, and its loss, minimised by L-BFGS (Liu & Nocedal 1989); sums are in fixed order. */
#include "compiled/elementary.h"
#include "compiled/extremes.h"
#include "compiled/kernel.h"
#include <math.h>

/* Training examples: n rows of K values, their classes, and each class's target for its own rows. */
typedef struct {
    Matrix X;
    const int64_t *codes;
    const double *highs;
} Examples;

/* The form of a function of K classes. Its parameters are K (diagonal) or K K slopes, then K biases. */
typedef struct {
    bool is_diagonal;
    double ridge;
    int64_t classes, size;
} Form;

#define NEARLY_FLAT 1e-9   /* the derivative per example, in units of the largest score */
enum { MOST_STEPS = 200 }; /* ten are usual */

/* Write the K linear values at one row. */
static void linear_into(const double *x, const double *theta, bool is_diagonal, int64_t biases, double *z, int64_t K) {
    for (int64_t k = 0; k < K; k++) {
        if (is_diagonal) {
            z[k] = theta[k] * x[k] + theta[biases + k];
            continue;
        }
        double total = theta[biases + k];
        for (int64_t j = 0; j < K; j++) total += theta[k * K + j] * x[j];
        z[k] = total;
    }
}

/* Replace a row by its softmax; return the log-sum-exp. */
static double softmax_in_place(double *z, int64_t classes) {
    double top = z[0], total = 0.0;
    for (int64_t k = 1; k < classes; k++) top = z[k] > top ? z[k] : top;
    for (int64_t k = 0; k < classes; k++) {
        z[k] = exp_nonpositive(z[k] - top);
        total += z[k];
    }
    for (int64_t k = 0; k < classes; k++) z[k] /= total;
    return top + log_of(total);
}

/* Add the ridge, which pulls the slopes to the identity, to the gradient; return the loss with the ridge. */
static double add_ridge(const Form *form, const double *theta, double *gradient, double loss) {
    int64_t K = form->classes;
    for (int64_t k = 0; k < K; k++)
        for (int64_t j = 0; j < K; j++) {
            if (form->is_diagonal && k != j) continue;
            int64_t place = form->is_diagonal ? k : k * K + j;
            double distance = theta[place] - (k == j ? 1.0 : 0.0);
            loss += 0.5 * form->ridge * distance * distance;
            gradient[place] += form->ridge * distance;
        }
    return loss;
}

/* Return the summed cross-entropy plus the ridge, and write its gradient; `z`, shape (2, K), is scratch. */
static double loss_and_gradient(const Examples *examples, const Form *form, const double *theta, double *gradient,
                                double *z) {
    int64_t K = form->classes, biases = form->size - K;
    double *p = z + K, loss = 0.0;
    for (int64_t j = 0; j < form->size; j++) gradient[j] = 0.0;
    for (int64_t i = 0; i < examples->X.rows; i++) {
        const double *x = examples->X.at + i * K;
        int64_t y = examples->codes[i];
        double high = examples->highs[y], low = (1.0 - high) / (double)(K - 1);
        /* 1. Values, probabilities and the loss: log-sum-exp minus the target-weighted mean value. */
        linear_into(x, theta, form->is_diagonal, biases, z, K);
        double total = 0.0;
        for (int64_t k = 0; k < K; k++) {
            total += z[k];
            p[k] = z[k];
        }
        loss += softmax_in_place(p, K) - (high - low) * z[y] - low * total;
        /* 2. Residuals and their terms of the gradient. */
        for (int64_t k = 0; k < K; k++) {
            double residual = p[k] - (k == y ? high : low);
            gradient[biases + k] += residual;
            if (form->is_diagonal)
                gradient[k] += residual * x[k];
            else
                for (int64_t j = 0; j < K; j++) gradient[k * K + j] += residual * x[j];
        }
    }
    /* 3. The ridge. */
    return add_ridge(form, theta, gradient, loss);
}

static void call_probabilities_into(const Slot *a, Slot *r) {
    (void)r;
    Matrix X = a[0].matrix, found = a[3].matrix;
    int64_t K = X.columns;
    for (int64_t i = 0; i < X.rows; i++) {
        linear_into(X.at + i * K, a[1].vector.at, a[2].integer, a[1].vector.n - K, found.at + i * K, K);
        softmax_in_place(found.at + i * K, K);
    }
}

/* Return the first derivative of the cross-entropy at beta, and write the second. */
static double derivatives(const Examples *examples, double beta, double *p, double *curvature) {
    int64_t K = examples->X.columns;
    double slope = 0.0;
    *curvature = 0.0;
    for (int64_t i = 0; i < examples->X.rows; i++) {
        const double *s = examples->X.at + i * K;
        int64_t y = examples->codes[i];
        double high = examples->highs[y], low = (1.0 - high) / (double)(K - 1);
        for (int64_t k = 0; k < K; k++) p[k] = beta * s[k];
        softmax_in_place(p, K);
        double mean = 0.0, square = 0.0, by_target = 0.0;
        for (int64_t k = 0; k < K; k++) {
            mean += p[k] * s[k];
            square += p[k] * s[k] * s[k];
            by_target += (k == y ? high : low) * s[k];
        }
        slope += mean - by_target;
        *curvature += square - mean * mean;
    }
    return slope;
}

/* Return the beta >= 0 that minimises the cross-entropy of softmax(beta s). */
static double inverse_temperature(const Examples *examples, double *p) {
    double enough = NEARLY_FLAT * (double)examples->X.rows, curvature;
    if (derivatives(examples, 0.0, p, &curvature) >= 0.0) return 0.0; /* the scores do not favour the true classes */
    /* 1. Bracket the root of the derivative, which increases because the loss is convex. */
    double below = 0.0, above = 1.0;
    while (derivatives(examples, above, p, &curvature) < 0.0 && above < 1e9) {
        below = above;
        above = 2.0 * above;
    }
    /* 2. Newton's method; a step that leaves the bracket is replaced by a bisection. */
    double beta = 0.5 * (below + above);
    for (int k = 0; k < MOST_STEPS; k++) {
        double slope = derivatives(examples, beta, p, &curvature);
        if (fabs(slope) <= enough) break;
        if (slope < 0.0)
            below = beta;
        else
            above = beta;
        double step = curvature > 0.0 ? beta - slope / curvature : below;
        beta = below < step && step < above ? step : 0.5 * (below + above);
    }
    return beta;
}

static void call_inverse_temperature(const Slot *a, Slot *r) {
    Examples examples = {a[0].matrix, a[1].int_vector.at, a[2].vector.at};
    r->real = inverse_temperature(&examples, a[3].vector.at);
}

enum { MEMORY = 10, MOST_ITERATIONS = 200 }; /* remembered pairs; usually twenty to forty iterations */
#define FLAT_GRADIENT 1e-5                   /* largest component of the gradient, per example */
#define SUFFICIENT_DECREASE 1e-4             /* Armijo's constant */
#define SHORTEST_STEP 1e-10

/* Scratch: MEMORY pairs of a step and its gradient change, and single vectors. */
typedef struct {
    double *steps, *changes;                              /* shape (MEMORY, size) */
    double *gradient, *other, *trial, *direction, *scale; /* shape (size,) */
    double *of_classes;                                   /* shape (4, K) */
    int64_t size, n_pairs;
} Work;

static double dot(const double *u, const double *v, int64_t size) {
    double total = 0.0;
    for (int64_t j = 0; j < size; j++) total += u[j] * v[j];
    return total;
}

static void add(double *u, double factor, const double *v, int64_t size) {
    for (int64_t j = 0; j < size; j++) u[j] += factor * v[j];
}

static void multiply(double *u, double factor, const double *v, int64_t size) {
    for (int64_t j = 0; j < size; j++) u[j] *= factor * v[j];
}

static double weighted_square(const double *u, const double *weights, int64_t size) {
    double total = 0.0;
    for (int64_t j = 0; j < size; j++) total += weights[j] * u[j] * u[j];
    return total;
}

/* Write the reciprocal of an estimate of the Hessian's diagonal; without this scaling rare classes take hundreds of
iterations.

The estimate assumes that each class has its overall frequency f at every example: f (1 - f) times the sum of squares of
the parameter's inputs, plus the ridge. */
static void write_scale(const Examples *examples, const Form *form, Work *work) {
    int64_t n = examples->X.rows, K = form->classes, biases = form->size - K;
    double *counts = work->of_classes, *squares = work->of_classes + K;
    for (int64_t k = 0; k < K; k++) counts[k] = squares[k] = 0.0;
    for (int64_t i = 0; i < n; i++) {
        counts[examples->codes[i]] += 1.0;
        for (int64_t j = 0; j < K; j++) squares[j] += examples->X.at[i * K + j] * examples->X.at[i * K + j];
    }
    for (int64_t k = 0; k < K; k++) {
        double frequency = (counts[k] + 1.0) / (double)(n + K);
        double spread = frequency * (1.0 - frequency);
        work->scale[biases + k] = 1.0 / (spread * (double)n);
        for (int64_t j = 0; j < K; j++) {
            if (form->is_diagonal && k != j) continue;
            double curvature = spread * squares[j] + form->ridge;
            work->scale[form->is_diagonal ? k : k * K + j] = curvature > 0.0 ? 1.0 / curvature : 1.0;
        }
    }
}

/* Write the search direction: minus the inverse Hessian, estimated from the pairs, times the gradient. */
static void find_direction(Work *work) {
    int64_t size = work->size, first = work->n_pairs > MEMORY ? work->n_pairs - MEMORY : 0;
    double *direction = work->direction, weights[MEMORY];
    for (int64_t j = 0; j < size; j++) direction[j] = -work->gradient[j];
    for (int64_t number = work->n_pairs - 1; number >= first; number--) {
        int64_t place = number % MEMORY;
        const double *s = work->steps + place * size, *y = work->changes + place * size;
        weights[place] = dot(s, direction, size) / dot(s, y, size);
        add(direction, -weights[place], y, size);
    }
    if (work->n_pairs > 0) {
        int64_t place = (work->n_pairs - 1) % MEMORY;
        const double *s = work->steps + place * size, *y = work->changes + place * size;
        multiply(direction, dot(s, y, size) / weighted_square(y, work->scale, size), work->scale, size);
    } else {
        multiply(direction, 1.0, work->scale, size);
    }
    for (int64_t number = first; number < work->n_pairs; number++) {
        int64_t place = number % MEMORY;
        const double *s = work->steps + place * size, *y = work->changes + place * size;
        add(direction, weights[place] - dot(y, direction, size) / dot(s, y, size), s, size);
    }
}

/* Move `theta` to the minimum of the loss; return the number of iterations. */
static int64_t minimise(const Examples *examples, const Form *form, double *theta, Work *work) {
    int64_t size = work->size;
    double *z = work->of_classes + 2 * form->classes;
    double loss = loss_and_gradient(examples, form, theta, work->gradient, z);
    write_scale(examples, form, work);
    for (int64_t iteration = 0; iteration < MOST_ITERATIONS; iteration++) {
        if (largest_magnitude(work->gradient, size) <= FLAT_GRADIENT * (double)examples->X.rows) return iteration;
        /* 1. The search direction; without pairs, scaled steepest descent. */
        find_direction(work);
        double slope = dot(work->direction, work->gradient, size);
        if (!(slope < 0.0)) return iteration; /* not a descent direction, by rounding */
        /* 2. Line search: halve the step until the loss falls enough (Armijo). */
        double length = 1.0, found = loss;
        while (length >= SHORTEST_STEP) {
            for (int64_t j = 0; j < size; j++) work->trial[j] = theta[j] + length * work->direction[j];
            found = loss_and_gradient(examples, form, work->trial, work->other, z);
            if (found <= loss + SUFFICIENT_DECREASE * length * slope) break;
            length *= 0.5;
        }
        if (length < SHORTEST_STEP) return iteration;
        /* 3. Remember the pair if its curvature is positive. */
        double *step = work->steps + work->n_pairs % MEMORY * size;
        double *change = work->changes + work->n_pairs % MEMORY * size;
        for (int64_t j = 0; j < size; j++) {
            step[j] = work->trial[j] - theta[j];
            change[j] = work->other[j] - work->gradient[j];
        }
        if (dot(step, change, size) > 0.0) work->n_pairs++;
        loss = found;
        for (int64_t j = 0; j < size; j++) {
            theta[j] = work->trial[j];
            work->gradient[j] = work->other[j];
        }
    }
    return MOST_ITERATIONS;
}

static void call_minimise(const Slot *a, Slot *r) {
    Examples examples = {a[0].matrix, a[1].int_vector.at, a[2].vector.at};
    int64_t size = a[3].vector.n;
    Form form = {a[4].integer, a[5].real, examples.X.columns, size};
    double *pairs = a[6].cube.at, *vectors = a[7].matrix.at;
    Work work = {.steps = pairs,
                 .changes = pairs + MEMORY * size,
                 .gradient = vectors,
                 .other = vectors + size,
                 .trial = vectors + 2 * size,
                 .direction = vectors + 3 * size,
                 .scale = vectors + 4 * size,
                 .of_classes = a[8].matrix.at,
                 .size = size,
                 .n_pairs = 0};
    r->integer = minimise(&examples, &form, a[3].vector.at, &work);
}

const Kernel calibration_joint_kernels[] = {
    {"calibration.joint.probabilities_into", "X: f64[n,k] theta: f64[*] diagonal: bool found: =f64[n,k]",
     call_probabilities_into, false},
    {"calibration.joint._inverse_temperature", "scores: f64[n,k] codes: i64[n] highs: f64[k] p: =f64[k] -> float",
     call_inverse_temperature, true},
    {"calibration.joint._minimise",
     "examples: (X: f64[n,k] codes: i64[n] highs: f64[k]) theta: =f64[m] diagonal: bool ridge: float "
     "work: (pairs: =f64[2,10,m] vectors: =f64[5,m] of_classes: =f64[4,k]) -> int",
     call_minimise, true},
    {0},
};
