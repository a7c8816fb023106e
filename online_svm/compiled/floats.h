/* The fused multiply-add, and conversions between a double and its bits. */
#ifndef ONLINE_SVM_FLOATS_H
#define ONLINE_SVM_FLOATS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* a b + c, rounded once: an instruction if the build level has one, else a function of the C library. */
static inline double multiply_add(double a, double b, double c) { return __builtin_fma(a, b, c); }

/* The 64 bits of a double as an integer. */
static inline int64_t bits_of(double x) {
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The double that has these 64 bits. */
static inline double float_of(int64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
