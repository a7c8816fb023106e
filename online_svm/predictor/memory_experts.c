/* The average of the present answer and the experts with long memory; see `memory_experts.py`. */
#include "predictor/ensemble.h"

#define MIN_PROBABILITY 1e-6 /* in the log-odds of the stacks */
#define TRUST_AGE 5.0        /* a label that is as many labels late moves the trust at half the rate */

/* Rows in order. Each expert says n_classes probabilities of a row. */
typedef struct {
    Matrix present; /* shape (m, n_classes); the first expert */
    Cube trees;     /* shape (trees, m, n_classes); the next experts */
    const int64_t *columns, *sources;
    const double *ages;
    Cube stored; /* shape (m, n_classes, experts + 1) of answers if labels are late; else without rows */
    double *point;
} Rows;

/* The stacks, and what was said of the labels that they learn: log-odds of the classes against the first. */
typedef struct {
    Matrix weights; /* of each stack and stacked expert; of two classes the last is the intercept */
    Cube odds;      /* labels, stacked experts, n_classes - 1 */
    int64_t *columns;
} Stacks;

/* Room for one row: what each expert says, or said at the answer; the present answer and the average of the experts;
   the clipped parts of both; and log-odds. */
typedef struct {
    double *experts, *parts, *forecasts, *of_forecasts, *odds;
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
    double *now = scratch.experts;
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

/* Answer row i by the average, and by the trust in it if labels are late. */
static void answer_row(Rows rows, int64_t i, Mixture of, Mixture trust, bool is_heard, Scratch scratch) {
    int64_t n = rows.present.columns;
    double *point = rows.point + i * n, *average = scratch.forecasts + n;
    mix_row(scratch.experts, n, n, of, scratch.parts, average);
    for (int64_t c = 0; c < n; c++) scratch.forecasts[c] = scratch.experts[c];
    if (trust.n > 0) mix_row(scratch.forecasts, n, n, trust, scratch.of_forecasts, point);
    for (int64_t c = 0; c < n && trust.n == 0; c++) point[c] = average[c];
    for (int64_t c = 0; c < n && !is_heard; c++) point[c] = scratch.experts[c];
    if (rows.sources[i] >= 0 || rows.stored.planes == 0) return;
    for (int64_t c = 0; c < n; c++) {
        double *stored = rows.stored.at + (i * n + c) * (of.n + 1);
        for (int64_t k = 0; k < of.n; k++) stored[k] = scratch.experts[k * n + c];
        stored[of.n] = average[c];
    }
}

/* Put what was said at the answer of a row in the place of what is said now. */
static void recall(Rows rows, int64_t source, int64_t n_experts, Scratch scratch) {
    int64_t n = rows.present.columns;
    for (int64_t c = 0; c < n; c++) {
        const double *stored = rows.stored.at + (source * n + c) * (n_experts + 1);
        for (int64_t k = 0; k < n_experts; k++) scratch.experts[k * n + c] = stored[k];
        scratch.forecasts[c] = stored[0];
        scratch.forecasts[n + c] = stored[n_experts];
    }
    for (int64_t k = 0; k < n_experts; k++) clip(scratch.experts + k * n, n, scratch.parts + k * n);
    for (int64_t k = 0; k < 2; k++) clip(scratch.forecasts + k * n, n, scratch.of_forecasts + k * n);
}

static void call_answer(const Slot *a, Slot *r) {
    Rows rows = {a[0].matrix,    a[1].cube, a[2].int_vector.at, a[3].int_vector.at,
                 a[4].vector.at, a[5].cube, a[6].matrix.at};
    Mixture of = {a[8].vector.at, a[9].vector.at, a[8].vector.n, a[10].real, a[11].real};
    Mixture trust = {a[12].vector.at, a[13].vector.at, a[12].vector.n, a[14].real, a[15].real};
    Stacks stacks = {a[16].matrix, a[17].cube, a[18].int_vector.at};
    int64_t row = a[7].integer, size = a[19].integer, until = a[20].integer;
    int64_t credited = a[21].integer, needed = a[22].integer, n = rows.present.columns;
    Scratch scratch = {a[23].matrix.at, a[24].matrix.at, a[25].matrix.at, a[26].matrix.at, a[27].matrix.at};
    for (; row < rows.present.rows && size < until; row++) {
        int64_t y = rows.columns[row], source = rows.sources[row];
        write_now(rows, row, stacks, scratch);
        answer_row(rows, row, of, trust, credited >= needed, scratch);
        if (y < 0 || y >= n) continue;
        if (source >= 0) recall(rows, source, of.n, scratch);
        learn_mixture(of, scratch.parts + y, n);
        if (trust.n > 0) {
            trust.rate = TRUST_AGE / (TRUST_AGE + rows.ages[row]);
            learn_mixture(trust, scratch.of_forecasts + y, n);
        }
        write_odds(scratch.experts, stacks, stacks.odds.at + size * stacks.odds.rows * stacks.odds.columns);
        stacks.columns[size++] = y;
        if (credited < needed) credited += had_trees(scratch.experts, n);
    }
    r[0].integer = row;
    r[1].integer = size;
    r[2].integer = credited;
}

const Kernel predictor_memory_experts_kernels[] = {
    {"predictor.memory_experts._answer",
     "rows: (present: f64[m,c] trees: f64[t,m,c] columns: i64[m] sources: i64[m] ages: f64[m] stored: =f64[*,c,s]"
     " point: =f64[m,c]) row: int<=m average: (logs: =f64[e] moved: f64[e] share: float rate: float)"
     " trust: (logs: =f64[w] moved: f64[w] share: float rate: float)"
     " stacks: (weights: f64[k,i] odds: =f64[n,t+1,c-1] columns: =i64[n]) size: int<=n until: int credited: int"
     " needed: int scratch: (experts: =f64[e,c] parts: =f64[e,c] forecasts: =f64[2,c] of_forecasts: =f64[2,c]"
     " odds: =f64[t+1,c-1])"
     " -> int int int",
     call_answer, false},
    {0},
};
