/* Incremental add: a new point has coefficient zero, and F by the last solution. */
#include "svm/exact/machine_state.h"

/* Return how many of the new points train; -1 if a code is not a class. */
static int64_t count_training(IntVector codes, const bool *training, int64_t n_classes) {
    int64_t trains = 0;
    for (int64_t i = 0; i < codes.n; i++) {
        if (codes.at[i] < 0 || codes.at[i] >= n_classes) return -1;
        trains += training[i];
    }
    return trains;
}

/* Write the point x, with its kernel value k(x, x) and its class, to a slot. */
static void put_point(const Bank *bank, int64_t slot, const double *x, double diagonal, int64_t code, int64_t arrival) {
    const Rows *rows = &bank->rows;
    for (int64_t f = 0; f < rows->X.rows; f++) {
        row_in(rows->X, f)[slot] = x[f];
        row_in(rows->points, slot)[f] = x[f];
    }
    rows->diagonal.at[slot] = diagonal;
    bank->codes.at[slot] = code;
    bank->arrival.at[slot] = arrival;
}

/* Append new points, the first with arrival number `first`, to their rings; write their decision values to `values`. */
static void arrive(const Bank *bank, Matrix X, const int64_t *codes, const bool *training, int64_t first,
                   const double *penalties, double *lanes, Matrix values) {
    int64_t *rings = bank->rows.rings, tails[2] = {rings[SEEN_TAIL], rings[TRAIN_TAIL]};
    /* 1. A slot at the end of its ring for each point; labels and bounds of training points, whose coefficients are
        zero. */
    for (int64_t i = 0; i < X.rows; i++) {
        int64_t slot = take_slot(rings, training[i] ? TRAIN_TAIL : SEEN_TAIL);
        const double *x = row_in(X, i);
        put_point(bank, slot, x, kernel_value(bank->rows.shape, x, x, X.columns), codes[i], first + i);
        if (training[i]) bound_point(bank, slot, penalties);
    }
    /* 2. F of the new points, and their decision values. */
    sum_from(bank, tails[true], tails[false], lanes);
    for (int64_t i = 0; i < X.rows; i++) {
        int64_t ordinal = tails[training[i]]++;
        int64_t slot = training[i] ? ordinal % rings[TRAIN_SIZE] : rings[TRAIN_SIZE] + ordinal % rings[SEEN_SIZE];
        for (int64_t s = 0; s < values.columns; s++) row_in(values, i)[s] = row_in(bank->F, s)[slot] + bank->b.at[s];
    }
}

/* Move the oldest observers to the end of the training ring; their F is unchanged. */
static void promote(const Bank *bank, int64_t count, const double *penalties) {
    int64_t *rings = bank->rows.rings;
    for (int64_t i = 0; i < count; i++) {
        /* 1. A slot among the training points; the observer leaves the ring of observers. */
        int64_t old = rings[TRAIN_SIZE] + rings[SEEN_HEAD] % rings[SEEN_SIZE];
        int64_t new = take_slot(rings, TRAIN_TAIL);
        rings[SEEN_HEAD] += 1;
        /* 2. Copy the point and its sums. */
        put_point(bank, new, row_in(bank->rows.points, old), bank->rows.diagonal.at[old], bank->codes.at[old],
                  bank->arrival.at[old]);
        for (int64_t w = 0; w < bank->sums.rows; w++) row_in(bank->sums, w)[new] = row_in(bank->sums, w)[old];
        /* 3. Label and bounds; the coefficients are zero. */
        bound_point(bank, new, penalties);
    }
}

static void call_count_training(const Slot *a, Slot *r) {
    r->integer = count_training(a[0].int_vector, a[1].bool_vector.at, a[2].integer);
}

static void call_arrive(const Slot *a, Slot *r) {
    (void)r;
    Bank bank = bank_from(a);
    a += BANK_SLOTS;
    arrive(&bank, a[0].matrix, a[1].int_vector.at, a[2].bool_vector.at, a[3].integer, a[4].vector.at, a[5].cube.at,
           a[6].matrix);
}

static void call_promote(const Slot *a, Slot *r) {
    (void)r;
    Bank bank = bank_from(a);
    promote(&bank, a[BANK_SLOTS].integer, a[BANK_SLOTS + 1].vector.at);
}

const Kernel svm_exact_add_points_kernels[] = {
    {"svm.exact.machine_state._arrive",
     BANK_ARGUMENT
     "points: (X: f64[m,d] codes: i64[m] training: bool[m]) first: int penalties: f64[*] lanes: =f64[2s,64,m] "
     "values: =f64[m,s]",
     call_arrive, true},
    {"svm.exact.machine_state.count_training", "codes: i64[n] training: bool[n] n_classes: int -> int",
     call_count_training, false},
    {"svm.exact.machine_state.promote", BANK_ARGUMENT "count: int penalties: f64[*]", call_promote, false},
    {0},
};
