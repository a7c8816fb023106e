/* Bins of numbers, by the edges between them. */
#ifndef ONLINE_SVM_FREQUENCY_INTERVAL_H
#define ONLINE_SVM_FREQUENCY_INTERVAL_H

#include <stdint.h>

/* Return the number of the n ascending edges below a value. */
static inline int64_t bin_of(const double *edges, int64_t n, double value) {
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (edges[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
