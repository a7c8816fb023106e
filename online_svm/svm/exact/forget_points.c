/* Incremental forget: points leave, and the solution without them starts from the present one.

The bounds of a point that leaves become zero, and its coefficient is clipped to them. The dual needs a coefficient sum
of zero, so other variables absorb the clipped amount: those with the least cost to the objective. New penalties clip
coefficients in the same way. */
#include <math.h>

#include "compiled/extremes.h"
#include "svm/exact/common_shift.h"
#include "svm/exact/machine_state.h"

/* Variable j absorbs `part` of a coefficient; j = -1 if no variable has room. */
typedef struct {
    int64_t j;
    double part;
} Recipient;

/* Return the best variable to absorb `amount` of the coefficient in `slot`, whose kernel row is given.

Candidates are the given ones, or all slots before `span` if none are given. The best one has the least cost to the
objective among those with room for the whole amount, or else the most room. */
static Recipient recipient(const Bank *bank, int64_t s, IntVector candidates, int64_t span, Row row, int64_t slot,
                           double amount) {
    const double *z = row_in(bank->z, s), *F = row_in(bank->F, s), *beta = row_in(bank->beta, s);
    const double *lower = row_in(bank->lower, s), *upper = row_in(bank->upper, s), *diagonal = bank->rows.diagonal.at;
    double size = fabs(amount), sign = amount > 0.0 ? 1.0 : -1.0, best_room = 0.0, best_gain = 0.0;
    int64_t best = -1, n = candidates.n == 0 ? span : candidates.n;
    for (int64_t c = 0; c < n; c++) {
        int64_t j = candidates.n == 0 ? c : candidates.at[c];
        if (j == VACANT || j == slot) continue;
        /* 1. The part of the amount that the candidate has room for. */
        double room = amount > 0.0 ? upper[j] - beta[j] : beta[j] - lower[j];
        if (size < room) room = size;
        if (room <= 0.0 || room < best_room) continue;
        /* 2. The gain of the objective if the candidate absorbs it. */
        double curvature = diagonal[slot] + diagonal[j] - 2.0 * value_at(row, j);
        if (FLAT > curvature) curvature = FLAT;
        double gain = sign * (z[j] - F[j]) - 0.5 * curvature * size;
        if (room > best_room || gain > best_gain) {
            best = j;
            best_room = room;
            best_gain = gain;
        }
    }
    return (Recipient){best, sign * best_room};
}

/* Let others absorb the amount clipped off the coefficient in `slot`, so that the sum stays zero. */
static void hand_over(const Bank *bank, int64_t s, int64_t slot, int64_t span, double excess) {
    const Rows *rows = &bank->rows;
    double *beta = row_in(bank->beta, s), *F = row_in(bank->F, s);
    ActiveSet active = set_of(&bank->active, s);
    while (excess != 0.0) {
        Row row = cached_row(rows, fetch(rows, slot, 1));
        /* 1. Active variables first, because an inactive one would have to become active. */
        IntVector candidates = {active.slots.at, active.counts[SIZE]};
        Recipient found = recipient(bank, s, candidates, span, row, slot, excess);
        candidates.n = 0;
        if (found.j < 0) found = recipient(bank, s, candidates, span, row, slot, excess);
        /* 2. If no variable has room, the sum changes. */
        if (found.j < 0) found.part = excess;
        /* 3. F of the training points, and the coefficient. */
        add_row(F, -found.part, row, 0, span);
        if (found.j >= 0) {
            int64_t j = found.j;
            add_row(F, found.part, cached_row(rows, fetch(rows, j, 1)), 0, span);
            beta[j] = snapped(beta[j] + found.part, row_in(bank->lower, s)[j], row_in(bank->upper, s)[j]);
        }
        excess -= found.part;
    }
}

/* Clip coefficients of one machine to their bounds; others absorb the excess. */
static void clip_machine(const Bank *bank, int64_t s, int64_t span, IntVector slots) {
    double *beta = row_in(bank->beta, s);
    for (int64_t i = 0; i < slots.n; i++) {
        int64_t slot = slots.at[i];
        double lower = row_in(bank->lower, s)[slot], upper = row_in(bank->upper, s)[slot];
        double bound = lower > beta[slot] ? lower : beta[slot];
        if (upper < bound) bound = upper;
        double excess = beta[slot] - bound;
        beta[slot] = bound;
        hand_over(bank, s, slot, span, excess);
    }
}

/* Clip the coefficients in `slots` to their bounds, and update F of all points. */
static void clip(const Bank *bank, IntVector slots) {
    int64_t span = spans(&bank->rows).span;
    for (int64_t s = 0; s < bank->b.n; s++) {
        for (int64_t i = 0; i < slots.n; i++) {
            int64_t slot = slots.at[i];
            if (row_in(bank->members, s)[slot] != 0.0 && row_in(bank->lower, s)[slot] == row_in(bank->upper, s)[slot])
                set_member(bank, s, slot, false);
        }
        clip_machine(bank, s, span, slots);
    }
    update_observers(bank);
}

/* Remove as many of the oldest training points as `slots` has room for; others absorb their coefficients. */
static void forget_training(const Bank *bank, IntVector slots) {
    int64_t *rings = bank->rows.rings;
    /* 1. The bounds of each leaving point become zero; others absorb its coefficient. */
    for (int64_t i = 0; i < slots.n; i++) {
        slots.at[i] = (rings[TRAIN_HEAD] + i) % rings[TRAIN_SIZE];
        for (int64_t s = 0; s < bank->b.n; s++)
            row_in(bank->lower, s)[slots.at[i]] = row_in(bank->upper, s)[slots.at[i]] = 0.0;
    }
    clip(bank, slots);
    /* 2. Remove it from the active set, and from the points that the set was not assessed with. */
    for (int64_t s = 0; s < bank->b.n; s++) {
        ActiveSet active = set_of(&bank->active, s);
        active.counts[CHECKED] = greater_int(active.counts[CHECKED], rings[TRAIN_HEAD] + slots.n);
        for (int64_t i = 0; i < slots.n; i++) {
            row_in(bank->z, s)[slots.at[i]] = 0.0;
            if (active.place.at[slots.at[i]] != VACANT) leave(&active, slots.at[i]);
        }
    }
    /* 3. Free its kernel row and its slot. */
    drop_rows(&bank->rows, slots.at, slots.n);
    rings[TRAIN_HEAD] += slots.n;
}

static void call_clip(const Slot *a, Slot *r) {
    (void)r;
    Bank bank = bank_from(a);
    clip(&bank, a[BANK_SLOTS].int_vector);
}

static void call_forget_training(const Slot *a, Slot *r) {
    (void)r;
    Bank bank = bank_from(a);
    forget_training(&bank, a[BANK_SLOTS].int_vector);
}

const Kernel svm_exact_forget_points_kernels[] = {
    {"svm.exact.machine_state._forget_training", BANK_ARGUMENT "slots: =i64[n]", call_forget_training, true},
    {"svm.exact.machine_state.clip", BANK_ARGUMENT "slots: i64[n]", call_clip, true},
    {0},
};
