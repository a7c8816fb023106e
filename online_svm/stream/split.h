/* The finalizer of SplitMix64 (Steele et al. 2014). */
#ifndef ONLINE_SVM_SPLIT_H
#define ONLINE_SVM_SPLIT_H

#include <stdint.h>

#define GOLDEN_GAMMA UINT64_C(0x9E3779B97F4A7C15)

/* A hash of z: each of its 64 bits depends on all bits of z. */
static inline uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* The upper 53 bits as a number in [0, 1). */
static inline double uniform_of(uint64_t bits) { return (double)(bits >> 11) * 0x1p-53; }

#endif
