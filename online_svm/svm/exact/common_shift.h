/* A common shift of many coefficients at once, taken if it gains more than the best pair.

All free variables together must balance the coefficient of a new example; with a narrow kernel, each by a little. Pair
by pair that takes many steps. Along d = e_c - (1/m) sum of e_k over the m *members* it is one step. Its row of the
kernel matrix, K_c minus the mean row of the members, costs no more than a pair's row, because the mean row is kept. The
members are the variables that were well inside their bounds when the solver began. */
#ifndef ONLINE_SVM_COMMON_SHIFT_H
#define ONLINE_SVM_COMMON_SHIFT_H

#include "svm/exact/smo.h"

#define FLAT 1e-12 /* smallest curvature of a direction, as in LIBSVM: equal points have none */

/* The members of one programme over n variables. */
struct Shift {
    Vector members; /* (n): 1.0 for a member, else 0.0 */
    Vector row;     /* (n): mean kernel row of the members */
    Vector before;  /* (n): copy of the coefficients that only common shifts change */
    double *moved;  /* the total shift of all members so far */
    double size;    /* m; 0 switches common shifts off, and the arrays may be empty */
    double spread;  /* mean of `row` over the members */
};

/* A pair (i, j), where i can grow and j can shrink, with their slacks and the gain of the step along it. */
typedef struct {
    int64_t i, j;
    double slack_i, slack_j, gain;
} Pair;

/* The variable c and its signed step against all members; c = -1: the pair is better. */
typedef struct {
    int64_t c;
    double step;
} CommonStep;

/* Return the best common step where it gains more than the pair; `mean` is the mean slack of the members. */
CommonStep common_step(const Shift *shift, const Pair *pair, double mean, const double *diagonal,
                       const Programme *problem);

/* Shift all members, in `beta` and in `before` by the same rounded operations. */
void shift_members(const Shift *shift, double *beta, double each);

#endif
