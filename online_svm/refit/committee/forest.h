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

/* Add the leaves of each row of X to its totals, one a decision; `features` and `cuts` have shape (trees, NODES). */
void add_leaves(const int32_t *features, const double *cuts, const int16_t *leaves, int64_t trees, Matrix X,
                IntMatrix totals);

#endif
