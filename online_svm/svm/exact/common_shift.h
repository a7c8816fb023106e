/* A common shift of many coefficients at once, taken if it gains more than the best pair.

The free variables must balance the coefficient of a new example, with a narrow kernel each by a little: that takes many
pair steps, but one step along d = e_c - (1/m) sum of e_k over the m *members*. Its row of the kernel matrix, K_c minus
the mean row of the members, costs no more than a pair's, because the mean row is kept. The members are the variables
that are well inside their bounds at the start of a solve. */
#ifndef ONLINE_SVM_COMMON_SHIFT_H
#define ONLINE_SVM_COMMON_SHIFT_H

#include "svm/exact/smo.h"

#define FLAT 1e-12 /* lower limit on the curvature of a direction, as in LIBSVM; it is 0 for equal points */

/* The members of one programme over n variables. */
struct Shift {
    Vector members; /* (n): 1.0 for a member, else 0.0 */
    Vector row;     /* (n): mean kernel row of the members */
    Vector before;  /* (n): coefficients before the solve, plus the common shifts */
    double *moved;  /* sum of the common shifts so far */
    double size;    /* m; 0 disables common shifts, and the arrays may then be empty */
    double spread;  /* mean of `row` over the members */
};

/* A pair (i, j), where i can grow and j can shrink, with their slacks and the gain of the step along it. */
typedef struct {
    int64_t i, j;
    double slack_i, slack_j, gain;
} Pair;

/* The variable c and its signed step against all members; c = -1 if the pair gains more. */
typedef struct {
    int64_t c;
    double step;
} CommonStep;

/* Return the best common step if it gains more than the pair; `mean` is the mean slack of the members. */
CommonStep common_step(const Shift *shift, const Pair *pair, double mean, const double *diagonal,
                       const Programme *problem);

/* Add `each` to the coefficients of all members, in `beta` and in `before`, with the same roundings. */
void shift_members(const Shift *shift, double *beta, double each);

#endif
