/* Sequential minimal optimisation (SMO): working set selection and pair update on cached rows.

    maximise  sum_i z_i beta_i - 1/2 sum_ij beta_i beta_j k(x_i, x_j)
    subject to  lower_i <= beta_i <= upper_i,  sum_i beta_i constant

With F_i = sum_j beta_j k(x_i, x_j) the slack is v_i = z_i - F_i. At the optimum v_i <= v_j whenever beta_i can grow and
beta_j can shrink. Each step moves the pair chosen by second-order information (Fan, Chen and Lin 2005). See
`batch_solver.py` for the programmes of this form. */
#ifndef ONLINE_SVM_SMO_H
#define ONLINE_SVM_SMO_H

#include "svm/exact/kernel_cache.h"

/* A programme over the first n training slots, and its current point. Slots with lower = upper are ignored, and their F
is not updated. */
typedef struct {
    Vector z, lower, upper; /* linear term and bounds */
    Vector beta, F;         /* the coefficients, and F_i = sum_j beta_j k(x_i, x_j) */
} Programme;

/* The specification of an argument `problem`, and its number of slots. */
#define PROGRAMME_ARGUMENT "problem: (z: f64[w] lower: f64[w] upper: f64[w] beta: =f64[w] F: =f64[w]) "
enum { PROGRAMME_SLOTS = 5 };

/* Read the programme from the arguments declared by PROGRAMME_ARGUMENT. */
static inline Programme programme_from(const Slot *a) {
    return (Programme){a[0].vector, a[1].vector, a[2].vector, a[3].vector, a[4].vector};
}

/* Steps taken, the largest slack of a variable that can grow, and the smallest of one that can shrink; the constant b
lies between the two. */
typedef struct {
    int64_t steps;
    double highest, lowest;
} Ascent;

typedef struct Shift Shift;

/* Return the bound if a coefficient differs from it by rounding errors only: it must not count as free. */
double snapped(double beta, double lower, double upper);

/* Return the index of the first of the largest slacks of variables that can grow; 0 if there are none. */
int64_t highest_index(Vector up);

/* Return the smallest slack of the variables that can shrink. */
double lowest_slack(Vector down);

/* Solve the programme from its current point, until no pair violates optimality by `tol`; `work` is scratch of shape
(3, at least n). */
Ascent maximise(const Rows *rows, const Programme *problem, double tol, int64_t max_steps, Matrix work);

/* As `maximise`, but with common shifts of the members of `shift` where they gain more than pairs. */
Ascent maximise_with(const Shift *shift, const Rows *rows, const Programme *problem, double tol, int64_t max_steps,
                     Matrix work);

/* Return b as LIBSVM does: the mean slack of the free variables, which can grow and shrink, else a midpoint.

`up` is -inf for a variable that cannot grow, `down` +inf for one that cannot shrink. `highest` is the maximum of `up`,
`lowest` the minimum of `down`. */
double intercept(Vector up, Vector down, double highest, double lowest);

#endif
