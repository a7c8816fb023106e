#include "compiled/extremes.h"
#include "compiled/kernel.h"
#include <math.h>

enum { NO_ACTION = -1 };

/* Cost of each action by true label, shape (n_labels, n_actions); index and price of `review` if intervals decide it,
else index -1. */
typedef struct {
    Matrix costs;
    int64_t review;
    double price;
} Costs;

typedef struct {
    int64_t action;
    double cost;
} Decision;

/* Return the expected cost sum_y p(y) c(y, a) of an action (Elkan 2001, equation 1), over the first n_labels labels. */
static double expected(const Matrix *costs, int64_t action, const double *p, int64_t n_labels) {
    double sum = 0.0;
    for (int64_t label = 0; label < n_labels; label++) sum += p[label] * costs->at[label * costs->columns + action];
    return sum;
}

/* Return the action of least expected cost and its cost; skip `review` if intervals decide it. */
static Decision best(const Costs *of, const double *p, int64_t n_labels) {
    Decision found = {NO_ACTION, INFINITY};
    for (int64_t action = 0; action < of->costs.columns; action++) {
        if (action == of->review) continue;
        double cost = expected(&of->costs, action, p, n_labels);
        if (cost < found.cost) found = (Decision){action, cost};
    }
    return found;
}

/* Return the maximum excess of an action's cost over the best action's, for P(second label) in [lower, upper].

The excess is convex in the probability, so its maximum lies at an end of the interval. */
static double at_stake(const Costs *of, int64_t action, double lower, double upper) {
    double stake = 0.0;
    for (int end = 0; end < 2; end++) {
        double second = end == 0 ? lower : upper;
        double p[2] = {1.0 - second, second};
        stake = greater(stake, expected(&of->costs, action, p, 2) - best(of, p, 2).cost);
    }
    return stake;
}

static Decision decision(const Costs *of, const double *point, const double *lower, const double *upper) {
    int64_t n_labels = of->costs.rows;
    Decision found = best(of, point, n_labels);
    bool asks = 0 <= of->review && of->review < of->costs.columns && found.action != NO_ACTION;
    if (asks && of->price < at_stake(of, found.action, lower[1], upper[1]))
        found = (Decision){of->review, expected(&of->costs, of->review, point, n_labels)};
    return found;
}

static void call_decide(const Slot *a, Slot *r) {
    (void)r;
    Costs of = {a[0].matrix, a[1].integer, a[2].real};
    Matrix point = a[3].matrix, lower = a[4].matrix, upper = a[5].matrix;
    for (int64_t i = 0; i < point.rows; i++) {
        int64_t row = i * point.columns;
        Decision found = decision(&of, point.at + row, lower.at + row, upper.at + row);
        a[6].int_vector.at[i] = found.action;
        a[7].vector.at[i] = found.cost;
    }
}

enum { OWN, BY_LABEL, N_SUMS };
enum { ACTION, LABEL, TRUTH, N_COLUMNS };

/* Add the costs of rows (action, predicted label, true label), in order. */
static void call_add(const Slot *a, Slot *r) {
    (void)r;
    Matrix costs = a[0].matrix;
    IntMatrix rows = a[1].int_matrix;
    double *always = a[2].vector.at, *sums = a[4].vector.at;
    int64_t *taken = a[3].int_vector.at;
    for (int64_t i = 0; i < rows.rows; i++) {
        const int64_t *row = rows.at + N_COLUMNS * i;
        const double *of_truth = costs.at + row[TRUTH] * costs.columns;
        taken[row[ACTION]]++;
        sums[OWN] += of_truth[row[ACTION]];
        sums[BY_LABEL] += of_truth[row[LABEL]];
        for (int64_t j = 0; j < costs.columns; j++) always[j] += of_truth[j];
    }
}

const Kernel metrics_cost_matrix_kernels[] = {
    {"metrics.cost_matrix._decide",
     "costs: f64[k+2,a] review: int price: float"
     " bounds: (point: f64[m,k+2] lower: f64[m,k+2] upper: f64[m,k+2])"
     " found: (action: =i64[m] expected_cost: =f64[m])",
     call_decide, false},
    {"metrics.cost_matrix._add", "costs: f64[k,a] rows: i64[m,3] always: =f64[a] taken: =i64[a] sums: =f64[2]",
     call_add, false},
    {0},
};
