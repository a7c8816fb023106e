/* SMO with shrinking: one machine is solved over its active set, then all variables are checked.

A round has three parts. 1. Pair steps over the small kernel matrix bring the active variables to their optimum. 2. F of
all points follows from the change of the coefficients. 3. The slack of every variable is checked: a variable that
violates optimality becomes active, and there is another round. The result is therefore the optimum over all variables
for any choice of the active set.

The choice of the active set affects speed only. After each round a variable joins if its slack is within a margin of
violating optimality; it leaves when the slack is beyond WIDER times the margin. The margin adapts: it grows after a
solve of several rounds, and else shrinks a little. Except for new points, slacks are compared with the margin only
after a round, because between forgetting and solving they are far from their final values. */
#ifndef ONLINE_SVM_ACTIVE_SET_SOLVER_H
#define ONLINE_SVM_ACTIVE_SET_SOLVER_H

#include "svm/exact/machine_state.h"

/* One machine over n training slots, and F over all slots. */
typedef struct {
    int64_t n;
    double *z, *lower, *upper, *beta, *before; /* (n): see `Bank` */
    double *F;                                 /* (n_slots) */
    double *up, *down;                         /* (n): scratch; slacks for growing and for shrinking */
    double *violation;                         /* (n): scratch; violation of optimality, negative for none */
} Machine;

/* The largest slack of a variable that can grow, and the smallest of one that can shrink. */
typedef struct {
    double highest, lowest;
} Extremes;

/* Compute the slacks of all variables. */
Extremes measure(const Machine *machine);

/* Add and remove variables by their slacks after a round; return the number added. If there is no room for all, none is
added, the set is marked as unfit, and -1 is returned. */
int64_t assess(const Machine *machine, const ActiveSet *active, const Rows *rows, double b);

/* Steps taken, the constant b, and whether the machine is at its optimum, which an unfit active set prevents. */
typedef struct {
    int64_t steps;
    double b;
    bool is_done;
} ActiveSolution;

/* Bring one machine to its optimum by rounds over its active set. */
ActiveSolution solve_active(const Machine *machine, const ActiveSet *active, const Rows *rows, double b, double tol,
                            int64_t max_steps);

#endif
