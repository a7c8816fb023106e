/* Sigmoids and stack of the members of a committee; see `stack.py`. Shapes: n rows, M members, S decisions. */
#include "compiled/elementary.h"
#include "compiled/extremes.h"
#include "compiled/kernel.h"
#include "refit/committee/ridge_logistic.h"

#define MAX_LOG_ODDS 8.0
enum { MAX_NEWTON_STEPS = 12, ROWS = 64 }; /* rows of a chunk */

/* The clipped log-odds of a score by a sigmoid. */
static inline double sigmoid_log_odds(double slope, double score, double intercept) {
    return bounded_by(multiply_add(slope, score, intercept), -MAX_LOG_ODDS, MAX_LOG_ODDS);
}

static void call_log_odds(const Slot *a, Slot *r) {
    (void)r;
    Cube scores = a[0].cube;
    const double *slope = a[1].matrix.at, *intercept = a[2].matrix.at;
    double *odds = a[3].cube.at;
    int64_t size = scores.rows * scores.columns;
    for (int64_t i = 0; i < scores.planes; i++)
        for (int64_t j = 0; j < size; j++)
            odds[i * size + j] = sigmoid_log_odds(slope[j], scores.at[i * size + j], intercept[j]);
}

/* Write the stacked log-odds, summed over the members in order. */
static void call_apply(const Slot *a, Slot *r) {
    (void)r;
    Cube scores = a[0].cube;
    const double *slope = a[1].matrix.at, *intercept = a[2].matrix.at, *weights = a[3].vector.at;
    double constant = a[4].vector.at[0], *out = a[5].matrix.at;
    int64_t members = scores.rows, decisions = scores.columns;
    for (int64_t i = 0; i < scores.planes; i++)
        for (int64_t s = 0; s < decisions; s++) {
            double total = constant;
            for (int64_t m = 0; m < members; m++) {
                int64_t at = m * decisions + s;
                double score = scores.at[i * members * decisions + at];
                total = multiply_add(weights[m], sigmoid_log_odds(slope[at], score, intercept[at]), total);
            }
            out[i * decisions + s] = total;
        }
}

/* The examples of a softmax stack, and scratch. */
typedef struct {
    Cube odds;            /* shape (n, M, S) */
    const int64_t *codes; /* shape (n,) */
    const double *centre; /* shape (M,) */
    double ridge;
    double *gradient, *direction, *start; /* shape (M,) */
    double *hessian;                      /* shape (M, M) */
    double *turned;                       /* shape (M S, ROWS): log-odds of the rows of a chunk */
    double *p, *mean, *covariance;        /* shapes (S, ROWS), (M, ROWS), (ROWS,) */
    double *highest, *sum;                /* shape (ROWS,) */
} Stack;

/* Write the softmax of the weighted sums of the first n rows of a chunk to p. */
static void softmax_of_rows(const Stack *of, int64_t n, const double *weights) {
    int64_t members = of->odds.rows, classes = of->odds.columns;
    double *highest = of->highest, *sum = of->sum;
    for (int64_t i = 0; i < n; i++) highest[i] = -INFINITY, sum[i] = 0.0;
    for (int64_t k = 0; k < classes; k++) {
        double *p = of->p + k * ROWS;
        for (int64_t i = 0; i < n; i++) p[i] = 0.0;
        for (int64_t m = 0; m < members; m++) {
            const double *odds = of->turned + (m * classes + k) * ROWS;
            for (int64_t i = 0; i < n; i++) p[i] = multiply_add(weights[m], odds[i], p[i]);
        }
        for (int64_t i = 0; i < n; i++) highest[i] = p[i] > highest[i] ? p[i] : highest[i];
    }
    for (int64_t k = 0; k < classes; k++) {
        double *p = of->p + k * ROWS;
        for (int64_t i = 0; i < n; i++) {
            p[i] = exp_nonpositive(p[i] - highest[i]);
            sum[i] += p[i];
        }
    }
    for (int64_t k = 0; k < classes; k++)
        for (int64_t i = 0; i < n; i++) of->p[k * ROWS + i] /= sum[i];
}

/* Write the mean over the classes of member m's log-odds, of n rows. */
static void write_means(const Stack *of, int64_t n, int64_t m) {
    int64_t classes = of->odds.columns;
    double *mean = of->mean + m * ROWS;
    for (int64_t i = 0; i < n; i++) mean[i] = 0.0;
    for (int64_t k = 0; k < classes; k++) {
        const double *p = of->p + k * ROWS, *odds = of->turned + (m * classes + k) * ROWS;
        for (int64_t i = 0; i < n; i++) mean[i] = multiply_add(p[i], odds[i], mean[i]);
    }
}

/* Write the covariance over the classes of the log-odds of members m and l, of n rows. */
static void write_covariances(const Stack *of, int64_t n, int64_t m, int64_t l) {
    int64_t classes = of->odds.columns;
    const double *mean_m = of->mean + m * ROWS, *mean_l = of->mean + l * ROWS;
    double *total = of->covariance;
    for (int64_t i = 0; i < n; i++) total[i] = 0.0;
    for (int64_t k = 0; k < classes; k++) {
        const double *p = of->p + k * ROWS;
        const double *of_m = of->turned + (m * classes + k) * ROWS, *of_l = of->turned + (l * classes + k) * ROWS;
        for (int64_t i = 0; i < n; i++)
            total[i] = multiply_add(p[i], (of_m[i] - mean_m[i]) * (of_l[i] - mean_l[i]), total[i]);
    }
}

/* Write the gradient and the lower half of the Hessian of the penalised negative log-likelihood.

The derivative by w_m is sum_i (E_i[l_m] - l_m of the true class), where l_m are the log-odds of member m and E_i is the
mean over the classes by their probability. The Hessian is the sum of the covariances of the l_m. What a row adds is
computed for a chunk of rows at once, in vectors; it is added row by row, in order. */
static void write_moments(const Stack *of, const double *weights) {
    int64_t members = of->odds.rows, classes = of->odds.columns, width = members * classes;
    /* 1. The penalty. */
    for (int64_t k = 0; k < members * members; k++) of->hessian[k] = 0.0;
    for (int64_t m = 0; m < members; m++) {
        of->gradient[m] = of->ridge * (weights[m] - of->centre[m]);
        of->hessian[m * members + m] = of->ridge;
    }
    for (int64_t first = 0; first < of->odds.planes; first += ROWS) {
        int64_t n = of->odds.planes - first < ROWS ? of->odds.planes - first : ROWS;
        /* 2. The probabilities of the classes. */
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < width; j++) of->turned[j * ROWS + i] = of->odds.at[(first + i) * width + j];
        softmax_of_rows(of, n, weights);
        /* 3. Means and covariances of the log-odds of the members. */
        for (int64_t m = 0; m < members; m++) {
            write_means(of, n, m);
            double gradient = of->gradient[m];
            for (int64_t i = 0; i < n; i++)
                gradient += of->mean[m * ROWS + i] - of->turned[(m * classes + of->codes[first + i]) * ROWS + i];
            of->gradient[m] = gradient;
            for (int64_t l = 0; l <= m; l++) {
                write_covariances(of, n, m, l);
                double total = of->hessian[m * members + l];
                for (int64_t i = 0; i < n; i++) total += of->covariance[i];
                of->hessian[m * members + l] = total;
            }
        }
    }
}

/* Write A^-1 b to b by Cholesky; A is positive definite, and only its lower half is read. */
static void solve(double *A, double *b, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double total = A[i * n + j];
            for (int64_t k = 0; k < j; k++) total -= A[i * n + k] * A[j * n + k];
            A[i * n + j] = i == j ? sqrt(total) : total / A[j * n + j];
        }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < i; k++) b[i] -= A[i * n + k] * b[k];
        b[i] /= A[i * n + i];
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t k = i + 1; k < n; k++) b[i] -= A[k * n + i] * b[k];
        b[i] /= A[i * n + i];
    }
}

/* Minimise the penalised negative log-likelihood by Newton's method; halve a step while the loss ascends at its end. */
static void fit_more(const Stack *of, double *weights, double tol) {
    int64_t members = of->odds.rows;
    write_moments(of, weights);
    for (int k = 0; k < MAX_NEWTON_STEPS; k++) {
        if (!(largest_magnitude(of->gradient, members) > tol)) return;
        for (int64_t m = 0; m < members; m++) of->direction[m] = of->gradient[m];
        solve(of->hessian, of->direction, members);
        double slope = 0.0, step = 1.0;
        for (int64_t m = 0; m < members; m++) slope = multiply_add(of->gradient[m], of->direction[m], slope);
        for (int64_t m = 0; m < members; m++) of->start[m] = weights[m];
        for (int halving = 0; halving < MAX_HALVINGS; halving++) {
            for (int64_t m = 0; m < members; m++) weights[m] = of->start[m] - step * of->direction[m];
            write_moments(of, weights);
            double uphill = 0.0;
            for (int64_t m = 0; m < members; m++) uphill = multiply_add(-of->gradient[m], of->direction[m], uphill);
            if (uphill <= OVERSHOOT * slope) break;
            step *= 0.5;
        }
    }
}

static void call_fit_more(const Slot *a, Slot *r) {
    (void)r;
    int64_t members = a[0].cube.rows, classes = a[0].cube.columns;
    double *of_members = a[6].matrix.at, *of_rows = a[7].matrix.at;
    Stack of = {.odds = a[0].cube,
                .codes = a[1].int_vector.at,
                .centre = a[2].vector.at,
                .ridge = a[3].real,
                .gradient = of_members,
                .direction = of_members + members,
                .start = of_members + 2 * members,
                .hessian = of_members + 3 * members,
                .turned = of_rows,
                .p = of_rows + members * classes * ROWS,
                .mean = of_rows + (members + 1) * classes * ROWS,
                .covariance = of_rows + ((members + 1) * classes + members) * ROWS,
                .highest = of_rows + ((members + 1) * classes + members + 1) * ROWS,
                .sum = of_rows + ((members + 1) * classes + members + 2) * ROWS};
    fit_more(&of, a[4].vector.at, a[5].real);
}

const Kernel refit_committee_stack_kernels[] = {
    {"refit.committee.stack._log_odds", "scores: f64[n,m,s] slope: f64[m,s] intercept: f64[m,s] odds: =f64[n,m,s]",
     call_log_odds, false},
    {"refit.committee.stack._apply",
     "scores: f64[n,m,s] slope: f64[m,s] intercept: f64[m,s] weights: f64[m] constant: f64[1] out: =f64[n,s]",
     call_apply, false},
    {"refit.committee.stack._fit_more",
     "examples: (odds: f64[n,m,s] codes: i64[n] centre: f64[m] ridge: float) weights: =f64[m] tol: float of_members: "
     "=f64[m+3,m] of_rows: =f64[*,64]",
     call_fit_more, true},
    {0},
};
