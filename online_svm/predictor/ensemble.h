/* What averages of probabilities share. */
#ifndef ONLINE_SVM_PREDICTOR_ENSEMBLE_H
#define ONLINE_SVM_PREDICTOR_ENSEMBLE_H

#include "compiled/elementary.h"
#include "compiled/kernel.h"

#define FLOOR 1e-6 /* as in the log loss: one certain error must not silence a component for ever */

/* Raise values below the floor to it, and scale the rest so that the sum stays one. */
static inline void clip(const double *values, int64_t n, double *clipped) {
    double floor = lesser(FLOOR, 0.5 / (double)n), rest = 0.0;
    int64_t raised = 0;
    for (int64_t y = 0; y < n; y++) {
        if (values[y] < floor)
            raised++;
        else
            rest += values[y];
    }
    double factor = raised > 0 ? (1.0 - (double)raised * floor) / rest : 1.0;
    for (int64_t y = 0; y < n; y++) clipped[y] = values[y] < floor ? floor : values[y] * factor;
}

/* The weights of K experts: their logarithms, each one's part of the redistributed share, share and rate. */
typedef struct {
    double *logs;
    const double *moved;
    int64_t n;
    double share, rate;
} Mixture;

/* Write the weighted mean of one row of the experts, `step` apart; their clipped rows to `parts`. */
void mix_row(const double *experts, int64_t step, int64_t n_classes, Mixture of, double *parts, double *mixed);

/* Multiply each weight by its expert's probability of the label: given[k * step]. */
void learn_mixture(Mixture of, const double *given, int64_t step);

#endif
