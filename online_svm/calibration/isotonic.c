#include "compiled/extremes.h"
#include "compiled/kernel.h"

/* The blocks of `IsotonicMap`: lowest and highest score, ascending, and frequency of positives. */
typedef struct {
    const double *lower, *upper, *values;
    int64_t n;
} Blocks;

/* Return the number of values <= score. */
static int64_t count_up_to(const double *ascending, int64_t n, double score) {
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (ascending[middle] <= score)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Return the value at a score: constant within a block, linear in the gap after it. */
static double interpolated(Blocks blocks, double score) {
    int64_t up_to = count_up_to(blocks.lower, blocks.n, score);
    int64_t block = up_to > 0 ? up_to - 1 : 0;
    int64_t after = lesser_int(block + 1, blocks.n - 1);
    /* Dividing by four is exact and keeps the differences of huge scores finite. */
    double into = greater(0.25 * score - 0.25 * blocks.upper[block], 0.0);
    double width = 0.25 * blocks.lower[after] - 0.25 * blocks.upper[block];
    double share = width > 0.0 ? lesser(into / width, 1.0) : 0.0;
    /* Rounding can lift the end of a gap one ulp above the next block. */
    double value = blocks.values[block] + share * (blocks.values[after] - blocks.values[block]);
    return lesser(value, blocks.values[after]);
}

static void call_interpolate(const Slot *a, Slot *r) {
    (void)r;
    Blocks blocks = {a[0].vector.at, a[1].vector.at, a[2].vector.at, a[0].vector.n};
    for (int64_t i = 0; i < a[3].vector.n; i++) a[4].vector.at[i] = interpolated(blocks, a[3].vector.at[i]);
}

const Kernel calibration_isotonic_kernels[] = {
    {"calibration.isotonic._interpolate",
     "lower: f64[b+1] upper: f64[b+1] values: f64[b+1] scores: f64[m] found: =f64[m]", call_interpolate, false},
    {0},
};
