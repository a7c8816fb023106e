/* Cells as inputs of the exchangeability tests. */
#include "stream/cells.h"

#include "compiled/kernel.h"

/* Write a number unchanged, a text as a number in [0, 1) from its hash, a boolean as 0 or 1, and nothing for a time or
gap. */
static inline void watch(double cell, double *seen) {
    if (fabs(cell) <= MAX_FEATURE_SIZE)
        *seen = cell;
    else if (cell < float_of(TIME_BITS))
        *seen = (double)(bits_of(cell) & HASH_MASK) * 0x1p-60;
    else if (cell == float_of(BOOLEAN_BITS | 1))
        *seen = 1.0;
    else if (cell == float_of(BOOLEAN_BITS))
        *seen = 0.0;
}

static void call_watch(const Slot *a, Slot *r) {
    (void)r;
    Matrix rows = a[0].matrix, found = a[1].matrix;
    int64_t width = rows.columns < found.columns ? rows.columns : found.columns;
    for (int64_t i = 0; i < rows.rows; i++)
        for (int64_t f = 0; f < width; f++) watch(rows.at[i * rows.columns + f], found.at + i * found.columns + f);
}

const Kernel stream_cells_kernels[] = {
    {"stream.cells._watch", "rows: f64[m,*] found: =f64[m,*]", call_watch, false},
    {0},
};
