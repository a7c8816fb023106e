/* The state of several machines over one set of points: coefficients, bounds and decision values.

Every machine keeps F_i = sum_j beta_j k(x_j, x_i) of all points, observers included. The solver's own steps update F,
so a decision value F_i + b costs nothing. */
#ifndef ONLINE_SVM_MACHINE_STATE_H
#define ONLINE_SVM_MACHINE_STATE_H

#include "svm/exact/active_set.h"
#include "svm/exact/kernel_cache.h"

/* Points, labels and machines; T training slots, W slots in all, S machines. */
typedef struct {
    Rows rows;
    IntVector codes;        /* (W): class of the point in each slot */
    IntVector arrival;      /* (W): arrival number of the point */
    Matrix z, lower, upper; /* (S, T): linear term (the label, +1 or -1) and bounds; 0 in a vacant slot */
    Matrix weights;         /* (2S, T): `beta`, then `members` */
    Matrix beta, members;   /* (S, T): the signed coefficients; 1.0 for members of the machine's common shift */
    Matrix sums;            /* (2S, W): sums of kernel rows with these weights: `F`, then `R` */
    Matrix F, R;            /* (S, W) */
    Vector b;               /* (S): the constants */
    Matrix before;          /* (S, T): the coefficients that the F of the observers is based on */
    Matrix work;            /* (4, T): scratch of the solver */
    ActiveSets active;
} Bank;

/* The specification of an argument `bank`, and its number of slots. */
#define BANK_ARGUMENT                                                                                                  \
    "bank: (" ROWS_ARGUMENT "codes: =i64[w] arrival: =i64[w] z: =f64[s,t] lower: =f64[s,t] upper: =f64[s,t] "          \
    "weights: =f64[2s,t] beta: =f64[s,t] members: =f64[s,t] sums: =f64[2s,w] F: =f64[s,w] R: =f64[s,w] b: =f64[s] "    \
    "before: =f64[s,t] work: =f64[4,t] " ACTIVE_ARGUMENT ") "
enum { BANK_SLOTS = ROWS_SLOTS + 14 + ACTIVE_SLOTS };

/* Read the bank from the arguments declared by BANK_ARGUMENT. */
Bank bank_from(const Slot *a);

/* The slots in use: training points before `span`, observers from `first` to `stop`. */
typedef struct {
    int64_t span, first, stop;
} Spans;
Spans spans(const Rows *rows);

/* Row `i` of a matrix, and its first `n` numbers. */
static inline double *row_in(Matrix matrix, int64_t i) { return matrix.at + i * matrix.columns; }
static inline Vector head_of(Matrix matrix, int64_t i, int64_t n) { return (Vector){row_in(matrix, i), n}; }

/* Add `change` times a kernel row to a range of F. */
void add_row(double *F, double change, Row row, int64_t first, int64_t stop);

/* Recompute F and R of the points with these or later ordinals, from coefficients and members alone. `lanes` is scratch
of shape (2S, LANES, number of points). */
void sum_from(const Bank *bank, int64_t first_training, int64_t first_observer, double *lanes);

/* Give a training point its label and bounds in every machine. */
void bound_point(const Bank *bank, int64_t slot, const double *penalties);

/* Update F of the observers to the present coefficients, and `before` with it. */
void update_observers(const Bank *bank);

/* Add a training point to the members of a machine's common shift, or remove it. */
void set_member(const Bank *bank, int64_t s, int64_t slot, bool is_member);

#endif
