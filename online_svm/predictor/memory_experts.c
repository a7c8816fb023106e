/* The average of the present answer and the experts with long memory; see `memory_experts.py`. */
#include "predictor/ensemble.h"

#define MIN_PROBABILITY 1e-6 /* in the log-odds of the stacks */

/* Rows in order. Each expert says n_classes probabilities of a row. */
typedef struct {
    Matrix present; /* shape (m, n_classes); the first expert */
    Cube trees;     /* shape (trees, m, n_classes); the next experts */
    const int64_t *columns, *sources;
    Cube stored; /* shape (m, n_classes, experts) of answers if labels are late; else without rows */
    double *point;
} Rows;

/* The stacks, and what was said of the labels that they learn: log-odds of the classes against the first. */
typedef struct {
    Matrix weights; /* of each stack and stacked expert; of two classes the last is the intercept */
    Cube odds;      /* labels, stacked experts, n_classes - 1 */
    int64_t *columns;
} Stacks;

/* Room for one row: what each expert says, or said at the answer, its clipped part, and log-odds. */
typedef struct {
    double *now, *then, *parts, *odds;
} Scratch;

/* Write the log-odds of the stacked experts, the first ones. */
static void write_odds(const double *said, Stacks of, double *odds) {
    int64_t n_classes = of.odds.columns + 1;
    for (int64_t k = 0; k < of.odds.rows; k++, said += n_classes) {
        double first = log_of(greater(said[0], MIN_PROBABILITY));
        for (int64_t y = 1; y < n_classes; y++) *odds++ = log_of(greater(said[y], MIN_PROBABILITY)) - first;
    }
}

/* Write the probabilities of a stack: the softmax of the weighted log-odds. */
static void write_stack(const double *weights, int64_t n_inputs, const double *odds, int64_t n_stacked,
                        int64_t n_classes, double *said) {
    double highest = 0.0, sum = 0.0;
    said[0] = 0.0;
    for (int64_t y = 1; y < n_classes; y++) {
        said[y] = 0.0;
        for (int64_t k = 0; k < n_stacked; k++) said[y] += weights[k] * odds[k * (n_classes - 1) + y - 1];
        if (n_inputs > n_stacked) said[y] += weights[n_stacked];
        highest = greater(said[y], highest);
    }
    for (int64_t y = 0; y < n_classes; y++) {
        said[y] = exp_of(said[y] - highest);
        sum += said[y];
    }
    for (int64_t y = 0; y < n_classes; y++) said[y] /= sum;
}

/* Write what each expert says now of row i. */
static void write_now(Rows rows, int64_t i, Stacks of, Scratch scratch) {
    int64_t n = rows.present.columns, n_stacked = of.odds.rows;
    double *now = scratch.now;
    for (int64_t y = 0; y < n; y++) now[y] = rows.present.at[i * n + y];
    for (int64_t k = 0; k < rows.trees.planes; k++)
        for (int64_t y = 0; y < n; y++) now[(k + 1) * n + y] = rows.trees.at[(k * rows.trees.rows + i) * n + y];
    write_odds(now, of, scratch.odds);
    for (int64_t k = 0; k < of.weights.rows; k++)
        write_stack(of.weights.at + k * of.weights.columns, of.weights.columns, scratch.odds, n_stacked, n,
                    now + (n_stacked + k) * n);
}

static bool had_trees(const double *said, int64_t n_classes) {
    bool differs = false;
    for (int64_t y = 0; y < n_classes; y++) differs |= said[n_classes + y] != said[y];
    return differs;
}

/* Answer row i; return whether it has a label, whose experts are then in `said`, and their clipped parts in scratch. */
static bool answer_row(Rows rows, int64_t i, Mixture of, bool is_heard, Scratch scratch, const double **said) {
    int64_t n = rows.present.columns, y = rows.columns[i], source = rows.sources[i];
    mix_row(scratch.now, n, n, of, scratch.parts, rows.point + i * n);
    for (int64_t c = 0; c < n && !is_heard; c++) rows.point[i * n + c] = scratch.now[c];
    *said = scratch.now;
    if (source < 0 && rows.stored.planes > 0)
        for (int64_t k = 0; k < of.n; k++)
            for (int64_t c = 0; c < n; c++) rows.stored.at[(i * n + c) * of.n + k] = scratch.now[k * n + c];
    if (y < 0 || y >= n) return false;
    if (source >= 0) {
        for (int64_t k = 0; k < of.n; k++) {
            for (int64_t c = 0; c < n; c++) scratch.then[k * n + c] = rows.stored.at[(source * n + c) * of.n + k];
            clip(scratch.then + k * n, n, scratch.parts + k * n);
        }
        *said = scratch.then;
    }
    return true;
}

static void call_answer(const Slot *a, Slot *r) {
    Rows rows = {a[0].matrix, a[1].cube, a[2].int_vector.at, a[3].int_vector.at, a[4].cube, a[5].matrix.at};
    Mixture of = {a[7].vector.at, a[8].vector.at, a[7].vector.n, a[9].real, a[10].real};
    Stacks stacks = {a[11].matrix, a[12].cube, a[13].int_vector.at};
    int64_t row = a[6].integer, size = a[14].integer, until = a[15].integer;
    int64_t credited = a[16].integer, needed = a[17].integer, n = rows.present.columns;
    Scratch scratch = {a[18].matrix.at, a[19].matrix.at, a[20].matrix.at, a[21].matrix.at};
    for (; row < rows.present.rows && size < until; row++) {
        const double *said;
        write_now(rows, row, stacks, scratch);
        if (!answer_row(rows, row, of, credited >= needed, scratch, &said)) continue;
        learn_mixture(of, scratch.parts + rows.columns[row], n);
        write_odds(said, stacks, stacks.odds.at + size * stacks.odds.rows * stacks.odds.columns);
        stacks.columns[size++] = rows.columns[row];
        if (credited < needed) credited += had_trees(said, n);
    }
    r[0].integer = row;
    r[1].integer = size;
    r[2].integer = credited;
}

const Kernel predictor_memory_experts_kernels[] = {
    {"predictor.memory_experts._answer",
     "rows: (present: f64[m,c] trees: f64[t,m,c] columns: i64[m] sources: i64[m] stored: =f64[*,c,e]"
     " point: =f64[m,c]) row: int<=m average: (logs: =f64[e] moved: f64[e] share: float rate: float)"
     " stacks: (weights: f64[k,i] odds: =f64[n,t+1,c-1] columns: =i64[n]) size: int<=n until: int credited: int"
     " needed: int scratch: (now: =f64[e,c] then: =f64[e,c] parts: =f64[e,c] odds: =f64[t+1,c-1])"
     " -> int int int",
     call_answer, false},
    {0},
};
