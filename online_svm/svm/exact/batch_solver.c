/* Batch solver: SMO and Newton steps in turn, over a fixed set of points. */
#include <math.h>

#include "compiled/floats.h"
#include "svm/exact/smo.h"

/* Scratch of Newton steps over at most k of n variables. */
typedef struct {
    IntVector free; /* (n): the free variables */
    Vector change;  /* (n): the change of F */
    Matrix A;       /* (k, k): kernel matrix of the m free variables, in its first m^2 elements */
    Matrix parts;   /* (4, k) */
} NewtonRoom;

/* The specification of an argument `room`, and its number of slots. */
#define NEWTON_ROOM_ARGUMENT "room: (free: =i64[w] change: =f64[w] A: =f64[k,k] parts: =f64[4,k]) "
enum { NEWTON_ROOM_SLOTS = 4 };

/* Ridge on the kernel matrix of the free variables, relative to the mean of its diagonal: equal points make the matrix
singular. The length of a step is computed without the ridge, which therefore changes the direction only. */
#define RIDGE 1e-10

/* Read the scratch from the arguments declared by NEWTON_ROOM_ARGUMENT. */
static NewtonRoom newton_room_from(const Slot *a) {
    return (NewtonRoom){a[0].int_vector, a[1].vector, a[2].matrix, a[3].matrix};
}

/* ---- Sums of kernel rows ---- */

static inline void add_weighted(double *restrict out, Row row, double weight, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = multiply_add(weight, value_at(row, i), out[i]);
}

static inline void add_four(double *restrict out, Row p, Row q, Row r, Row s, const double *weights, int64_t n) {
    double a = weights[0], b = weights[1], c = weights[2], d = weights[3];
    for (int64_t i = 0; i < n; i++) {
        double sum = multiply_add(b, value_at(q, i), multiply_add(a, value_at(p, i), out[i]));
        out[i] = multiply_add(d, value_at(s, i), multiply_add(c, value_at(r, i), sum));
    }
}

static bool are_cached(const Rows *rows, const int64_t *slots, int n) {
    for (int k = 0; k < n; k++)
        if (rows->row_of.at[slots[k]] < 0) return false;
    return true;
}

static Row row_in_cache(const Rows *rows, int64_t slot) { return cached_row(rows, rows->row_of.at[slot]); }

/* Add sum_a weights_a k(x_slots_a, x_i) to out_i, term by term in the order of the slots. */
static void add_rows(const Rows *rows, IntVector slots, const double *weights, Vector out) {
    bool is_float = rows->values.type == FLOAT32;
    int64_t a = 0;
    /* 1. Four cached rows a pass, to write `out` less often; the order of the terms is unchanged. */
    for (; a + 4 <= slots.n && are_cached(rows, slots.at + a, 4); a += 4) {
        Row p = row_in_cache(rows, slots.at[a]), q = row_in_cache(rows, slots.at[a + 1]);
        Row r = row_in_cache(rows, slots.at[a + 2]), s = row_in_cache(rows, slots.at[a + 3]);
        if (is_float)
            add_four(out.at, float_row(p), float_row(q), float_row(r), float_row(s), weights + a, out.n);
        else
            add_four(out.at, double_row(p), double_row(q), double_row(r), double_row(s), weights + a, out.n);
    }
    /* 2. The remaining rows one by one, computed if they are not cached. */
    for (; a < slots.n; a++) {
        Row row = cached_row(rows, fetch(rows, slots.at[a], 1));
        if (is_float)
            add_weighted(out.at, float_row(row), weights[a], out.n);
        else
            add_weighted(out.at, double_row(row), weights[a], out.n);
    }
}

/* ---- The linear system of the free variables ---- */

/* target_j -= factor source_j */
static inline void subtract_multiple(double *restrict target, const double *restrict source, double factor, int64_t n) {
    for (int64_t j = 0; j < n; j++) target[j] = multiply_add(-factor, source[j], target[j]);
}

/* Overwrite the upper triangle of A with its Cholesky factor U, A = U'U; return whether A is positive definite. */
static bool factorise(double *A, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        double *row = A + k * n;
        if (!(row[k] > 0.0)) return false;
        double scale = 1.0 / sqrt(row[k]);
        for (int64_t j = k; j < n; j++) row[j] *= scale;
        for (int64_t i = k + 1; i < n; i++) subtract_multiple(A + i * n + i, row + i, row[i], n - i);
    }
    return true;
}

/* Overwrite x with the solution s of U'U s = x. */
static void solve_factorised(const double *U, double *x, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        x[k] /= U[k * n + k];
        subtract_multiple(x + k + 1, U + k * n + k + 1, x[k], n - k - 1);
    }
    for (int64_t k = n - 1; k >= 0; k--) {
        double total = x[k];
        for (int64_t j = k + 1; j < n; j++) total = multiply_add(-U[k * n + j], x[j], total);
        x[k] = total / U[k * n + k];
    }
}

/* Write the upper triangle of the kernel matrix of the free points, with the ridge. */
static void gather(const Rows *rows, const int64_t *free, int64_t n, double *A) {
    double trace = 0.0;
    for (int64_t a = 0; a < n; a++) {
        int64_t place = rows->row_of.at[free[a]];
        Row row = cached_row(rows, place >= 0 ? place : fetch(rows, free[a], 1));
        for (int64_t b = a; b < n; b++) A[a * n + b] = value_at(row, free[b]);
    }
    for (int64_t a = 0; a < n; a++) trace += A[a * n + a];
    for (int64_t a = 0; a < n; a++) A[a * n + a] += RIDGE * trace / (double)n;
}

/* Write the Newton direction whose sum is zero; return whether A is positive definite. `ones` is scratch. */
static bool find_direction(double *A, const double *slack, int64_t n, double *direction, double *ones) {
    if (!factorise(A, n)) return false;
    /* 1. Solve A s = slack and A t = 1. */
    for (int64_t a = 0; a < n; a++) {
        direction[a] = slack[a];
        ones[a] = 1.0;
    }
    solve_factorised(A, direction, n);
    solve_factorised(A, ones, n);
    /* 2. s - (sum s / sum t) t has the sum zero. */
    double sum_s = 0.0, sum_t = 0.0, rest = 0.0;
    for (int64_t a = 0; a < n; a++) {
        sum_s += direction[a];
        sum_t += ones[a];
    }
    for (int64_t a = 0; a < n; a++) {
        direction[a] -= sum_s / sum_t * ones[a];
        rest += direction[a];
    }
    /* 3. Remove the rounding error of the sum. */
    for (int64_t a = 0; a < n; a++) direction[a] -= rest / (double)n;
    return true;
}

/* ---- The step ---- */

/* Write the indices of the variables strictly between their bounds; return their number. */
static int64_t free_variables(const Programme *problem, int64_t *free) {
    int64_t count = 0;
    for (int64_t i = 0; i < problem->beta.n; i++) {
        double beta = problem->beta.at[i];
        if (problem->lower.at[i] < beta && beta < problem->upper.at[i]) free[count++] = i;
    }
    return count;
}

/* A direction over n free variables, with their slacks, the bounds in this direction, and the change of F. */
typedef struct {
    const int64_t *free;
    int64_t n;
    double *slack, *direction, *bound;
    const double *change;
} Line;

/* The length of the step, and the index of the free variable that then meets its bound; -1 for none. */
typedef struct {
    double length;
    int64_t blocking;
} Reach;

static Reach reach_along(const Line *line, const double *beta) {
    /* 1. The maximum along the direction: slope over curvature. */
    double gain = 0.0, curvature = 0.0;
    for (int64_t a = 0; a < line->n; a++) {
        gain = multiply_add(line->slack[a], line->direction[a], gain);
        curvature = multiply_add(line->direction[a], line->change[line->free[a]], curvature);
    }
    if (!(gain > 0.0)) return (Reach){0.0, -1};
    Reach found = {curvature > 0.0 ? gain / curvature : INFINITY, -1};
    /* 2. No further than the first bound. */
    for (int64_t a = 0; a < line->n; a++) {
        double step = line->direction[a];
        double length = step != 0.0 ? (line->bound[a] - beta[line->free[a]]) / step : INFINITY;
        if (length < found.length) found = (Reach){length, a};
    }
    return found;
}

/* Move the coefficients and F. */
static void move_along(const Line *line, Reach reach, const Programme *problem) {
    double *beta = problem->beta.at;
    for (int64_t a = 0; a < line->n; a++) {
        int64_t i = line->free[a];
        double value = multiply_add(reach.length, line->direction[a], beta[i]);
        if (problem->lower.at[i] > value) value = problem->lower.at[i];
        beta[i] = problem->upper.at[i] < value ? problem->upper.at[i] : value;
    }
    if (reach.blocking >= 0) beta[line->free[reach.blocking]] = line->bound[reach.blocking];
    for (int64_t k = 0; k < problem->F.n; k++)
        problem->F.at[k] = multiply_add(reach.length, line->change[k], problem->F.at[k]);
}

/* Move the first n of `room->free`, at most k, to the maximum over them, or up to the first bound. Return whether a
bound stopped the step; another step over the remaining free variables then gains more. */
static bool free_step(const Rows *rows, const Programme *problem, int64_t n, const NewtonRoom *room) {
    double *part = room->parts.at, *ones = part + 3 * room->parts.columns;
    Line line = {room->free.at, n, part, part + room->parts.columns, part + 2 * room->parts.columns, room->change.at};
    /* 1. The Newton direction of sum zero over the free variables. */
    for (int64_t a = 0; a < n; a++) line.slack[a] = problem->z.at[line.free[a]] - problem->F.at[line.free[a]];
    gather(rows, line.free, n, room->A.at);
    if (!find_direction(room->A.at, line.slack, n, line.direction, ones)) return false;
    /* 2. The bound of each variable in its direction, and the change of F. */
    for (int64_t a = 0; a < n; a++)
        line.bound[a] = (line.direction[a] > 0.0 ? problem->upper : problem->lower).at[line.free[a]];
    for (int64_t k = 0; k < room->change.n; k++) room->change.at[k] = 0.0;
    add_rows(rows, (IntVector){room->free.at, n}, line.direction, room->change);
    /* 3. The length: to the maximum, or to the first bound. */
    Reach reach = reach_along(&line, problem->beta.at);
    if (!(0.0 < reach.length && reach.length < INFINITY)) return false;
    /* 4. Move the coefficients and F. */
    move_along(&line, reach, problem);
    return reach.blocking >= 0;
}

static void call_add_rows(const Slot *a, Slot *r) {
    (void)r;
    Rows rows = rows_from(a);
    a += ROWS_SLOTS;
    add_rows(&rows, a[0].int_vector, a[1].vector.at, a[2].vector);
}

static void call_factorise(const Slot *a, Slot *r) { r->integer = factorise(a->matrix.at, a->matrix.rows); }

static void call_solve_factorised(const Slot *a, Slot *r) {
    (void)r;
    solve_factorised(a[0].matrix.at, a[1].vector.at, a[1].vector.n);
}

static void call_free_step(const Slot *a, Slot *r) {
    Rows rows = rows_from(a);
    Programme problem = programme_from(a + ROWS_SLOTS);
    a += ROWS_SLOTS + PROGRAMME_SLOTS;
    NewtonRoom room = newton_room_from(a + 1);
    r->integer = free_step(&rows, &problem, a->integer, &room);
}

#define ROUNDING 0x1p-52

/* Return the approximate number of multiplications of a Newton step: factorisation, and change of F. */
static int64_t newton_cost(int64_t n_free, int64_t n) { return n_free * n_free * n_free / 3 + n_free * n; }

/* Take Newton steps until a step is not stopped by a bound, or the budget of multiplications is spent. */
static void settle_free(const Rows *rows, const Programme *problem, int64_t budget, const NewtonRoom *room) {
    bool is_blocked = true;
    while (is_blocked) {
        int64_t n_free = free_variables(problem, room->free.at);
        budget -= newton_cost(n_free, problem->z.n);
        if (n_free < 2 || budget < 0 || n_free > room->A.rows) break;
        is_blocked = free_step(rows, problem, n_free, room);
    }
}

/* Return a limit on the terms of a slack: the largest width of the bounds times the largest kernel value. */
static double largest_term(const Programme *problem, const double *diagonal) {
    double max_width = 0.0, max_value = 0.0;
    for (int64_t i = 0; i < problem->z.n; i++) {
        double width = problem->upper.at[i] - problem->lower.at[i];
        if (width > max_width) max_width = width;
        if (diagonal[i] > max_value) max_value = diagonal[i];
    }
    return max_width * max_value;
}

static bool is_moved(Vector beta, const double *before) {
    for (int64_t i = 0; i < beta.n; i++)
        if (beta.at[i] != before[i]) return true;
    return false;
}

/* See `_round` in Python; `before` is scratch. */
static void call_round(const Slot *a, Slot *r) {
    Rows rows = rows_from(a);
    Programme problem = programme_from(a + ROWS_SLOTS);
    a += ROWS_SLOTS + PROGRAMME_SLOTS;
    double tol = a[0].real, *before = a[4].vector.at;
    int64_t limit = a[1].integer, budget = a[2].integer;
    NewtonRoom room = newton_room_from(a + 5);
    for (int64_t i = 0; i < problem.beta.n; i++) before[i] = problem.beta.at[i];
    /* 1. Raise the tolerance to the rounding of a slack. */
    double rounding = ROUNDING * largest_term(&problem, rows.diagonal.at);
    if (rounding > tol) tol = rounding;
    /* 2. SMO, for a limited number of pair steps. */
    Ascent ascent = maximise(&rows, &problem, tol, limit, a[3].matrix);
    bool is_optimal = ascent.highest - ascent.lowest < tol || isinf(ascent.highest);
    /* 3. Newton steps over the free variables. */
    if (!is_optimal) settle_free(&rows, &problem, budget, &room);
    r[0].integer = ascent.steps;
    r[1].integer = is_optimal;
    r[2].integer = is_optimal || is_moved(problem.beta, before);
}

const Kernel svm_exact_batch_solver_kernels[] = {
    {"svm.exact.batch_solver.add_rows", ROWS_ARGUMENT "slots: i64[n] weights: f64[n] out: =f64[w]", call_add_rows,
     true},
    {"svm.exact.batch_solver.factorise", "A: =f64[n,n] -> bool", call_factorise, true},
    {"svm.exact.batch_solver.solve_factorised", "U: f64[n,n] x: =f64[n]", call_solve_factorised, true},
    {"svm.exact.batch_solver._free_step",
     ROWS_ARGUMENT PROGRAMME_ARGUMENT "n_free: int<=k " NEWTON_ROOM_ARGUMENT "-> bool", call_free_step, true},
    {"svm.exact.batch_solver._round",
     ROWS_ARGUMENT PROGRAMME_ARGUMENT
     "limits: (tol: float steps: int budget: int) work: =f64[3,w] before: =f64[w] " NEWTON_ROOM_ARGUMENT
     "-> int bool bool",
     call_round, true},
    {0},
};
