/* Scores of one row of probabilities. */
#ifndef ONLINE_SVM_SCORES_H
#define ONLINE_SVM_SCORES_H

#include "compiled/elementary.h"
#include "compiled/extremes.h"

/* Smallest probability in the log loss, as in `scores.py`. */
#define CLIP 1e-6

static inline double log_loss(double p_of_truth) { return -log_of(greater(p_of_truth, CLIP)); }

/* Return the sum over k classes of the squared error of a row of probabilities; the errors of two are equal. */
static inline double brier_sum(const double *p, int64_t k, int64_t truth) {
    double sum = 0.0;
    for (int64_t j = k == 2; j < k; j++) {
        double miss = p[j] - (j == truth);
        sum += miss * miss;
    }
    return k == 2 ? 2.0 * sum : sum;
}

/* Return the square of a value's distance from the mean of n earlier ones and a first guess, which lies in its range. */
static inline double square_about_mean(double value, double total, double n, double guess) {
    double apart = value - (total + guess) / (n + 1.0);
    return apart * apart;
}

#endif
