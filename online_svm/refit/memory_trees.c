/* The probabilities of the memory's trees. */
#include "compiled/elementary.h"
#include "refit/committee/forest.h"

enum { N_CODES = 256 };

/* `MemoryTrees` of Python. */
typedef struct {
    RankedTrees trees;
    IntVector sources;    /* column of each feature of the trees */
    const int16_t *ranks; /* shape (features, N_CODES) */
    const uint8_t *are_ranks;
} Trees;

/* Write the features that the trees read: numbers, and the ranks of codes. */
static void write_features(Trees of, Matrix X, double *features) {
    for (int64_t i = 0; i < X.rows; i++)
        for (int64_t f = 0; f < of.sources.n; f++, features++) {
            double value = X.at[i * X.columns + of.sources.at[f]];
            *features = of.are_ranks[f] ? (double)of.ranks[f * N_CODES + (int64_t)value] : value;
        }
}

/* Write the probabilities of the classes of the trees for the sums of the leaves of a row. */
static void write_probabilities(const int64_t *totals, int64_t decisions, double *p) {
    if (decisions == 1) {
        p[1] = logistic((double)totals[0] * LEAF_UNIT);
        p[0] = 1.0 - p[1];
        return;
    }
    int64_t highest = totals[0];
    double sum = 0.0;
    for (int64_t k = 1; k < decisions; k++) highest = totals[k] > highest ? totals[k] : highest;
    for (int64_t k = 0; k < decisions; k++) {
        p[k] = exp_of((double)(totals[k] - highest) * LEAF_UNIT);
        sum += p[k];
    }
    for (int64_t k = 0; k < decisions; k++) p[k] /= sum;
}

/* Write the probabilities of all classes: a class that the trees did not learn keeps its own, and they share the rest.
Classes of one column add up. */
static void spread(const double *p, IntVector columns, const double *otherwise, int64_t n_classes, double *said) {
    double left = 1.0;
    for (int64_t y = 0; y < n_classes; y++) said[y] = otherwise[y];
    for (int64_t k = 0; k < columns.n; k++) said[columns.at[k]] = 0.0;
    for (int64_t y = 0; y < n_classes; y++) {
        bool is_learned = false;
        for (int64_t k = 0; k < columns.n; k++) is_learned |= columns.at[k] == y;
        if (!is_learned) left -= otherwise[y];
    }
    for (int64_t k = 0; k < columns.n; k++) said[columns.at[k]] += p[k] * left;
}

static void call_write(const Slot *a, Slot *r) {
    (void)r;
    Trees of = {ranked_trees_of(a), a[6].int_vector, a[7].array.at, a[8].array.at};
    Matrix X = a[9].matrix, otherwise = a[11].matrix, said = a[12].matrix, features = a[13].matrix;
    IntMatrix totals = a[14].int_matrix;
    IntVector columns = a[10].int_vector;
    double *p = a[15].vector.at;
    write_features(of, X, features.at);
    for (int64_t i = 0; i < totals.rows * totals.columns; i++) totals.at[i] = 0;
    add_leaves(of.trees, features, totals, a[16].array.at);
    for (int64_t i = 0; i < X.rows; i++) {
        write_probabilities(totals.at + i * totals.columns, totals.columns, p);
        spread(p, columns, otherwise.at + i * said.columns, said.columns, said.at + i * said.columns);
    }
}

const Kernel refit_memory_trees_kernels[] = {
    {"refit.memory_trees._write",
     "trees: (" RANKED_TREES " sources: i64[f] ranks: i16[f,256] are_ranks: u8[f]) X: f64[m,*] columns: i64[k]"
     " otherwise: f64[m,c] said: =f64[m,c]"
     " scratch: (features: =f64[m,f] totals: =i64[m,s] p: =f64[k] bins: =u8[u,64])",
     call_write, false},
    {0},
};
