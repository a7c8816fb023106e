/* The bins of features, and the scores of rows by a forest. */
#include "refit/committee/forest.h"

#include "compiled/elementary.h"
#include "compiled/kernel.h"

#define MIN_SUM 1e-300
enum { BIN_LEVELS = 8, EDGES = 255, FEW_ROWS = 8 };

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

RankedTrees ranked_trees_of(const Slot *a) {
    return (RankedTrees){.columns = a[0].int_vector,
                         .starts = a[1].int_vector.at,
                         .values = a[2].vector.at,
                         .slots = a[3].array.at,
                         .ranks = a[4].array.at,
                         .leaves = a[5].array.at,
                         .trees = a[3].array.shape[0]};
}

/* Write how many cuts of each column n values are above, by bisection; a row with a larger bin than a cut's rank goes
right. */
static void write_bins(RankedTrees of, Matrix X, int64_t first, int64_t n, uint8_t *bins) {
    for (int64_t u = 0; u < of.columns.n; u++, bins += ROWS_AT_ONCE) {
        if (of.starts[u] == of.starts[u + 1]) continue; /* no node splits by this column: its bins stay 0 */
        const double *cuts = of.values + of.starts[u], *x = X.at + first * X.columns + of.columns.at[u];
        int64_t below[ROWS_AT_ONCE], left = of.starts[u + 1] - of.starts[u];
        for (int64_t i = 0; i < n; i++) below[i] = 0;
        for (; left > 1; left -= left / 2) {
            int64_t half = left / 2;
            for (int64_t i = 0; i < n; i++) below[i] += cuts[below[i] + half - 1] < x[i * X.columns] ? half : 0;
        }
        for (int64_t i = 0; i < n; i++) bins[i] = (uint8_t)(below[i] + (cuts[below[i]] < x[i * X.columns]));
    }
}

/* Write the leaf that each row of a chunk reaches in a tree to the first row of `found`: from the last node up, what it
is within the tree below that node. No row has a branch, and a vector holds 64 rows. */
static void find_leaves(const int32_t *slots, const uint8_t *ranks, const uint8_t *bins,
                        uint8_t found[NODES][ROWS_AT_ONCE]) {
    int level = DEPTH - 1, first_of_level = NODES / 2;
    for (int node = NODES - 1; node >= 0; node--) {
        const uint8_t *x = bins + (int64_t)slots[node] * ROWS_AT_ONCE;
        uint8_t rank = ranks[node], *own = found[node];
        if (level == DEPTH - 1)
            for (int i = 0; i < ROWS_AT_ONCE; i++) own[i] = x[i] > rank;
        else {
            const uint8_t *left = found[2 * node + 1], *right = found[2 * node + 2];
            uint8_t leaves_of_left = (uint8_t)(LEAVES >> (level + 1));
            for (int i = 0; i < ROWS_AT_ONCE; i++)
                own[i] = (uint8_t)(x[i] > rank ? right[i] + leaves_of_left : left[i]);
        }
        if (node == first_of_level) {
            level--;
            first_of_level /= 2;
        }
    }
}

/* The leaf of one row in a tree, from the first node down. */
static inline int64_t leaf_of(const int32_t *slots, const uint8_t *ranks, const uint8_t *bins) {
    int64_t node = 0;
    for (int level = 0; level < DEPTH; level++)
        node = 2 * node + 1 + (bins[(int64_t)slots[node] * ROWS_AT_ONCE] > ranks[node]);
    return node - NODES;
}

static inline void add_leaf(const int16_t *leaf, int64_t decisions, int64_t *totals) {
    for (int64_t s = 0; s < decisions; s++) totals[s] += leaf[s];
}

void add_leaves(RankedTrees of, Matrix X, IntMatrix totals, uint8_t *bins) {
    int64_t decisions = totals.columns;
    uint8_t found[NODES][ROWS_AT_ONCE];
    for (int64_t i = 0; i < of.columns.n * ROWS_AT_ONCE; i++) bins[i] = 0;
    for (int64_t first = 0; first < X.rows; first += ROWS_AT_ONCE) {
        int64_t n = X.rows - first < ROWS_AT_ONCE ? X.rows - first : ROWS_AT_ONCE;
        write_bins(of, X, first, n, bins);
        for (int64_t t = 0; t < of.trees; t++) {
            const int32_t *slots = of.slots + t * NODES;
            const uint8_t *ranks = of.ranks + t * NODES;
            const int16_t *leaves = of.leaves + t * LEAVES * decisions;
            if (n > FEW_ROWS) find_leaves(slots, ranks, bins, found);
            for (int64_t i = 0; i < n; i++) {
                int64_t leaf = n > FEW_ROWS ? found[0][i] : leaf_of(slots, ranks, bins + i);
                add_leaf(leaves + leaf * decisions, decisions, totals.at + (first + i) * decisions);
            }
        }
    }
}

static void call_add_leaves(const Slot *a, Slot *r) {
    (void)r;
    add_leaves(ranked_trees_of(a), a[6].matrix, a[7].int_matrix, a[8].array.at);
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
    {"refit.committee.forest._add_leaves", RANKED_TREES " X: f64[m,*] totals: =i64[m,s] bins: =u8[u,64]",
     call_add_leaves, false},
    {"refit.committee.forest._log_odds", "totals: i64[m,s] terms: =f64[s] out: =f64[m,s]", call_log_odds, false},
    {0},
};
