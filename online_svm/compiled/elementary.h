/* Exponentials, logarithms, the logistic function and its inverse, by IEEE operations alone: the same bits on any
machine. No function has a loop or a table, so compilers can vectorise. */
#ifndef ONLINE_SVM_ELEMENTARY_H
#define ONLINE_SVM_ELEMENTARY_H

#include <stdbool.h>

#include "compiled/extremes.h"
#include "compiled/floats.h"

#define LOG2_E 1.4426950408889634
#define LN2_HIGH 0x1.62e42fee00000p-1 /* 32 bits: exact when multiplied by an exponent */
#define LN2_LOW 0x1.a39ef35793c76p-33
#define ROUNDER 6755399441055744.0         /* 1.5 * 2^52: adding it rounds to an integer, kept in the low bits */
#define LAST_EXP_TERM (1.0 / 6227020800.0) /* 1 / 13!, the last coefficient of exp's Taylor polynomial */
#define EXP_UNDERFLOW (-708.0)             /* exp(-708) = 3.3e-308 is just above the subnormal numbers */
#define EXP_ZERO_BELOW (-746.0)
#define EXP_INFINITE_ABOVE 710.0
#define MIN_NORMAL 0x1p-1022
#define SQRT_HALF_BITS UINT64_C(0x3FE6A09E667F3BCD) /* the bits of sqrt(1/2) */
#define LOG1P_NEAR 0.29 /* for a smaller |x|, 1 + x lies between sqrt(1/2) and sqrt(2), and log1p uses x directly */

/* (exp(r) - 1 - r - r^2/2) / r^3: the Taylor polynomial, by Horner's rule. */
static inline double exp_tail(double r, double last) {
    double p = multiply_add(r, last, 1.0 / 479001600.0);
    p = multiply_add(r, p, 1.0 / 39916800.0);
    p = multiply_add(r, p, 1.0 / 3628800.0);
    p = multiply_add(r, p, 1.0 / 362880.0);
    p = multiply_add(r, p, 1.0 / 40320.0);
    p = multiply_add(r, p, 1.0 / 5040.0);
    p = multiply_add(r, p, 1.0 / 720.0);
    p = multiply_add(r, p, 1.0 / 120.0);
    p = multiply_add(r, p, 1.0 / 24.0);
    return multiply_add(r, p, 1.0 / 6.0);
}

/* 2^n. Only the low 12 bits of n count, so it may be the bits of n + ROUNDER. */
static inline double power_of_two(int64_t n) {
    return float_of((int64_t)(((uint64_t)n << 52) + (UINT64_C(1023) << 52)));
}

/* exp(x) for x <= 0 without a branch; 0 below EXP_UNDERFLOW. */
static inline double exp_nonpositive(double x) {
    /* 1. Reduce: x = n ln 2 + r (Cody and Waite). */
    double shifted = multiply_add(x, LOG2_E, ROUNDER);
    double n = shifted - ROUNDER;
    double r = multiply_add(-n, LN2_LOW, multiply_add(-n, LN2_HIGH, x));
    /* 2. exp(r), and 2^n by its bits. */
    double p = multiply_add(r, multiply_add(r, multiply_add(r, exp_tail(r, LAST_EXP_TERM), 0.5), 1.0), 1.0);
    return x >= EXP_UNDERFLOW ? p * power_of_two(bits_of(shifted)) : 0.0;
}

/* floor(n / 2), given n + ROUNDER: n is the signed integer in its low 32 bits. */
static inline int64_t half_of(double shifted) { return (int64_t)((uint64_t)bits_of(shifted) << 32) >> 32 >> 1; }

/* value * 2^n, given n + ROUNDER. Two steps: 2^n may overflow although the product does not. Only the last rounds. */
static inline double scaled(double value, double shifted) {
    int64_t half = half_of(shifted);
    int64_t rest = (int64_t)((uint64_t)bits_of(shifted) - (uint64_t)half);
    return value * power_of_two(half) * power_of_two(rest);
}

/* exp(x). */
static inline double exp_of(double x) {
    double bounded = bounded_by(x, EXP_ZERO_BELOW, EXP_INFINITE_ABOVE);
    double shifted = multiply_add(bounded, LOG2_E, ROUNDER);
    double n = shifted - ROUNDER;
    double r = multiply_add(-n, LN2_LOW, multiply_add(-n, LN2_HIGH, bounded));
    double p = multiply_add(r, multiply_add(r, multiply_add(r, exp_tail(r, LAST_EXP_TERM), 0.5), 1.0), 1.0);
    return x == x ? scaled(p, shifted) : x; /* NaN */
}

/* exp(x) - 1, within one unit in the last place, without cancellation near 0. */
static inline double expm1_of(double x) {
    double bounded = bounded_by(x, -40.0, EXP_INFINITE_ABOVE);
    double shifted = multiply_add(bounded, LOG2_E, ROUNDER);
    double n = shifted - ROUNDER;
    /* 1. r, and its rounding error. */
    double whole = multiply_add(-n, LN2_HIGH, bounded);
    double r = multiply_add(-n, LN2_LOW, whole);
    double lost = multiply_add(-n, LN2_LOW, whole - r);
    /* 2. (1 - 2^-n) + r, exactly `total + rest`; 2^-n is negligible from n = 64 on. */
    double power = n < 64.0 ? power_of_two((int64_t)-(uint64_t)bits_of(shifted)) : 0.0;
    double head = 1.0 - power;
    double total = head + r;
    double rest = n != 0.0 ? ((1.0 - head) - power) + (r - (total - head)) : 0.0;
    /* 3. The higher terms of the series, and 2^n. */
    double cubes = r * r * r * exp_tail(r, multiply_add(r, LAST_EXP_TERM / 14.0, LAST_EXP_TERM));
    double value = total + (rest + multiply_add(0.5 * r, r, lost + cubes));
    value = scaled(value, shifted);
    return x == x && x != 0.0 ? value : x; /* NaN; and -0 is -0 */
}

/* k ln 2 + log(1 + f) + rest, where sqrt(1/2) <= 1 + f < sqrt(2) and rest is tiny.

With s = f / (2 + f) and R = 2 s^2/3 + 2 s^4/5 + ..., log(1 + f) = 2 artanh(s) = f - (f^2/2 - s (f^2/2 + R)). The
leading term f is exact; the terms that are rounded are much smaller. */
static inline double log_sum(double k, double f, double rest) {
    double s = f / (2.0 + f);
    double z = s * s;
    double w = z * z;
    /* Odd and even powers of z separately; the first omitted term is below 7e-19 f. */
    double even = multiply_add(w, 2.0 / 19.0, 2.0 / 15.0);
    even = multiply_add(w, multiply_add(w, multiply_add(w, even, 2.0 / 11.0), 2.0 / 7.0), 2.0 / 3.0);
    double odd = multiply_add(w, 2.0 / 21.0, 2.0 / 17.0);
    odd = multiply_add(w, multiply_add(w, multiply_add(w, odd, 2.0 / 13.0), 2.0 / 9.0), 2.0 / 5.0);
    double series = z * multiply_add(z, odd, even);
    double square = 0.5 * f * f;
    /* k LN2_HIGH + f, exactly `total + lost`: the product is 0 or larger than f. */
    double high = k * LN2_HIGH;
    double total = high + f;
    double lost = f - (total - high);
    return total + (lost + (multiply_add(k, LN2_LOW, rest) - (square - s * (square + series))));
}

/* log(x) if x is not a positive finite number. */
static inline double log_beyond(double x) {
    if (x == 0.0) return -INFINITY;
    return x > 0.0 ? x : NAN;
}

/* The k for which the number with these bits lies between 2^k sqrt(1/2) and 2^k sqrt(2). */
static inline int64_t exponent_of(int64_t bits) { return (int64_t)((uint64_t)bits - SQRT_HALF_BITS) >> 52; }

/* The natural logarithm; NaN for a negative x, minus infinity for 0. */
static inline double log_of(double x) {
    bool is_tiny = x < MIN_NORMAL;
    int64_t bits = bits_of(is_tiny ? x * 0x1p54 : x);
    int64_t k = exponent_of(bits);
    double f = float_of((int64_t)((uint64_t)bits - ((uint64_t)k << 52))) - 1.0;
    double value = log_sum((double)(is_tiny ? k - 54 : k), f, 0.0);
    return 0.0 < x && x < INFINITY ? value : log_beyond(x);
}

/* log(1 + x), within one unit in the last place, without cancellation near 0. */
static inline double log1p_of(double x) {
    /* 1. 1 + x, and its rounding error. */
    double u = 1.0 + x;
    double part = u - 1.0;
    double lost = (1.0 - (u - part)) + (x - part);
    /* 2. log(u + lost) = log(u) + lost / u. */
    int64_t bits = bits_of(u);
    int64_t k = exponent_of(bits);
    bool is_near = fabs(x) < LOG1P_NEAR;
    double f = is_near ? x : float_of((int64_t)((uint64_t)bits - ((uint64_t)k << 52))) - 1.0;
    double value = log_sum((double)k, f, is_near ? 0.0 : lost / u);
    value = x == 0.0 ? x : value; /* -0 is -0 */
    return 0.0 < u && u < INFINITY ? value : log_beyond(u);
}

/* 1 / (1 + exp(-value)), without overflow. */
static inline double logistic(double value) {
    double e = exp_nonpositive(-fabs(value));
    return (value >= 0.0 ? 1.0 : e) / (1.0 + e);
}

/* log(p / (1 - p)): infinite at 0 and 1. */
static inline double logit(double p) {
    double odds = p / (1.0 - p);
    return 0.5 < odds && odds < 2.0 ? log1p_of((2.0 * p - 1.0) / (1.0 - p)) : log_of(odds);
}

#endif
