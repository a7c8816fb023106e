/* The probabilities of the recent stacks. */
#include "compiled/elementary.h"
#include "compiled/kernel.h"

/* Log-odds by row, input (members, then neighbours) and decision. */
typedef struct {
    const double *at;
    int64_t inputs, decisions;
} Odds;

/* The weighted log-odds of a row for decision s; the last weight is the intercept. */
static inline double weighted(Odds odds, const double *row, const double *weights, int64_t s) {
    double total = weights[odds.inputs];
    for (int64_t m = 0; m < odds.inputs; m++) total = multiply_add(weights[m], row[m * odds.decisions + s], total);
    return total;
}

/* Write `share` times the softmax of weighted log-odds to a row. */
static void write_softmax(Odds odds, const double *row, const double *weights, double share, double *outputs) {
    double highest = -INFINITY, whole = 0.0;
    for (int64_t s = 0; s < odds.decisions; s++) {
        outputs[s] = weighted(odds, row, weights, s);
        highest = greater(highest, outputs[s]);
    }
    for (int64_t s = 0; s < odds.decisions; s++) {
        outputs[s] = exp_nonpositive(outputs[s] - highest);
        whole += outputs[s];
    }
    for (int64_t s = 0; s < odds.decisions; s++) outputs[s] = share * (outputs[s] / whole);
}

/* Write the probabilities of weighted log-odds: a sigmoid for two classes, else a softmax. */
static void write_stacked(Odds odds, const double *weights, Matrix outputs) {
    int64_t n_known = odds.decisions == 1 ? 2 : odds.decisions;
    for (int64_t i = 0; i < outputs.rows; i++) {
        const double *row = odds.at + i * odds.inputs * odds.decisions;
        double *to = outputs.at + i * outputs.columns;
        /* Columns of unknown classes keep the primary prediction. */
        double share = 1.0;
        for (int64_t s = n_known; s < outputs.columns; s++) share -= to[s];
        if (odds.decisions == 1) {
            double p = logistic(weighted(odds, row, weights, 0));
            to[0] = share * (1.0 - p);
            to[1] = share * p;
        } else {
            write_softmax(odds, row, weights, share, to);
        }
    }
}

static void call_stacked(const Slot *a, Slot *r) {
    (void)r;
    Odds odds = {a[0].cube.at, a[0].cube.rows, a[0].cube.columns};
    write_stacked(odds, a[1].vector.at, a[2].matrix);
}

const Kernel predictor_recent_stacks_kernels[] = {
    {"predictor.recent_stacks._stacked", "odds: f64[n,inputs,decisions] weights: f64[inputs+1] outputs: =f64[n,*]",
     call_stacked, false},
    {0},
};
