/* Sequential minimal optimisation (SMO): working set selection and pair update on cached rows.

    maximise  sum_i z_i beta_i - 1/2 sum_ij beta_i beta_j k(x_i, x_j)
    subject to  lower_i <= beta_i <= upper_i,  sum_i beta_i constant

In these signed coefficients a support vector classifier has z = y and bounds [0, C] or [-C, 0] (beta = alpha y); a
regression tube has its two edges as z, with bounds of either sign, and a bound that is absent is a variable that is
absent. With F_i = sum_j beta_j k(x_i, x_j) the slack is v_i = z_i - F_i. At the optimum v_i <= v_j whenever beta_i can
grow and beta_j can shrink.

Each step moves the pair chosen by second-order information (Fan, Chen and Lin 2005, "Working set selection using
second order information for training support vector machines"). */
#ifndef ONLINE_SVM_SMO_H
#define ONLINE_SVM_SMO_H

#include "svm/exact/kernel_cache.h"

/* One programme over the first n training slots, and its current point. Slots with lower = upper take no part, and
their F is not updated. */
typedef struct {
    Vector z, lower, upper; /* linear term and bounds */
    Vector beta, F;         /* the coefficients, and F_i = sum_j beta_j k(x_i, x_j) */
} Programme;

/* The specification of an argument `problem`, and its number of slots. */
#define PROGRAMME_ARGUMENT "problem: (z: f64[w] lower: f64[w] upper: f64[w] beta: =f64[w] F: =f64[w]) "
enum { PROGRAMME_SLOTS = 5 };

/* Return the programme whose first slot is `a`. */
static inline Programme programme_from(const Slot *a) {
    return (Programme){a[0].vector, a[1].vector, a[2].vector, a[3].vector, a[4].vector};
}

/* Steps taken, the largest slack that can grow and the smallest that can shrink: the constant b lies between. */
typedef struct {
    int64_t steps;
    double highest, lowest;
} Ascent;

typedef struct Shift Shift;

/* Return the bound if only roundings keep a coefficient off it: the coefficient must not count as free. */
double snapped(double beta, double lower, double upper);

/* Return the index of the first largest slack among the variables that can grow; 0 without any. */
int64_t highest_index(Vector up);

/* Return the smallest slack among the variables that can shrink. */
double lowest_slack(Vector down);

/* Solve the programme from its current point, until no pair violates optimality by `tol`; `work` is scratch of shape
(3, at least n). */
Ascent maximise(const Rows *rows, const Programme *problem, double tol, int64_t max_steps, Matrix work);

/* As `maximise`, with common shifts of the members of `shift` when they gain more. */
Ascent maximise_with(const Shift *shift, const Rows *rows, const Programme *problem, double tol, int64_t max_steps,
                     Matrix work);

/* Return b as LIBSVM does: the mean slack of the free variables, else the midpoint.

`up` is -inf for a variable that cannot grow, `down` +inf for one that cannot shrink; a variable that can do both is
free. `highest` is the maximum of `up`, `lowest` the minimum of `down`. */
double intercept(Vector up, Vector down, double highest, double lowest);

#endif
