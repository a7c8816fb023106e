#include "svm/exact/active_set_solver.h"

#include <float.h>
#include <math.h>

#include "compiled/extremes.h"
#include "compiled/floats.h"
#include "svm/exact/pair_steps.h"
#include "svm/exact/smo.h"

#define WIDER 2.0 /* a variable leaves the active set at this multiple of the margin */
#define GROWTH 1.5
#define SHRINK 0.96       /* with these factors the margin is stable at one second round in about eleven solves */
#define MAX_MARGIN 0.1    /* after many new points a few short rounds take less time than one long one */
#define RESOLUTION 1000.0 /* violation that a round may leave, in roundings of the largest violation */
enum {
    TOGETHER = 8,   /* rows that are added to F in one pass */
    MAX_ROUNDS = 50 /* a tolerance close to the rounding errors may never be met */
};

/* ---- Slacks, and the active set ---- */

Extremes measure(const Machine *machine) {
    const double *z = machine->z, *lower = machine->lower, *upper = machine->upper, *beta = machine->beta;
    double *up = machine->up, *down = machine->down;
    int64_t n = machine->n;
    for (int64_t i = 0; i < n; i++) up[i] = z[i] - machine->F[i];
    for (int64_t i = 0; i < n; i++) down[i] = beta[i] > lower[i] ? up[i] : INFINITY;
    for (int64_t i = 0; i < n; i++) up[i] = beta[i] < upper[i] ? up[i] : -INFINITY;
    return (Extremes){up[highest_index((Vector){up, n})], lowest_slack((Vector){down, n})};
}

/* Write the violation of optimality by each variable given b, negative for none, +inf for the most violating pair. */
static void write_violations(const Machine *machine, double b) {
    const double *up = machine->up, *down = machine->down;
    double *violation = machine->violation;
    int64_t n = machine->n;
    for (int64_t i = 0; i < n; i++) violation[i] = -down[i];
    int64_t lowest = highest_index((Vector){violation, n});
    for (int64_t i = 0; i < n; i++) violation[i] = greater(up[i] - b, b - down[i]);
    violation[highest_index((Vector){machine->up, n})] = violation[lowest] = INFINITY;
}

int64_t assess(const Machine *machine, const ActiveSet *active, const Rows *rows, double b) {
    const double *violation = machine->violation;
    int64_t *slots = active->slots.at, *counts = active->counts, *joining = active->chosen.at;
    const int64_t *place = active->place.at;
    /* 1. The violation of optimality by each variable. */
    write_violations(machine, b);
    double threshold = -active->margin[0];
    int64_t joined = 0, kept = 0;
    /* 2. Remove the variables far from violating optimality. */
    for (int64_t a = counts[SIZE] - 1; a >= 0; a--) {
        if (slots[a] != VACANT && violation[slots[a]] < WIDER * threshold) leave(active, slots[a]);
        kept += slots[a] != VACANT;
    }
    /* 3. Count the inactive variables within the margin; check the room. */
    for (int64_t slot = 0; slot < machine->n; slot++) joined += (violation[slot] > threshold) & (place[slot] < 0);
    int64_t half = machine->n / 2, capacity = active->slots.n < half ? active->slots.n : half;
    bool fits = kept + joined <= capacity;
    counts[CHECKED] = rows->rings[TRAIN_TAIL];
    counts[FITS] = fits;
    /* 4. Add them. */
    if (fits && joined > 0) {
        int64_t at = 0;
        for (int64_t slot = 0; slot < machine->n; slot++)
            if (violation[slot] > threshold && place[slot] < 0) joining[at++] = slot;
        join(active, rows, joining, joined);
    }
    tighten(active);
    return fits ? joined : -1;
}

/* Add the training points that arrived since the last assessment and are within the margin or violate optimality;
return whether the set is fit. */
static bool join_new(const Machine *machine, const ActiveSet *active, const Rows *rows, double b) {
    const int64_t *counts = active->counts, *rings = rows->rings;
    double threshold = -WIDER * active->margin[0];
    /* 1. The set is unfit if the last assessment found so, or more points arrived than it has places. */
    if (counts[FITS] == 0 || rings[TRAIN_TAIL] - counts[CHECKED] > active->slots.n) return false;
    /* 2. The new training points within the wider margin. */
    int64_t *joining = active->chosen.at, joined = 0;
    for (int64_t ordinal = counts[CHECKED]; ordinal < rings[TRAIN_TAIL]; ordinal++) {
        int64_t slot = ordinal % rings[TRAIN_SIZE];
        double violation = greater(machine->up[slot] - b, b - machine->down[slot]);
        if (violation > threshold && active->place.at[slot] == VACANT) joining[joined++] = slot;
    }
    /* 3. Add them if there is room for all. */
    if (joined > room(active->slots)) return false;
    if (joined > 0) join(active, rows, joining, joined);
    return true;
}

/* ---- A round ---- */

/* Return the programme over the active variables, with slacks relative to b. */
static Part part_of(const Machine *machine, const ActiveSet *active, const double *diagonal, double b) {
    /* 1. Views of the set's scratch. */
    Type type = active->slacks.type;
    Row slacks[3];
    for (int k = 0; k < 3; k++) slacks[k] = row_at(&active->slacks, k);
    Part part = {
        active->counts[SIZE], row_in(active->bounds, 0), row_in(active->bounds, 1), row_in(active->bounds, 2),
        (void *)slacks[0].at, (void *)slacks[1].at,      (void *)slacks[2].at,      type,
    };
    for (int64_t a = 0; a < padded(part.n); a++) {
        int64_t slot = a < part.n ? active->slots.at[a] : VACANT;
        bool is_vacant = slot == VACANT;
        /* 2. Slacks and diagonal of the variable in each place; a vacant place can neither grow nor shrink. */
        put_value(part.up, type, a, is_vacant ? -INFINITY : machine->up[slot] - b);
        put_value(part.down, type, a, is_vacant ? INFINITY : machine->down[slot] - b);
        put_value(part.diagonal, type, a, is_vacant ? 1.0 : diagonal[slot]);
        if (a >= part.n) continue;
        /* 3. Its bounds and its coefficient. */
        part.lower[a] = is_vacant ? 0.0 : machine->lower[slot];
        part.upper[a] = is_vacant ? 0.0 : machine->upper[slot];
        part.beta[a] = is_vacant ? 0.0 : machine->beta[slot];
    }
    return part;
}

/* Add eight weighted rows, from column `first` to `stop`, to `out`, term by term in their order. */
static inline void add_eight(double *out, const Row rows[TOGETHER], const double *weights, int64_t first,
                             int64_t stop) {
    for (int64_t i = first; i < stop; i++) {
        double sum = out[i];
        for (int k = 0; k < TOGETHER; k++) sum = multiply_add(weights[k], value_at(rows[k], i), sum);
        out[i] = sum;
    }
}

/* Add eight cached rows, weighted, to F of all points. */
static void add_cached(double *F, const Rows *rows, const int64_t *places, const double *weights) {
    Spans in_use = spans(rows);
    Row found[TOGETHER];
    if (rows->values.type == FLOAT32) {
        for (int k = 0; k < TOGETHER; k++) found[k] = float_row(cached_row(rows, places[k]));
        add_eight(F, found, weights, 0, in_use.span);
        add_eight(F, found, weights, in_use.first, in_use.stop);
    } else {
        for (int k = 0; k < TOGETHER; k++) found[k] = double_row(cached_row(rows, places[k]));
        add_eight(F, found, weights, 0, in_use.span);
        add_eight(F, found, weights, in_use.first, in_use.stop);
    }
}

/* Update F of all points by changes of coefficients, in the given order. */
static void add_changes(double *F, const Rows *rows, const int64_t *slots, const double *changes, int64_t n) {
    Spans in_use = spans(rows);
    for (int64_t done = 0; done < n; done += TOGETHER) {
        int64_t count = n - done < TOGETHER ? n - done : TOGETHER, places[TOGETHER];
        /* 1. Cache the rows of the next changes. */
        bring_up(rows, slots + done, count);
        bool are_all_cached = count == TOGETHER;
        for (int64_t c = 0; c < count; c++) {
            places[c] = rows->row_of.at[slots[done + c]];
            are_all_cached = are_all_cached && places[c] >= 0;
        }
        /* 2. Add eight rows in one pass; add fewer, or rows that do not fit in the cache together, one by one. */
        if (are_all_cached) {
            add_cached(F, rows, places, changes + done);
            continue;
        }
        for (int64_t c = 0; c < count; c++) {
            Row row = cached_row(rows, fetch(rows, slots[done + c], 2));
            add_row(F, changes[done + c], row, 0, in_use.span);
            add_row(F, changes[done + c], row, in_use.first, in_use.stop);
        }
    }
}

/* Set new coefficients of the active variables, and update F of all points. */
static void write_back(const Machine *machine, const ActiveSet *active, const Rows *rows, const Part *part) {
    int64_t *changed = active->chosen.at, count = 0;
    double *changes = row_in(active->bounds, 3);
    for (int64_t a = 0; a < part->n; a++) {
        int64_t slot = active->slots.at[a];
        double change = slot == VACANT ? 0.0 : part->beta[a] - machine->beta[slot];
        if (change == 0.0) continue;
        changed[count] = slot;
        changes[count++] = change;
        machine->beta[slot] = machine->before[slot] = part->beta[a];
    }
    add_changes(machine->F, rows, changed, changes, count);
}

/* Return b by the active variables: the midpoint of the limits from their slacks. */
static double middle_of(const Part *part, double b) {
    double highest = -INFINITY, lowest = INFINITY;
    for (int64_t a = 0; a < part->n; a++) {
        highest = greater(highest, value_at((Row){part->up, part->type}, a));
        lowest = lesser(lowest, value_at((Row){part->down, part->type}, a));
    }
    double middle = 0.5 * (highest + lowest);
    return isfinite(middle) ? b + middle : b;
}

ActiveSolution solve_active(const Machine *machine, const ActiveSet *active, const Rows *rows, double b, double tol,
                            int64_t max_steps) {
    double resolution = RESOLUTION * (active->K.type == FLOAT32 ? (double)FLT_EPSILON : DBL_EPSILON);
    int64_t steps = 0, rounds = 0, taken = 1;
    /* 1. Slacks of all variables; new training points join the active set. */
    Extremes slacks = measure(machine);
    bool is_fit = slacks.highest - slacks.lowest < tol || join_new(machine, active, rows, b);
    while (is_fit && slacks.highest - slacks.lowest >= tol && taken > 0 && steps < max_steps) {
        /* 2. SMO over the active variables. The rounding of large slacks hides violations that are much smaller; the
            next round finds them. */
        Part part = part_of(machine, active, rows->diagonal.at, b);
        double goal = greater(tol, resolution * (slacks.highest - slacks.lowest));
        taken = settle(&active->K, &part, goal, max_steps - steps);
        /* 3. Their coefficients, and F of all points. */
        write_back(machine, active, rows, &part);
        b = middle_of(&part, b);
        steps += taken;
        rounds += 1;
        /* 4. Check all variables: those within the margin join the active set, those far from it leave. */
        slacks = measure(machine);
        int64_t joined = assess(machine, active, rows, b);
        is_fit = joined >= 0 && rounds < MAX_ROUNDS;
        taken += joined;
    }
    /* 5. The constant b. */
    Vector up = {machine->up, machine->n}, down = {machine->down, machine->n};
    if (is_fit) b = intercept(up, down, slacks.highest, slacks.lowest);
    /* 6. A wider margin if more than one round was needed, else a narrower one. */
    if (rounds > 0) {
        double margin = active->margin[0] * (rounds > 1 ? GROWTH : SHRINK);
        active->margin[0] = lesser(greater(margin, tol), MAX_MARGIN);
    }
    return (ActiveSolution){steps, b, is_fit};
}
