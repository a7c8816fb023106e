/* Binary search. */
#ifndef ONLINE_SVM_SEARCH_H
#define ONLINE_SVM_SEARCH_H

#include <stdint.h>

/* Return how many of n ascending numbers are below a value. */
static inline int64_t lower_bound(const double *ascending, int64_t n, double value) {
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (ascending[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
