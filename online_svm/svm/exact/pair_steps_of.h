/* The body of `pair_steps.c` for kernel values of type VALUE; see `packed_search.h`. */
#include "compiled/packed_search.h"

/* Return the place with the largest slack among the variables that can grow. */
static KEY TYPED(highest)(const VALUE *up, KEY n) {
    TYPED(Keys) places = TYPED(first_places)(), best = (TYPED(Keys)){0} + TYPED(lowest_key)();
    for (KEY first = 0; first < n; first += TYPED(LANE), places -= TYPED(LANE))
        best = TYPED(larger)(best, TYPED(rising)(TYPED(load)(up + first), places));
    return TYPED(place_of)(TYPED(largest)(best));
}

/* Return the place of the partner with the largest gain for i, whose kernel row is given; -1 if no pair violates
optimality by `tol`. */
static KEY TYPED(partner)(const VALUE *down, const VALUE *row, const VALUE *diagonal, KEY n, VALUE own, VALUE top,
                          VALUE tol) {
    TYPED(Keys) places = TYPED(first_places)(), best = (TYPED(Keys)){0} + TYPED(lowest_key)(), worst = best;
    for (KEY first = 0; first < n; first += TYPED(LANE), places -= TYPED(LANE)) {
        TYPED(Values) violation = TYPED(violation_of)(top, TYPED(load)(down + first));
        TYPED(Values)
        curvature = TYPED(curvature_of)(TYPED(load)(row + first), own, TYPED(load)(diagonal + first), (VALUE)FLAT);
        best = TYPED(larger)(best, TYPED(gaining)(violation, curvature, places));
        worst = TYPED(larger)(worst, (TYPED(Keys))violation);
    }
    return TYPED(largest)(worst) >= TYPED(pattern)(tol) ? TYPED(place_of)(TYPED(largest)(best)) : -1;
}

/* Update the slacks after a step along (i, j), and return the place of the largest that can grow. */
static KEY TYPED(move)(VALUE *up, VALUE *down, const VALUE *row_i, const VALUE *row_j, KEY n, VALUE step) {
    TYPED(Keys) places = TYPED(first_places)(), best = (TYPED(Keys)){0} + TYPED(lowest_key)();
    for (KEY first = 0; first < n; first += TYPED(LANE), places -= TYPED(LANE)) {
        TYPED(Values) change = TYPED(load)(row_j + first) - TYPED(load)(row_i + first);
        TYPED(Values) slack = TYPED(moved)(step, change, TYPED(load)(up + first));
        TYPED(store)(up + first, slack);
        TYPED(store)(down + first, TYPED(moved)(step, change, TYPED(load)(down + first)));
        best = TYPED(larger)(best, TYPED(rising)(slack, places));
    }
    return TYPED(place_of)(TYPED(largest)(best));
}

/* Change one coefficient, and record the directions in which it can still move. */
static void TYPED(change)(const Part *part, KEY a, double step, VALUE slack) {
    double beta = snapped(part->beta[a] + step, part->lower[a], part->upper[a]);
    part->beta[a] = beta;
    ((VALUE *)part->up)[a] = beta < part->upper[a] ? slack : (VALUE)-INFINITY;
    ((VALUE *)part->down)[a] = beta > part->lower[a] ? slack : (VALUE)INFINITY;
}

static int64_t TYPED(settle)(const Array *K, const Part *part, double tol, int64_t max_steps) {
    const VALUE *diagonal = part->diagonal;
    const double *beta = part->beta;
    VALUE *up = part->up, *down = part->down;
    KEY n = (KEY)padded(part->n);
    /* 1. i: the largest slack among the variables that can grow. */
    KEY i = TYPED(highest)(up, n);
    int64_t steps = 0;
    for (; up[i] > (VALUE)-INFINITY && steps < max_steps; steps++) {
        /* 2. j: the partner of the largest second-order gain; stop if no pair violates optimality. */
        const VALUE *row_i = (const VALUE *)K->at + i * K->shape[1];
        KEY j = TYPED(partner)(down, row_i, diagonal, n, diagonal[i], up[i], (VALUE)tol);
        if (j < 0 || j >= part->n) break;
        /* 3. The unconstrained maximum along the pair, clipped to the bounds. */
        VALUE slack = up[i], other = down[j];
        double curvature = (double)diagonal[i] + (double)diagonal[j] - 2.0 * (double)row_i[j];
        double step = ((double)slack - (double)other) / (FLAT > curvature ? FLAT : curvature);
        double grows = part->upper[i] - beta[i], shrinks = beta[j] - part->lower[j];
        step = grows < step ? grows : step;
        step = shrinks < step ? shrinks : step;
        /* 4. The two coefficients. */
        TYPED(change)(part, i, step, slack);
        TYPED(change)(part, j, -step, other);
        /* 5. All slacks, and the next i. */
        const VALUE *row_j = (const VALUE *)K->at + j * K->shape[1];
        i = TYPED(move)(up, down, row_i, row_j, n, (VALUE)step);
    }
    return steps;
}
