/* The bins of features, and the scores of rows by a forest. */
#include "refit/committee/forest.h"

#include "compiled/elementary.h"
#include "compiled/kernel.h"

#define MIN_SUM 1e-300
enum { BIN_LEVELS = 8, EDGES = 255, ROWS_AT_ONCE = 256 };

/* Return the number of the EDGES ascending edges below a value, by bisection. Branch-free: the branch would be
mispredicted half of the time. */
static inline uint8_t bin_of(const double *edges, double value) {
    uint64_t below = 0;
    for (int level = BIN_LEVELS - 1; level >= 0; level--) {
        uint64_t step = UINT64_C(1) << level;
        below += step * (uint64_t)(edges[below + step - 1] < value);
    }
    return (uint8_t)below;
}

static void call_bins_of(const Slot *a, Slot *r) {
    (void)r;
    Matrix X = a[0].matrix, edges = a[1].matrix;
    uint8_t *bins = a[2].array.at;
    for (int64_t f = 0; f < X.columns; f++)
        for (int64_t i = 0; i < X.rows; i++)
            bins[f * X.rows + i] = bin_of(edges.at + f * EDGES, X.at[i * X.columns + f]);
}

/* Write the leaf of each row, as a node number, level by level: within a level the rows are independent. */
static inline void find_leaves(const int32_t *features, const double *cuts, Matrix X, int64_t first, int64_t n,
                               uint32_t *nodes) {
    for (int64_t i = 0; i < n; i++) nodes[i] = 0;
    for (int level = 0; level < DEPTH; level++)
        for (int64_t i = 0; i < n; i++) {
            uint32_t node = nodes[i];
            uint32_t goes_right = X.at[(first + i) * X.columns + features[node]] > cuts[node];
            nodes[i] = 2 * node + 1 + goes_right;
        }
}

void add_leaves(const int32_t *features, const double *cuts, const int16_t *leaves, int64_t trees, Matrix X,
                IntMatrix totals) {
    int64_t decisions = totals.columns;
    uint32_t nodes[ROWS_AT_ONCE];
    for (int64_t first = 0; first < X.rows; first += ROWS_AT_ONCE) {
        int64_t n = X.rows - first < ROWS_AT_ONCE ? X.rows - first : ROWS_AT_ONCE;
        for (int64_t t = 0; t < trees; t++) {
            find_leaves(features + t * NODES, cuts + t * NODES, X, first, n, nodes);
            for (int64_t i = 0; i < n; i++) {
                const int16_t *leaf = leaves + (t * LEAVES + (int64_t)nodes[i] - NODES) * decisions;
                for (int64_t s = 0; s < decisions; s++) totals.at[(first + i) * decisions + s] += leaf[s];
            }
        }
    }
}

static void call_add_leaves(const Slot *a, Slot *r) {
    (void)r;
    add_leaves(a[0].array.at, a[1].matrix.at, a[2].array.at, a[1].matrix.rows, a[3].matrix, a[4].int_matrix);
}

/* Write log p_k / (1 - p_k) of the softmax of the logits of one row. */
static void log_odds_of_row(const int64_t *totals, int64_t classes, double *terms, double *out) {
    int64_t highest = totals[0];
    for (int64_t k = 1; k < classes; k++) highest = totals[k] > highest ? totals[k] : highest;
    for (int64_t k = 0; k < classes; k++) terms[k] = exp_nonpositive((double)(totals[k] - highest) * LEAF_UNIT);
    for (int64_t k = 0; k < classes; k++) {
        double others = 0.0;
        for (int64_t j = 0; j < classes; j++)
            if (j != k) others += terms[j];
        out[k] = (double)(totals[k] - highest) * LEAF_UNIT - log_of(others < MIN_SUM ? MIN_SUM : others);
    }
}

static void call_log_odds(const Slot *a, Slot *r) {
    (void)r;
    IntMatrix totals = a[0].int_matrix;
    Matrix out = a[2].matrix;
    for (int64_t i = 0; i < totals.rows; i++) {
        if (totals.columns == 1)
            out.at[i] = (double)totals.at[i] * LEAF_UNIT;
        else
            log_odds_of_row(totals.at + i * totals.columns, totals.columns, a[1].vector.at, out.at + i * out.columns);
    }
}

const Kernel refit_committee_forest_kernels[] = {
    {"refit.committee.forest._bins_of", "X: f64[n,d] edges: f64[d,255] bins: =u8[d,n]", call_bins_of, true},
    {"refit.committee.forest.add_leaves",
     "features: i32[t,63] cuts: f64[t,63] leaves: i16[t,64,s] X: f64[m,*] totals: =i64[m,s]", call_add_leaves, false},
    {"refit.committee.forest._log_odds", "totals: i64[m,s] terms: =f64[s] out: =f64[m,s]", call_log_odds, false},
    {0},
};
