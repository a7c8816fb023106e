/* The losses of two models on the same examples; see `staleness.py`. */
#include "compiled/elementary.h"
#include "compiled/kernel.h"

#define UNITS 0x1p20       /* a difference of losses is an integer in units of 2^-20 */
#define MAX_DIFFERENCE 8.0 /* differences are clipped, so that the sum of their squares fits in 62 bits */

/* The log loss of an example, from the log-odds of class 1 of two, or from the logits of more classes. */
static double loss_of(const double *scores, int64_t decisions, int64_t code) {
    if (decisions == 1) {
        double margin = code == 1 ? scores[0] : -scores[0];
        return (0.0 > -margin ? 0.0 : -margin) + log1p_of(exp_nonpositive(-fabs(margin)));
    }
    double highest = scores[0], sum = 0.0;
    for (int64_t k = 1; k < decisions; k++) highest = scores[k] > highest ? scores[k] : highest;
    for (int64_t k = 0; k < decisions; k++) sum += exp_nonpositive(scores[k] - highest);
    return highest - scores[code] + log_of(sum);
}

static void call_compare(const Slot *a, Slot *r) {
    Matrix older = a[0].matrix, newer = a[1].matrix;
    IntVector codes = a[2].int_vector;
    int64_t decisions = older.columns, count = 0, total = 0, squares = 0;
    for (int64_t i = 0; i < codes.n; i++) {
        int64_t code = codes.at[i];
        if (code < 0) continue;
        double difference =
            loss_of(older.at + i * decisions, decisions, code) - loss_of(newer.at + i * decisions, decisions, code);
        difference = bounded_by(difference, -MAX_DIFFERENCE, MAX_DIFFERENCE);
        int64_t units = (int64_t)floor(difference * UNITS + 0.5);
        count++;
        total += units;
        squares += units * units;
    }
    r[0].integer = count, r[1].integer = total, r[2].integer = squares;
}

const Kernel refit_committee_staleness_kernels[] = {
    {"refit.committee.staleness._compare", "older: f64[n,s] newer: f64[n,s] codes: i64[n] -> int int int", call_compare,
     false},
    {0},
};
