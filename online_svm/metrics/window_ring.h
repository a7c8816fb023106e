/* Indices of the values that a ring keeps for each example, and of its weighted sums. */
#ifndef ONLINE_SVM_WINDOW_RING_H
#define ONLINE_SVM_WINDOW_RING_H

enum { RING_LOWER, RING_PROBABILITY, RING_UPPER, RING_LOG_LOSS, RING_VALUES };
enum { RING_HIT = RING_VALUES, RING_BRIER, RING_WEIGHT };

#endif
