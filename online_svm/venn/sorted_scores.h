/* Places in ascending scores. */
#ifndef ONLINE_SVM_SORTED_SCORES_H
#define ONLINE_SVM_SORTED_SCORES_H

#include <stdint.h>

/* Return how many of the first `size` ascending scores are below `score`. */
static inline int64_t place(const double *scores, int64_t size, double score) {
    int64_t low = 0, high = size;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (scores[middle] < score)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
