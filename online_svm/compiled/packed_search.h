/* The place of a maximum in one pass: a value and its place are packed into one integer key.

Keys are ordered like the values, of which they keep eleven mantissa bits (of 32) or 40 (of 64); of equal values the
one at the lowest place has the largest key. The maximum of integers does not depend on the order of evaluation, so it
can be taken in vector lanes.

The functions work on one type of numbers. A body file is included once for float32 and once for float64, and includes
this file after defining three names: VALUE (`float`, `double`), KEY (`int32_t`, `int64_t`, of the same width) and
TYPED(name), which makes the names differ (`name##_f32`, `name##_f64`). So only the constants have a guard. */
#include <stdint.h>
#include <string.h>

#ifndef ONLINE_SVM_PACKED_SEARCH_H
#define ONLINE_SVM_PACKED_SEARCH_H

enum { PLACES = 4096 }; /* the number of places that a key distinguishes */

/* Bytes of a vector register. By default compilers use vectors of half this width; wider ones they split badly. */
#if defined(__AVX512F__)
enum { VECTOR = 64 };
#elif defined(__AVX2__)
enum { VECTOR = 32 };
#else
enum { VECTOR = 16 };
#endif

#endif

/* Vectors of numbers and of their keys. */
enum { TYPED(LANE) = VECTOR / sizeof(VALUE) };
typedef VALUE TYPED(Values) __attribute__((vector_size(VECTOR)));
typedef KEY TYPED(Keys) __attribute__((vector_size(VECTOR)));

static inline TYPED(Values) TYPED(load)(const VALUE *from) {
    TYPED(Values) values;
    memcpy(&values, from, sizeof values);
    return values;
}

static inline void TYPED(store)(VALUE *to, TYPED(Values) values) { memcpy(to, &values, sizeof values); }

/* The bits of a number; for non-negative numbers the bits have the same order. */
static inline KEY TYPED(pattern)(VALUE x) {
    KEY bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The smallest key. */
static inline KEY TYPED(lowest_key)(void) { return (KEY)((uint64_t)1 << (8 * sizeof(KEY) - 1)); }

/* The low bits of the keys of places 0, 1, 2, ...: a lower place is larger. */
static inline TYPED(Keys) TYPED(first_places)(void) {
    TYPED(Keys) places;
    for (KEY k = 0; k < TYPED(LANE); k++) places[k] = PLACES - 1 - k;
    return places;
}

/* Keys that grow with x. */
static inline TYPED(Keys) TYPED(rising)(TYPED(Values) x, TYPED(Keys) places) {
    const KEY magnitude = (KEY)(((uint64_t)1 << (8 * sizeof(KEY) - 1)) - 1);
    TYPED(Keys) bits = (TYPED(Keys))x;
    bits ^= (bits >> (8 * sizeof(KEY) - 1)) & magnitude;
    return (bits & -(KEY)PLACES) | places;
}

/* Keys that grow with v^2 / c, where v >= 0 and c > 0.

The bits of a positive number, as an integer, approximate a linear function of its logarithm to a tenth. The key is
log v - 1/2 log c in this form. */
static inline TYPED(Keys) TYPED(gaining)(TYPED(Values) violation, TYPED(Values) curvature, TYPED(Keys) places) {
    TYPED(Keys) key = (TYPED(Keys))violation - ((TYPED(Keys))curvature >> 1);
    return (key & -(KEY)PLACES) | places;
}

/* max(top - slack, 0) */
static inline TYPED(Values) TYPED(violation_of)(VALUE top, TYPED(Values) slack) {
    TYPED(Values) difference = top - slack;
    return (TYPED(Values))((TYPED(Keys))difference & (TYPED(Keys))(difference > 0));
}

/* max(k_ii + k_jj - 2 k_ij, lowest) */
static inline TYPED(Values) TYPED(curvature_of)(TYPED(Values) value, VALUE own, TYPED(Values) other, VALUE lowest) {
    TYPED(Values) curvature = (own + other) - (value + value), flat = (TYPED(Values)){0} + lowest;
    TYPED(Keys) is_above = (TYPED(Keys))(curvature > flat);
    return (TYPED(Values))(((TYPED(Keys))curvature & is_above) | ((TYPED(Keys))flat & ~is_above));
}

/* The slacks after a step along (i, j), where `change` is k_jk - k_ik. */
static inline TYPED(Values) TYPED(moved)(VALUE step, TYPED(Values) change, TYPED(Values) slack) {
    for (int k = 0; k < TYPED(LANE); k++)
        slack[k] = _Generic(step, float: __builtin_fmaf, double: __builtin_fma)(step, change[k], slack[k]);
    return slack;
}

/* The larger of two keys, in each lane. */
static inline TYPED(Keys) TYPED(larger)(TYPED(Keys) a, TYPED(Keys) b) {
    for (int k = 0; k < TYPED(LANE); k++) a[k] = a[k] > b[k] ? a[k] : b[k];
    return a;
}

/* The largest key of all lanes. */
static inline KEY TYPED(largest)(TYPED(Keys) keys) {
    KEY each[TYPED(LANE)];
    memcpy(each, &keys, sizeof each);
    for (int half = TYPED(LANE) / 2; half > 0; half /= 2)
        for (int k = 0; k < half; k++) each[k] = each[k] > each[k + half] ? each[k] : each[k + half];
    return each[0];
}

/* The place in a key. */
static inline KEY TYPED(place_of)(KEY key) { return (PLACES - 1) - (key & (PLACES - 1)); }
