/* The active set of each machine (shrinking): the variables that pair steps may move, and their kernel matrix.

Most variables are at a bound and stay there when a few examples are added or forgotten. The others are *active*. Their
kernel matrix is kept in one piece from one solve to the next, so that a pair step passes over a few hundred numbers
instead of the whole window. This is shrinking (Joachims 1999, "Making large-scale SVM learning practical"), except that
the set is kept between solves and all variables are checked after each round. */
#ifndef ONLINE_SVM_ACTIVE_SET_H
#define ONLINE_SVM_ACTIVE_SET_H

#include "svm/exact/kernel_cache.h"

enum { VACANT = -1 };

/* Entries of `ActiveSet.counts`: number of leading places that include all used ones; whether all variables that should
be active have a place; ordinal of the first training point added since the set was last assessed. */
enum { SIZE, FITS, CHECKED, N_COUNTS };

/* The active set of one machine over T training slots, with at most A places. */
typedef struct {
    Array K;          /* (A, A + padding): kernel values between the active variables */
    IntVector slots;  /* (A): slot of the variable in each place; VACANT if there is none */
    IntVector place;  /* (T): place of the variable in each slot; VACANT if it is not active */
    int64_t *counts;  /* (N_COUNTS) */
    double *margin;   /* a variable becomes active if its slack is within the margin of violating optimality */
    Matrix bounds;    /* (4, A): scratch for bounds, coefficients and their changes */
    Array slacks;     /* (3, A + padding): scratch for slacks and diagonal, of the type of the kernel values */
    IntMatrix chosen; /* (2, A): scratch for slots and places */
} ActiveSet;

/* The active sets of all machines: arrays except scratch have an additional first axis. */
typedef struct {
    Array K;
    IntMatrix slots, place, counts;
    Matrix margin, bounds;
    Array slacks;
    IntMatrix chosen;
} ActiveSets;

/* The specification of an argument `active`, and its number of slots. */
#define ACTIVE_ARGUMENT                                                                                                \
    "active: (K: =f32|f64[s,p,p+16] slots: =i64[s,p] place: =i64[s,t] counts: =i64[s,3] margin: =f64[s,1] "            \
    "bounds: =f64[4,p] slacks: =f32|f64[3,p+16] chosen: =i64[2,p]) "
enum { ACTIVE_SLOTS = 8 };

/* Read the sets from the arguments declared by ACTIVE_ARGUMENT. */
ActiveSets active_from(const Slot *a);

/* Return the active set of machine s. */
ActiveSet set_of(const ActiveSets *sets, int64_t s);

/* Return the number of vacant places. */
int64_t room(IntVector slots);

/* Put `n` training points in the first vacant places, of which there must be enough. */
void join(const ActiveSet *active, const Rows *rows, const int64_t *joining, int64_t n);

/* Remove a training point from the active set. */
void leave(const ActiveSet *active, int64_t slot);

/* Move the last variable to the first vacant place, because pair steps pass over vacant places too. */
void tighten(const ActiveSet *active);

#endif
