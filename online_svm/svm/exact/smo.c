#include "svm/exact/smo.h"

#include <stddef.h>

#include "compiled/extremes.h"
#include "compiled/floats.h"
#include "compiled/ordered_sums.h"
#include "svm/exact/common_shift.h"

enum { CHUNK = 64 }; /* a search for the largest slack finds its chunk with vectors, then its place in the chunk */

#define ROUNDINGS 1e-13 /* relative to the distance of a variable's bounds: some hundred rounding errors */

/* RECIPROCAL minus the bits of x are the bits of 1/x to an eighth (as in the fast inverse square root). One Newton step
then gives two digits, enough to choose a partner. */
#define RECIPROCAL INT64_C(0x7FDE6238502484BA)

/* The slack of each variable, once for growing and once for shrinking, and scratch for gains.

A variable that cannot grow has -inf in `up`, one that cannot shrink +inf in `down`: no step changes these values, and
no search selects them. */
typedef struct {
    double *up, *down, *gain;
    int64_t n;
} Slacks;

/* The state of a solve; `mean` is the mean slack of the members of `shift`. */
typedef struct {
    const Shift *shift;
    const Programme *problem;
    const double *diagonal;
    Slacks slacks;
    double mean;
} Solver;

double snapped(double beta, double lower, double upper) {
    double margin = ROUNDINGS * (upper - lower);
    if (fabs(beta - upper) < margin) return upper;
    return fabs(beta - lower) < margin ? lower : beta;
}

/* ---- Searches for the largest value ---- */

/* An integer key in the order of the doubles, with -0 below 0: compilers vectorise only a maximum of integers. */
static inline int64_t order_key(double x) {
    int64_t bits = bits_of(x);
    return bits ^ ((bits >> 63) & INT64_MAX);
}

/* The double of a key: `order_key` is its own inverse on bits. */
static inline double value_of_key(int64_t key) { return float_of(key ^ ((key >> 63) & INT64_MAX)); }

static inline int64_t larger_key(int64_t a, int64_t b) { return a > b ? a : b; }

/* Return the first place of the known largest value, from `first` on. */
static int64_t place_of_largest(const double *values, int64_t first, int64_t n, double largest) {
    int64_t k = first;
    while (k < n && values[k] != largest) k++;
    return k < n ? k : first;
}

static inline int64_t largest_key(const double *values, int64_t n) {
    int64_t key = INT64_MIN;
    for (int64_t k = 0; k < n; k++) key = larger_key(key, order_key(values[k]));
    return key;
}

int64_t highest_index(Vector up) {
    int64_t best_key = INT64_MIN, best = 0;
    for (int64_t first = 0; first < up.n; first += CHUNK) {
        int64_t n = up.n - first;
        int64_t key = n >= CHUNK ? largest_key(up.at + first, CHUNK) : largest_key(up.at + first, n);
        if (key > best_key) {
            best_key = key;
            best = first;
        }
    }
    return place_of_largest(up.at, best, up.n, value_of_key(best_key));
}

double lowest_slack(Vector down) {
    int64_t lowest = INT64_MAX;
    for (int64_t k = 0; k < down.n; k++) {
        int64_t key = order_key(down.at[k]);
        lowest = key < lowest ? key : lowest;
    }
    return value_of_key(lowest);
}

/* The largest value of a chunk, by halves: all compilers vectorise these loops, because none is a reduction. */
static inline double largest_of_chunk(const double *values) {
    double half[CHUNK / 2];
    for (int k = 0; k < 32; k++) half[k] = greater(values[k], values[k + 32]);
    for (int k = 0; k < 16; k++) half[k] = greater(half[k], half[k + 16]);
    for (int k = 0; k < 8; k++) half[k] = greater(half[k], half[k + 8]);
    for (int k = 0; k < 4; k++) half[k] = greater(half[k], half[k + 4]);
    return greater(greater(half[0], half[1]), greater(half[2], half[3]));
}

/* The largest value so far, and the place from which to search for it. */
typedef struct {
    double value;
    int64_t first;
} Largest;

static inline void look_at_chunk(Largest *largest, const double *values, int64_t first) {
    double found = largest_of_chunk(values + first);
    if (found > largest->value) *largest = (Largest){found, first};
}

/* Scan the last of n values, from `first` on, which are less than a chunk: the chunk that ends with them, if there is
one. */
static inline void look_at_rest(Largest *largest, const double *values, int64_t first, int64_t n) {
    if (n >= CHUNK) {
        look_at_chunk(largest, values, n - CHUNK);
        return;
    }
    for (int64_t k = first; k < n; k++)
        if (values[k] > largest->value) *largest = (Largest){values[k], k};
}

/* ---- The passes over all variables ---- */

/* Update n slacks after a step along (i, j). */
static inline void move_part(double *restrict up, double *restrict down, Row row_i, Row row_j, double step, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        double change = value_at(row_i, k) - value_at(row_j, k);
        up[k] = multiply_add(-step, change, up[k]);
        down[k] = multiply_add(-step, change, down[k]);
    }
}

static inline int64_t move_typed(const Slacks *slacks, Row row_i, Row row_j, double step) {
    double *up = slacks->up, *down = slacks->down;
    int64_t n = slacks->n, whole = n - n % CHUNK;
    Largest highest = {-INFINITY, 0};
    for (int64_t k = 0; k < whole; k += CHUNK) {
        move_part(up + k, down + k, row_from(row_i, k), row_from(row_j, k), step, CHUNK);
        look_at_chunk(&highest, up, k);
    }
    if (whole < n) {
        move_part(up + whole, down + whole, row_from(row_i, whole), row_from(row_j, whole), step, n - whole);
        look_at_rest(&highest, up, whole, n);
    }
    if (highest.value == 0.0) return highest_index((Vector){up, n}); /* it orders -0 below 0 */
    return place_of_largest(up, highest.first, n, highest.value);
}

/* Update the slacks after a step along (i, j), and return the index of the largest that can grow. */
static int64_t move_slacks(const Slacks *slacks, Row row_i, Row row_j, double step) {
    if (row_i.type == FLOAT64) return move_typed(slacks, double_row(row_i), double_row(row_j), step);
    if (row_j.type == FLOAT64) return move_typed(slacks, float_row(row_i), double_row(row_j), step);
    return move_typed(slacks, float_row(row_i), float_row(row_j), step);
}

/* Write the gains of n pairs (i, k). */
static inline void gain_part(double *restrict gain, const double *restrict down, Row row,
                             const double *restrict diagonal, double top, double k_ii, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        /* 1. Violation of optimality by the pair (i, k), or 0. */
        double violation = greater(0.0, top - down[k]);
        /* 2. Its curvature k_ii + k_kk - 2 k_ik. */
        double curvature = greater(FLAT, multiply_add(-2.0, value_at(row, k), k_ii + diagonal[k]));
        /* 3. Gain violation^2 / curvature, approximately: an exact division would dominate the time of a step. */
        double inverse = float_of(RECIPROCAL - bits_of(curvature));
        gain[k] = violation * violation * (inverse * multiply_add(-curvature, inverse, 2.0));
    }
}

static inline int64_t choose_typed(const Slacks *slacks, Row row, const double *diagonal, double top, double k_ii) {
    double *gain = slacks->gain, *down = slacks->down;
    int64_t n = slacks->n, whole = n - n % CHUNK;
    Largest best = {0.0, 0};
    for (int64_t k = 0; k < whole; k += CHUNK) {
        gain_part(gain + k, down + k, row_from(row, k), diagonal + k, top, k_ii, CHUNK);
        look_at_chunk(&best, gain, k);
    }
    if (whole < n) {
        gain_part(gain + whole, down + whole, row_from(row, whole), diagonal + whole, top, k_ii, n - whole);
        look_at_rest(&best, gain, whole, n);
    }
    return place_of_largest(gain, best.first, n, best.value);
}

/* Return the variable with the largest gain in a pair with i. */
static int64_t choose_partner(const Slacks *slacks, Row row, const double *diagonal, double top, double k_ii) {
    if (row.type == FLOAT32) return choose_typed(slacks, float_row(row), diagonal, top, k_ii);
    return choose_typed(slacks, double_row(row), diagonal, top, k_ii);
}

/* Return whether no pair violates optimality by `tol`; the pair (i, j) is checked first. */
static bool is_optimal(const Slacks *slacks, int64_t i, int64_t j, double tol) {
    if (slacks->up[i] - slacks->down[j] >= tol) return false;
    return greater(slacks->up[i] - lowest_slack((Vector){slacks->down, slacks->n}), 0.0) < tol;
}

/* ---- The solver ---- */

/* Write the slack of each variable, once for growing and once for shrinking. */
static void split_slacks(const Programme *problem, const Slacks *slacks) {
    const double *z = problem->z.at, *F = problem->F.at, *beta = problem->beta.at;
    for (int64_t i = 0; i < slacks->n; i++) {
        double slack = z[i] - F[i];
        slacks->down[i] = beta[i] > problem->lower.at[i] ? slack : INFINITY;
        slacks->up[i] = beta[i] < problem->upper.at[i] ? slack : -INFINITY;
    }
}

/* Write F from the slacks; vacant slots keep their F. */
static void join_slacks(const Programme *problem, const Slacks *slacks) {
    for (int64_t i = 0; i < slacks->n; i++) {
        double slack = slacks->up[i] > -INFINITY ? slacks->up[i] : slacks->down[i];
        if (slack < INFINITY) problem->F.at[i] = problem->z.at[i] - slack;
    }
}

/* Return whether there are members to shift; if not, the arrays may be missing. */
static bool has_members(const Shift *shift) {
    return shift->size > 0.0 && shift->row.at != NULL && shift->members.at != NULL;
}

/* Return the mean slack of the members; `scratch` has n elements. */
static double mean_slack(const Shift *shift, const Programme *problem, double *scratch) {
    if (!has_members(shift)) return 0.0;
    int64_t n = problem->z.n;
    for (int64_t k = 0; k < n; k++) scratch[k] = problem->z.at[k] - problem->F.at[k];
    return dot(scratch, shift->members.at, n) / shift->size;
}

/* Change one coefficient, and record the directions in which it can still move. */
static void change(const Solver *solver, int64_t k, double step, double slack) {
    double lower = solver->problem->lower.at[k], upper = solver->problem->upper.at[k];
    double beta = snapped(solver->problem->beta.at[k] + step, lower, upper);
    solver->problem->beta.at[k] = beta;
    solver->slacks.up[k] = beta < upper ? slack : -INFINITY;
    solver->slacks.down[k] = beta > lower ? slack : INFINITY;
}

/* Shift the members against one variable of the pair if that gains more than the pair; return the next i, else -1. */
static int64_t take_common_step(Solver *solver, const Pair *pair, Row row_i, Row row_j) {
    const Shift *shift = solver->shift;
    CommonStep found = common_step(shift, pair, solver->mean, solver->diagonal, solver->problem);
    if (found.c < 0) return -1;
    shift_members(shift, solver->problem->beta.at, -found.step / shift->size);
    bool is_i = found.c == pair->i;
    change(solver, found.c, found.step, is_i ? pair->slack_i : pair->slack_j);
    solver->mean -= found.step * (shift->row.at[found.c] - shift->spread);
    return move_slacks(&solver->slacks, is_i ? row_i : row_j, (Row){shift->row.at, FLOAT64}, found.step);
}

/* Step along the pair, or shift the members against one variable of it; return the next i. */
static int64_t take_step(Solver *solver, int64_t i, int64_t j, Row row_i, Row row_j) {
    const Programme *problem = solver->problem;
    const double *diagonal = solver->diagonal;
    Pair pair = {i, j, solver->slacks.up[i], solver->slacks.down[j], 0.0};
    double violation = pair.slack_i - pair.slack_j;
    double curvature = diagonal[i] + diagonal[j] - 2.0 * value_at(row_i, j);
    if (FLAT > curvature) curvature = FLAT;
    bool is_shifting = has_members(solver->shift);
    /* 1. If the common shift gains more than the pair, take it instead. */
    if (is_shifting) {
        pair.gain = violation * violation / curvature;
        int64_t next = take_common_step(solver, &pair, row_i, row_j);
        if (next >= 0) return next;
    }
    /* 2. Otherwise the unconstrained maximum along the pair, clipped to the bounds. */
    double step = violation / curvature;
    double room_i = problem->upper.at[i] - problem->beta.at[i], room_j = problem->beta.at[j] - problem->lower.at[j];
    if (room_i < step) step = room_i;
    if (room_j < step) step = room_j;
    /* 3. The two coefficients, and the directions in which they can still move. */
    change(solver, i, step, pair.slack_i);
    change(solver, j, -step, pair.slack_j);
    if (is_shifting) solver->mean -= step * (solver->shift->row.at[i] - solver->shift->row.at[j]);
    /* 4. The slacks of all variables. */
    return move_slacks(&solver->slacks, row_i, row_j, step);
}

/* The row of a training slot, with all columns of training points. */
static Row row_of_slot(const Rows *rows, int64_t slot) {
    int64_t place = rows->row_of.at[slot];
    if (place < 0 || rows->known.at[2 * place] < rows->rings[TRAIN_TAIL]) return cached_row(rows, fetch(rows, slot, 1));
    rows->used.at[place] = ++rows->rings[CLOCK];
    return cached_row(rows, place);
}

Ascent maximise_with(const Shift *shift, const Rows *rows, const Programme *problem, double tol, int64_t max_steps,
                     Matrix work) {
    double *up = work.at, *down = up + work.columns, *gain = down + work.columns;
    int64_t n = problem->z.n, steps = 0;
    /* The gradient of the dual is the slack z - F; it is kept up to date instead of F. */
    Solver solver = {shift, problem, rows->diagonal.at, {up, down, gain, n}, mean_slack(shift, problem, gain)};
    split_slacks(problem, &solver.slacks);
    /* 1. i: the largest slack among the variables that can grow. */
    int64_t i = highest_index((Vector){up, n});
    while (up[i] > -INFINITY) {
        /* 2. Its kernel row. */
        Row row_i = row_of_slot(rows, i);
        /* 3. j: the partner of the largest second-order gain; stop if no pair violates optimality. */
        int64_t j = choose_partner(&solver.slacks, row_i, solver.diagonal, up[i], solver.diagonal[i]);
        if (steps == max_steps || is_optimal(&solver.slacks, i, j, tol)) break;
        /* 4. The row of j. */
        Row row_j = row_of_slot(rows, j);
        /* 5. The step, clipped to the bounds, the slacks after it, and the next i. */
        i = take_step(&solver, i, j, row_i, row_j);
        steps++;
    }
    /* 6. F of all variables from the slacks. */
    Ascent found = {steps, up[i], lowest_slack((Vector){down, n})};
    join_slacks(problem, &solver.slacks);
    return found;
}

Ascent maximise(const Rows *rows, const Programme *problem, double tol, int64_t max_steps, Matrix work) {
    const Shift no_shift = {.size = 0.0};
    return maximise_with(&no_shift, rows, problem, tol, max_steps, work);
}

double intercept(Vector up, Vector down, double highest, double lowest) {
    /* 1. The mean over the free variables, added in a fixed order. */
    double lanes[LANES] = {0.0};
    int64_t count = 0;
    for (int64_t first = 0; first < up.n; first += LANES)
        for (int64_t k = 0; k < LANES && first + k < up.n; k++) {
            double u = up.at[first + k];
            bool is_free = (u > -INFINITY) & (down.at[first + k] < INFINITY);
            lanes[k] += is_free ? u : 0.0;
            count += is_free;
        }
    if (count > 0) return sum_of_lanes(lanes) / (double)count;
    /* 2. Without free variables: the midpoint of the limits from the others, or the finite limit. */
    if (isinf(highest)) return lowest;
    return isinf(lowest) ? highest : 0.5 * (highest + lowest);
}

static void call_maximise(const Slot *a, Slot *r) {
    Rows rows = rows_from(a);
    Programme problem = programme_from(a + ROWS_SLOTS);
    a += ROWS_SLOTS + PROGRAMME_SLOTS;
    Ascent found = maximise(&rows, &problem, a[0].real, a[1].integer, a[2].matrix);
    r[0].integer = found.steps;
    r[1].real = found.highest;
    r[2].real = found.lowest;
}

const Kernel svm_exact_smo_kernels[] = {
    {"svm.exact.batch_solver.maximise",
     ROWS_ARGUMENT PROGRAMME_ARGUMENT "tol: float max_steps: int work: =f64[3,w] -> int float float", call_maximise,
     true},
    {0},
};
