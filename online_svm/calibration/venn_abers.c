#include "compiled/kernel.h"

/* For each distinct score, find the edge of the minorant that crosses an example added there.

Adding a positive example at distinct score i shifts points 0..i-1 of the diagram by (-1, -1) against the others. The
isotonic value there is the slope of the edge from a shifted point (the corner) to a later point (the tip). The value
never decreases with i: a newly shifted point on or above the edge changes nothing; a point below the edge becomes the
corner, and the tip moves up the hull. Both indices only increase, so the pass is linear. */
static void find_bridges(const int64_t *x, const int64_t *y, const int64_t *links, IntVector rise, IntVector run) {
    int64_t corner = 0, tip = 0, dx = 1, dy = 1;
    for (int64_t i = 0; i < rise.n; i++) {
        /* 1. Height of point i over the edge, of slope dy / dx from the corner. Points from i on are not shifted. */
        int64_t gap = (y[i] - y[corner]) * dx - (x[i] - x[corner]) * dy;
        /* 2. Point i lies below the edge: it becomes the corner. */
        if (i == 0 || gap < 0) {
            corner = i;
            tip = tip > i ? tip : i + 1;
            /* 3. The tip moves up the hull while the slope to the next corner is not larger. */
            while (links[tip] != tip) {
                int64_t after = links[tip];
                int64_t flatter = (y[after] - y[i] + 1) * (x[tip] - x[i] + 1);
                if (flatter > (y[tip] - y[i] + 1) * (x[after] - x[i] + 1)) break;
                tip = after;
            }
            dx = x[tip] - x[i] + 1;
            dy = y[tip] - y[i] + 1;
        }
        /* 4. The isotonic value is the slope of the edge. */
        rise.at[i] = dy;
        run.at[i] = dx;
    }
}

static void call_bridges(const Slot *a, Slot *r) {
    (void)r;
    find_bridges(a[0].int_vector.at, a[1].int_vector.at, a[2].int_vector.at, a[3].int_vector, a[4].int_vector);
}

const Kernel calibration_venn_abers_kernels[] = {
    {"calibration.venn_abers._bridges", "x: i64[k+1] y: i64[k+1] links: i64[k+1] rise: =i64[k] run: =i64[k]",
     call_bridges, false},
    {0},
};
