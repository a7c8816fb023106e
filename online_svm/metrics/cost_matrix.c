#include "compiled/kernel.h"
#include "metrics/scores.h"
#include <math.h>

enum { NO_ACTION = -1 };

typedef struct {
    int64_t action;
    double cost;
} Decision;

/* Return the expected cost sum_y p(y) c(y, a) of an action (Elkan 2001, equation 1). */
static double expected(const Matrix *costs, int64_t action, const double *p) {
    double sum = 0.0;
    for (int64_t label = 0; label < costs->rows; label++) sum += p[label] * costs->at[label * costs->columns + action];
    return sum;
}

/* Return the action of least expected cost and its cost. */
static Decision best(const Matrix *costs, const double *p) {
    Decision found = {NO_ACTION, INFINITY};
    for (int64_t action = 0; action < costs->columns; action++) {
        double cost = expected(costs, action, p);
        if (cost < found.cost) found = (Decision){action, cost};
    }
    return found;
}

static void call_decide(const Slot *a, Slot *r) {
    (void)r;
    Matrix costs = a[0].matrix, point = a[1].matrix;
    for (int64_t i = 0; i < point.rows; i++) {
        Decision found = best(&costs, point.at + i * point.columns);
        a[2].int_vector.at[i] = found.action;
        a[3].vector.at[i] = found.cost;
    }
}

enum { OWN, BY_LABEL, OWN_SQUARES };
enum { ACTION, LABEL, TRUTH, N_COLUMNS };

/* Add the costs of rows (action, predicted label, true label), in order, after `count` earlier ones. */
static void call_add(const Slot *a, Slot *r) {
    (void)r;
    Matrix costs = a[0].matrix;
    IntMatrix rows = a[1].int_matrix;
    double *always = a[2].vector.at, *sums = a[4].vector.at;
    int64_t *taken = a[3].int_vector.at, count = a[5].integer;
    for (int64_t i = 0; i < rows.rows; i++) {
        const int64_t *row = rows.at + N_COLUMNS * i;
        const double *of_truth = costs.at + row[TRUTH] * costs.columns;
        double n = (double)count + (double)i;
        taken[row[ACTION]]++;
        sums[OWN_SQUARES] += square_about_mean(of_truth[row[ACTION]], sums[OWN], n, 0.0);
        sums[OWN] += of_truth[row[ACTION]];
        sums[BY_LABEL] += of_truth[row[LABEL]];
        for (int64_t j = 0; j < costs.columns; j++) always[j] += of_truth[j];
    }
}

const Kernel metrics_cost_matrix_kernels[] = {
    {"metrics.cost_matrix._decide", "costs: f64[k,a] point: f64[m,k] found: (action: =i64[m] expected_cost: =f64[m])",
     call_decide, false},
    {"metrics.cost_matrix._add",
     "costs: f64[k,a] rows: i64[m,3] always: =f64[a] taken: =i64[a] sums: =f64[3] count: int", call_add, false},
    {0},
};
