/* SMO over the active variables of one machine: working set selection and pair update.

All arrays fit in the processor's cache. The steps are as in `smo.c`: the variable with the largest slack among those
that can grow, and the partner with the largest gain (Fan, Chen and Lin 2005). Slacks are relative to the constant b, in
the precision of the kernel values. F of all points is updated afterwards in float64, from the changes of the
coefficients, so that the next round corrects the rounding errors of this one. */
#ifndef ONLINE_SVM_PAIR_STEPS_H
#define ONLINE_SVM_PAIR_STEPS_H

#include "compiled/kernel.h"

/* Slacks, diagonal and kernel rows are read in whole vectors. They are therefore padded with vacant places to a
multiple of PADDING, and a row of K has PADDING extra columns. */
enum { PADDING = 16 };
static inline int64_t padded(int64_t n) { return (n + PADDING - 1) / PADDING * PADDING; }

/* The programme over n active variables; a vacant place can neither grow nor shrink. */
typedef struct {
    int64_t n;
    double *lower, *upper, *beta; /* bounds and coefficients */
    void *up, *down; /* slack minus b, for growing and for shrinking; -inf and +inf if that is impossible */
    void *diagonal;
    Type type; /* of `up`, `down` and `diagonal`, as of the kernel values */
} Part;

/* Take pair steps until no pair violates optimality by `tol`, and return their number. K contains the kernel values of
the active variables, shape (n, at least n). */
int64_t settle(const Array *K, const Part *part, double tol, int64_t max_steps);

#endif
