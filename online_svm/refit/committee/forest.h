/* The shape of a forest; see `forest.py`. */
#ifndef ONLINE_SVM_FOREST_H
#define ONLINE_SVM_FOREST_H

#include "compiled/kernel.h"

enum { DEPTH = 6, NODES = 63, LEAVES = 64, NO_CUT = 255, MAX_LEAF = 32767 };

#define LEAF_UNIT 0x1p-11 /* unit of leaf steps */

/* Trees: feature and bin of each node, shape (trees, NODES); steps of each leaf, shape (trees, LEAVES, decisions). */
typedef struct {
    int32_t *features;
    uint8_t *bins;
    int16_t *leaves;
    int64_t trees, decisions;
} Forest;

enum { ROWS_AT_ONCE = 64 };

/* `RankedCuts` of Python, and the leaves of its trees. */
typedef struct {
    IntVector columns;     /* of X that some node tests, ascending */
    const int64_t *starts; /* (columns + 1): of the cuts of each column in `values` */
    const double *values;
    const int32_t *slots;  /* (trees, NODES): the place in `columns` of a node's feature */
    const uint8_t *ranks;  /* (trees, NODES): the place of a node's cut among those of its column */
    const int16_t *leaves; /* (trees, LEAVES, decisions) */
    int64_t trees;
} RankedTrees;

/* The trees whose cuts are in five slots, and whose leaves are in the next one. */
RankedTrees ranked_trees_of(const Slot *a);

#define RANKED_TREES                                                                                                   \
    "nodes: (columns: i64[u] starts: i64[u+1] values: f64[*] slots: i32[t,63] ranks: u8[t,63])"                        \
    " leaves: i16[t,64,s]"

/* Add the leaves of each row of X to its totals, one a decision; `bins`, shape (columns, ROWS_AT_ONCE), is scratch. */
void add_leaves(RankedTrees of, Matrix X, IntMatrix totals, uint8_t *bins);

#endif
