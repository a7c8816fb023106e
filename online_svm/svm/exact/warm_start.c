/* Warm start: each machine is solved from its last solution to the optimum for the present points.

Each machine is solved over its active set first. If the set is unfit, it is solved over all variables, with common
shifts in addition to pair steps. */
#include <string.h>

#include "compiled/ordered_sums.h"
#include "svm/exact/active_set_solver.h"
#include "svm/exact/common_shift.h"

#define INSIDE 0.01 /* distance of a member from its bounds, relative to their distance from each other */
enum {
    MAX_NEW_MEMBERS = 64, /* in one solve: each takes a kernel row, which may have to be computed */
    MIN_MEMBERS = 8       /* shifts of fewer members gain too little */
};

/* Make the variables well inside their bounds members, at most MAX_NEW_MEMBERS new ones, and remove all others. */
static void choose_members(const Bank *bank, int64_t s, int64_t span) {
    const double *beta = row_in(bank->beta, s), *members = row_in(bank->members, s);
    const double *lower = row_in(bank->lower, s), *upper = row_in(bank->upper, s);
    int64_t joined = 0;
    for (int64_t slot = 0; slot < span; slot++) {
        double margin = INSIDE * (upper[slot] - lower[slot]);
        bool is_inside = lower[slot] + margin < beta[slot] && beta[slot] < upper[slot] - margin;
        if (is_inside == (members[slot] != 0.0) || (is_inside && joined >= MAX_NEW_MEMBERS)) continue;
        joined += is_inside;
        set_member(bank, s, slot, is_inside);
    }
}

/* Return the common shift of one machine; its sum will be written to `moved`. */
static Shift shift_of(const Bank *bank, int64_t s, int64_t span, double *moved) {
    Vector members = head_of(bank->members, s, span), row = head_of(bank->work, 3, span);
    const double *R = row_in(bank->R, s);
    int64_t count = 0;
    double spread = 0.0;
    for (int64_t slot = 0; slot < span; slot++) count += members.at[slot] != 0.0;
    if (count < MIN_MEMBERS) count = 0;
    if (count > 0) {
        for (int64_t slot = 0; slot < span; slot++) row.at[slot] = R[slot] / (double)count;
        spread = dot(row.at, members.at, span) / (double)count;
    }
    return (Shift){members, row, head_of(bank->before, s, span), moved, (double)count, spread};
}

/* Return +1 if all training points of a machine are positive, -1 if none is, else 0. */
static double one_sided(Vector z) {
    int64_t positive = 0, negative = 0;
    for (int64_t i = 0; i < z.n; i++) {
        positive += z.at[i] > 0.0;
        negative += z.at[i] < 0.0;
    }
    if (positive > 0 && negative > 0) return 0.0;
    return positive > 0 ? 1.0 : -1.0;
}

static void clear(Vector values) { memset(values.at, 0, (size_t)values.n * sizeof *values.at); }

/* Make the decision value of a machine `side` everywhere. */
static void reset(const Bank *bank, int64_t s, double side) {
    Matrix parts[] = {bank->beta, bank->members, bank->before, bank->F, bank->R};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) clear(head_of(parts[k], s, parts[k].columns));
    bank->b.at[s] = side;
}

static Machine machine_of(const Bank *bank, int64_t s, int64_t span) {
    return (Machine){
        .n = span,
        .z = row_in(bank->z, s),
        .lower = row_in(bank->lower, s),
        .upper = row_in(bank->upper, s),
        .beta = row_in(bank->beta, s),
        .before = row_in(bank->before, s),
        .F = row_in(bank->F, s),
        .up = row_in(bank->work, 0),
        .down = row_in(bank->work, 1),
        .violation = row_in(bank->work, 2),
    };
}

/* Solve one machine over all variables at once, with common shifts; return the steps taken. */
static int64_t solve_whole(const Bank *bank, int64_t s, double tol, int64_t max_steps) {
    Spans in_use = spans(&bank->rows);
    int64_t span = in_use.span;
    double moved = 0.0;
    /* 1. The common shift of the variables well inside their bounds. */
    choose_members(bank, s, span);
    Shift shift = shift_of(bank, s, span, &moved);
    /* 2. SMO over all variables, from the last solution. */
    Programme problem = {
        head_of(bank->z, s, span),    head_of(bank->lower, s, span), head_of(bank->upper, s, span),
        head_of(bank->beta, s, span), head_of(bank->F, s, span),
    };
    Ascent ascent = maximise_with(&shift, &bank->rows, &problem, tol, max_steps, bank->work);
    /* 3. F of the observers: the sum of the common shifts; `update_observers` adds the pair steps. */
    Row R = {row_in(bank->R, s), FLOAT64};
    add_row(row_in(bank->F, s), moved, R, in_use.first, in_use.stop);
    /* 4. The constant b, and the active set for the next solve; if it is unfit, a smaller margin may fit. */
    Machine machine = machine_of(bank, s, span);
    ActiveSet active = set_of(&bank->active, s);
    measure(&machine);
    double b = intercept((Vector){machine.up, span}, (Vector){machine.down, span}, ascent.highest, ascent.lowest);
    bank->b.at[s] = b;
    if (assess(&machine, &active, &bank->rows, b) < 0) {
        double half = 0.5 * active.margin[0];
        active.margin[0] = tol > half ? tol : half;
    }
    return ascent.steps;
}

/* Remove all members: a machine that is solved over its active set has no common shift. */
static void dismiss_members(Vector members, Vector R) {
    int64_t count = 0;
    for (int64_t slot = 0; slot < members.n; slot++) count += members.at[slot] != 0.0;
    if (count == 0) return;
    clear(members);
    clear(R);
}

/* Bring every machine to its optimum; return the steps taken. */
static int64_t solve(const Bank *bank, double tol, int64_t max_steps) {
    int64_t span = spans(&bank->rows).span, total = 0;
    bool is_behind = false;
    for (int64_t s = 0; s < bank->b.n; s++) {
        /* 1. A machine with training points of one class only answers that class. */
        double side = one_sided(head_of(bank->z, s, span));
        if (side != 0.0) {
            reset(bank, s, side);
            continue;
        }
        /* 2. SMO over the active set. */
        Machine machine = machine_of(bank, s, span);
        ActiveSet active = set_of(&bank->active, s);
        ActiveSolution found = solve_active(&machine, &active, &bank->rows, bank->b.at[s], tol, max_steps);
        bank->b.at[s] = found.b;
        /* 3. If the active set is unfit, SMO over all variables. */
        if (!found.is_done) {
            found.steps += solve_whole(bank, s, tol, max_steps - found.steps);
            is_behind = true;
        } else if (found.steps > 0) {
            dismiss_members(head_of(bank->members, s, span), head_of(bank->R, s, bank->R.columns));
        }
        total += found.steps;
    }
    /* 4. F of the observers, where step 3 left it unchanged. */
    if (is_behind) update_observers(bank);
    return total;
}

static void call_solve(const Slot *a, Slot *r) {
    Bank bank = bank_from(a);
    r->integer = solve(&bank, a[BANK_SLOTS].real, a[BANK_SLOTS + 1].integer);
}

const Kernel svm_exact_warm_start_kernels[] = {
    {"svm.exact.machine_state.solve", BANK_ARGUMENT "tol: float max_steps: int -> int", call_solve, true},
    {0},
};
