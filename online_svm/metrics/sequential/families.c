/* Betting tests that the mean of a bounded quantity stays near zero; see `families.py`. */
#include "compiled/extremes.h"
#include "compiled/kernel.h"
#include <math.h>

enum { BETS = 4, FIRST_GROUP_BITS = 11, FIRST_GROUP = 1 << FIRST_GROUP_BITS };

/* Bet sizes, each divided by 1 + d_t, as in `families.py`. */
static const double SIZES[BETS] = {0.12, 0.3, 0.6, 0.95};

/* Stakes are capped here: the wealth remains a supermartingale and cannot overflow. */
#define MOST 1e200

/* `Bets` of Python. */
typedef struct {
    const double *tolerances, *limits;
    double *stakes; /* shape (n_processes, 2, BETS) */
    double *waiting;
    IntVector ages;
    double *wealth;
} Bets;

/* Return the share of the stake on bets that start with example t = 1, 2, ...

Half of the stake is spread evenly over the first group. Group g = 1, 2, ... after it gets 1 / ((g + 1) (g + 2)) and is
as long as all earlier groups together. */
static double share_of_start(int64_t t) {
    if (t < FIRST_GROUP) return 0.5 / (FIRST_GROUP - 1);
    uint64_t bits = 63 - (uint64_t)__builtin_clzll((uint64_t)t), group = bits - FIRST_GROUP_BITS + 1;
    return 1.0 / (double)((group + 1) * (group + 2) << bits);
}

/* Advance the stakes of one process by one value; return their sum.

`each` is the stake of a new bet of each direction and size that starts at this value; `share` in [0, 1] multiplies
the sizes. */
static double bet_on(double value, double tolerance, double share, double each, double *stakes) {
    double scale = share / (1.0 + tolerance);
    double above = scale * (value - tolerance), below = scale * (value + tolerance), sum = 0.0;
    for (int k = 0; k < BETS; k++) {
        stakes[k] = (stakes[k] + each) * (1.0 + SIZES[k] * above);
        stakes[BETS + k] = (stakes[BETS + k] + each) * (1.0 - SIZES[k] * below);
    }
    for (int k = 0; k < BETS; k++) sum += stakes[k] + stakes[BETS + k];
    if (sum > MOST)
        for (int k = 0; k < 2 * BETS; k++) stakes[k] = lesser(stakes[k], MOST);
    return sum;
}

/* Advance process j by a value; return whether it reached its limit. `size` multiplies the sizes of the bets. */
static bool advance(const Bets *bets, int64_t j, double value, double factor, double size) {
    if (++bets->ages.at[j] <= 0) return false; /* the process rests */
    double share = share_of_start(bets->ages.at[j]);
    bets->waiting[j] -= share;
    if (isnan(value)) value = 0.0;
    double spread = fabs(value) * (1.0 - fabs(value)); /* equals p (1 - p) for y = 0 and y = 1 */
    double tolerance = greater(bets->tolerances[j], sqrt(factor * spread));
    double each = share / (2 * BETS);
    bets->wealth[j] =
        greater(bets->waiting[j], 0.0) + bet_on(value, tolerance, size, each, bets->stakes + (int64_t)2 * BETS * j);
    return bets->wealth[j] >= bets->limits[j];
}

static void call_bet_until(const Slot *a, Slot *r) {
    Matrix values = a[0].matrix;
    const double *variance_factors = a[2].vector.at, *sizes = a[3].vector.at;
    Bets bets = {a[4].vector.at, a[5].vector.at, a[6].cube.at, a[7].vector.at, a[8].int_vector, a[9].vector.at};
    int64_t i = a[1].integer;
    bool is_reached = false;
    for (; i < values.rows && !is_reached; i++) {
        const double *row = values.at + i * values.columns;
        for (int64_t j = 0; j < values.columns; j++)
            is_reached |= advance(&bets, j, row[j], variance_factors[i], sizes[i]);
    }
    r[0].integer = i;
    r[1].integer = is_reached;
}

const Kernel metrics_sequential_families_kernels[] = {
    {"metrics.sequential.families.bet_until",
     "values: f64[m,n] begin: int<=m variance_factors: f64[m] sizes: f64[m]"
     " bets: (tolerances: f64[n] limits: f64[n] stakes: =f64[n,2,4] waiting: =f64[n] ages: =i64[n] wealth: =f64[n])"
     " -> int bool",
     call_bet_until, true},
    {0},
};
