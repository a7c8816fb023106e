/* Boosted trees with random cuts and integer sums; see `boosting.py`. */
#include "compiled/elementary.h"
#include "compiled/kernel.h"
#include "refit/committee/forest.h"
#include "stream/split.h"

#define SHRINKAGE 0.15
#define RIDGE 1.0                        /* penalty on the step of a leaf, added to its curvature */
#define MIN_CURVATURE 1.0                /* on either side of a cut */
enum { TRIALS = 8, TRIALS_AT_ONCE = 4 }; /* random cuts that a node tries */

/* `Sample` of Python: the bins of each row, shape (features, n), its class and its weight. */
typedef struct {
    const uint8_t *bins;
    const int64_t *codes;
    const double *weights;
    int64_t features, n;
} Sample;

/* A gradient and a curvature, both integers, in one integer: gradient * 2^32 + curvature. */
typedef int64_t Pair;

/* A growing tree; the rows of a node or leaf are order[starts] to order[stops - 1]. */
typedef struct {
    int32_t *order, *scratch; /* (n) */
    Pair *pairs;              /* (n): gradient and curvature of each row */
    int64_t starts[NODES + LEAVES], stops[NODES + LEAVES];
    Pair totals[NODES + LEAVES];
    double unit; /* 2^s: gradients and curvatures are multiples of 2^-s */
    uint64_t key;
} Growth;

typedef struct {
    int64_t feature, bin; /* rows with a larger bin go right */
    Pair left;            /* sum over the other rows */
} Cut;

/* The largest 2^s for which a sum of n gradients of size 2 fits in 32 bits. */
static double unit_of(int64_t n) {
    double unit = 1.0;
    while (unit * (double)n < 0x1p29) unit *= 2.0;
    return unit;
}

/* The nearest integer: adding ROUNDER leaves it in the low bits. */
static inline uint64_t rounded(double value) { return (uint64_t)bits_of(value + ROUNDER) - (uint64_t)bits_of(ROUNDER); }

static inline Pair packed(double gradient, double curvature) {
    return (Pair)((rounded(gradient) << 32) + rounded(curvature));
}

static inline double gradient_of(Pair total) { return (double)((total - (total & INT64_C(0xFFFFFFFF))) >> 32); }
static inline double curvature_of(Pair total) { return (double)(total & INT64_C(0xFFFFFFFF)); }

static inline double newton_step(Pair total, double unit) {
    return -SHRINKAGE * gradient_of(total) / (curvature_of(total) + RIDGE * unit);
}

static inline double gain_of(Pair total, double unit) {
    double g = gradient_of(total);
    return g * g / (curvature_of(total) + RIDGE * unit);
}

/* A step of the log-odds in units of LEAF_UNIT, clipped. */
static inline int64_t in_leaf_units(double value) {
    double nearest = floor(value / LEAF_UNIT + 0.5);
    const double limit = MAX_LEAF;
    return nearest > limit ? MAX_LEAF : nearest >= -limit ? (int64_t)nearest : -MAX_LEAF; /* the last for NaN */
}

static uint64_t key_of(int64_t seed, int64_t number) {
    return mix(mix((uint64_t)seed + GOLDEN_GAMMA) + (uint64_t)number);
}

/* The random number of (key, tree, node, trial). */
static inline uint64_t random_bits(uint64_t key, int64_t tree, int64_t node, int64_t trial) {
    uint64_t counter = ((uint64_t)(tree * (NODES + 1) + node) << 32) + (uint64_t)trial;
    return mix(key + GOLDEN_GAMMA * counter);
}

/* Write the sum over the left rows of each of four cuts, in one branch-free pass. */
static void left_sums(const Sample *sample, const Growth *growth, int64_t lo, int64_t hi, const int64_t *features,
                      const int64_t *cuts, Pair *lefts) {
    const uint8_t *a = sample->bins + features[0] * sample->n, *b = sample->bins + features[1] * sample->n;
    const uint8_t *c = sample->bins + features[2] * sample->n, *d = sample->bins + features[3] * sample->n;
    Pair of_a = 0, of_b = 0, of_c = 0, of_d = 0;
    for (int64_t i = lo; i < hi; i++) {
        int64_t row = growth->order[i];
        Pair pair = growth->pairs[row];
        of_a += pair & -(Pair)(a[row] <= cuts[0]);
        of_b += pair & -(Pair)(b[row] <= cuts[1]);
        of_c += pair & -(Pair)(c[row] <= cuts[2]);
        of_d += pair & -(Pair)(d[row] <= cuts[3]);
    }
    lefts[0] = of_a, lefts[1] = of_b, lefts[2] = of_c, lefts[3] = of_d;
}

/* The best of a node's random cuts; its bin is NO_CUT if no cut gains. */
static Cut best_cut(const Sample *sample, const Growth *growth, int64_t tree, int64_t node) {
    int64_t lo = growth->starts[node], hi = growth->stops[node];
    Pair total = growth->totals[node];
    Cut best = {0, NO_CUT, total};
    /* 1. Stop if the curvature does not suffice for two sides. */
    double min_curvature = MIN_CURVATURE * growth->unit;
    if (curvature_of(total) < 2.0 * min_curvature) return best;
    /* 2. Random features, each cut at the value of a random row. */
    int64_t features[TRIALS], cuts[TRIALS];
    for (int64_t trial = 0; trial < TRIALS; trial++) {
        uint64_t bits = random_bits(growth->key, tree, node, trial);
        features[trial] = (int64_t)(((bits >> 32) * (uint64_t)sample->features) >> 32);
        int64_t place = (int64_t)(((bits & UINT64_C(0xFFFFFFFF)) * (uint64_t)(hi - lo)) >> 32);
        cuts[trial] = sample->bins[features[trial] * sample->n + growth->order[lo + place]];
    }
    /* 3. The cut of the largest gain, among those with enough curvature on either side. */
    Pair lefts[TRIALS];
    for (int trial = 0; trial < TRIALS; trial += TRIALS_AT_ONCE)
        left_sums(sample, growth, lo, hi, features + trial, cuts + trial, lefts + trial);
    double best_gain = gain_of(total, growth->unit);
    for (int trial = 0; trial < TRIALS; trial++) {
        Pair left = lefts[trial], right = total - left;
        if (curvature_of(left) < min_curvature || curvature_of(right) < min_curvature) continue;
        double gain = gain_of(left, growth->unit) + gain_of(right, growth->unit);
        if (gain > best_gain) {
            best_gain = gain;
            best = (Cut){features[trial], cuts[trial], left};
        }
    }
    return best;
}

/* Partition the rows of a node by a cut of the feature with these bins, stably; return the first of the right rows. */
static int64_t partition(const uint8_t *bins, int64_t cut, int64_t lo, int64_t hi, Growth *growth) {
    int32_t *order = growth->order + lo, *right_rows = growth->scratch;
    int64_t left = 0, right = 0;
    for (int64_t i = 0; i < hi - lo; i++) {
        int32_t row = order[i];
        order[left] = right_rows[right] = row;
        int64_t goes_right = bins[row] > cut;
        left += 1 - goes_right;
        right += goes_right;
    }
    for (int64_t i = 0; i < right; i++) order[left + i] = right_rows[i];
    return lo + left;
}

/* Write the nodes of one tree, and the range of rows of each node and leaf. */
static void grow(const Sample *sample, Growth *growth, int64_t tree, Forest *forest) {
    Pair total = 0;
    for (int64_t i = 0; i < sample->n; i++) {
        growth->order[i] = (int32_t)i;
        total += growth->pairs[i];
    }
    growth->starts[0] = 0, growth->stops[0] = sample->n, growth->totals[0] = total;
    for (int64_t node = 0; node < NODES; node++) {
        int64_t lo = growth->starts[node], hi = growth->stops[node], middle = hi;
        Cut cut = best_cut(sample, growth, tree, node);
        if (cut.bin < NO_CUT) middle = partition(sample->bins + cut.feature * sample->n, cut.bin, lo, hi, growth);
        forest->features[tree * NODES + node] = (int32_t)cut.feature;
        forest->bins[tree * NODES + node] = (uint8_t)cut.bin;
        int64_t left = 2 * node + 1, right = 2 * node + 2;
        growth->starts[left] = lo, growth->stops[left] = middle, growth->totals[left] = cut.left;
        growth->starts[right] = middle, growth->stops[right] = hi;
        growth->totals[right] = growth->totals[node] - cut.left;
    }
}

/* Write the gradient and curvature of each row, for two classes. */
static void pairs_of_two(const Sample *sample, const double *values, double unit, Pair *pairs) {
    for (int64_t i = 0; i < sample->n; i++) {
        double p = logistic(values[i] * LEAF_UNIT), scale = sample->weights[i] * unit;
        pairs[i] = packed(scale * (p - (double)sample->codes[i]), scale * (p * (1.0 - p)));
    }
}

/* Write the trees of the log-odds of class 1 of two. */
static void grow_two(const Sample *sample, Growth *growth, double *values, Forest *forest) {
    /* 1. Start at the log-odds of the smoothed frequency of class 1; the first tree includes them. */
    double count = 0.0;
    for (int64_t i = 0; i < sample->n; i++) count += sample->weights[i] * (double)sample->codes[i];
    double base = log_of((count + 1.0) / ((double)sample->n - count + 1.0));
    for (int64_t i = 0; i < sample->n; i++) values[i] = (double)in_leaf_units(base);
    for (int64_t t = 0; t < forest->trees; t++) {
        /* 2. Gradient and curvature of each row; a tree. */
        pairs_of_two(sample, values, growth->unit, growth->pairs);
        grow(sample, growth, t, forest);
        /* 3. A Newton step in each leaf. */
        for (int64_t leaf = 0; leaf < LEAVES; leaf++) {
            int64_t lo = growth->starts[NODES + leaf], hi = growth->stops[NODES + leaf];
            if (lo == hi) continue;
            double first = t == 0 ? base : 0.0;
            int64_t step = in_leaf_units(first + newton_step(growth->totals[NODES + leaf], growth->unit));
            forest->leaves[t * LEAVES + leaf] = (int16_t)step;
            if (t == 0) step -= in_leaf_units(base);
            for (int64_t i = lo; i < hi; i++) values[growth->order[i]] += (double)step;
        }
    }
}

/* Arrays for three or more classes. Those of shape (classes, n) are class-major: loops over rows are vectorised. */
typedef struct {
    double *values, *p;             /* (classes, n): logits in LEAF_UNIT, and their softmax */
    Pair *pairs;                    /* (classes, n): gradient and curvature */
    double *highest, *sum;          /* (n): largest logit, and denominator of the softmax */
    double *gradients, *curvatures; /* (n): sums over the classes */
    double *base;                   /* (classes): initial logits */
    int64_t classes;
} Classes;

static void softmax_of_rows(const Classes *of, int64_t n) {
    for (int64_t i = 0; i < n; i++) of->highest[i] = -INFINITY, of->sum[i] = 0.0;
    for (int64_t k = 0; k < of->classes; k++)
        for (int64_t i = 0; i < n; i++) {
            double value = of->values[k * n + i];
            of->highest[i] = value > of->highest[i] ? value : of->highest[i];
        }
    for (int64_t k = 0; k < of->classes; k++)
        for (int64_t i = 0; i < n; i++) {
            double p = exp_nonpositive((of->values[k * n + i] - of->highest[i]) * LEAF_UNIT);
            of->p[k * n + i] = p;
            of->sum[i] += p;
        }
    for (int64_t i = 0; i < n; i++) of->sum[i] = 1.0 / of->sum[i];
    for (int64_t k = 0; k < of->classes; k++)
        for (int64_t i = 0; i < n; i++) of->p[k * n + i] *= of->sum[i];
}

/* Write the gradient and curvature of each class and row, and their sums over classes: of gradients with random signs. */
static void pairs_of_more(const Sample *sample, const Classes *of, int64_t tree, Growth *growth) {
    int64_t n = sample->n;
    for (int64_t i = 0; i < n; i++) of->gradients[i] = of->curvatures[i] = 0.0;
    for (int64_t k = 0; k < of->classes; k++) {
        double sign = random_bits(growth->key, tree, NODES, k) >> 63 ? 1.0 : -1.0;
        for (int64_t i = 0; i < n; i++) {
            double p = of->p[k * n + i];
            double gradient = p - (sample->codes[i] == k ? 1.0 : 0.0), curvature = p * (1.0 - p);
            of->gradients[i] += sign * gradient;
            of->curvatures[i] += curvature;
            double scale = sample->weights[i] * growth->unit;
            of->pairs[k * n + i] = packed(scale * gradient, scale * curvature);
        }
    }
    for (int64_t i = 0; i < n; i++) {
        double scale = sample->weights[i] * growth->unit;
        growth->pairs[i] = packed(scale * of->gradients[i], scale * of->curvatures[i]);
    }
}

/* Write the trees of the logits of three or more classes. */
static void grow_more(const Sample *sample, Growth *growth, const Classes *of, Forest *forest) {
    int64_t n = sample->n, classes = of->classes;
    /* 1. Start at the logarithms of the smoothed frequencies; the first tree includes them. */
    for (int64_t k = 0; k < classes; k++) of->base[k] = 0.0;
    for (int64_t i = 0; i < n; i++) of->base[sample->codes[i]] += sample->weights[i];
    for (int64_t k = 0; k < classes; k++) {
        of->base[k] = log_of((of->base[k] + 1.0) / (double)(n + classes));
        for (int64_t i = 0; i < n; i++) of->values[k * n + i] = (double)in_leaf_units(of->base[k]);
    }
    for (int64_t t = 0; t < forest->trees; t++) {
        /* 2. Gradient and curvature of each class and row; a tree. */
        softmax_of_rows(of, n);
        pairs_of_more(sample, of, t, growth);
        grow(sample, growth, t, forest);
        /* 3. A Newton step for each class in each leaf. */
        for (int64_t leaf = 0; leaf < LEAVES; leaf++) {
            int64_t lo = growth->starts[NODES + leaf], hi = growth->stops[NODES + leaf];
            if (lo == hi) continue;
            for (int64_t k = 0; k < classes; k++) {
                Pair total = 0;
                for (int64_t i = lo; i < hi; i++) total += of->pairs[k * n + growth->order[i]];
                double first = t == 0 ? of->base[k] : 0.0;
                int64_t step = in_leaf_units(first + newton_step(total, growth->unit));
                forest->leaves[(t * LEAVES + leaf) * classes + k] = (int16_t)step;
                if (t == 0) step -= in_leaf_units(of->base[k]);
                for (int64_t i = lo; i < hi; i++) of->values[k * n + growth->order[i]] += (double)step;
            }
        }
    }
}

#define SAMPLE "sample: (bins: u8[d,n] codes: i64[n] weights: f64[n])"
#define SEED " seed: uint number: uint"
#define SCRATCH " scratch: (rows: =i32[2,n] pairs: =i64[n]"
#define FOREST " forest: (features: =i32[t,63] bins: =u8[t,63] leaves: =i16[t,64,s])"

static Sample sample_of(const Slot *a) {
    return (Sample){a[0].array.at, a[1].int_vector.at, a[2].vector.at, a[0].array.shape[0], a[1].int_vector.n};
}

static Growth growth_of(const Slot *a, int64_t n) {
    return (Growth){.order = a[2].array.at,
                    .scratch = (int32_t *)a[2].array.at + n,
                    .pairs = a[3].int_vector.at,
                    .unit = unit_of(n),
                    .key = key_of(a[0].integer, a[1].integer)};
}

static Forest forest_of(const Slot *a) {
    return (Forest){a[0].array.at, a[1].array.at, a[2].array.at, a[0].array.shape[0], a[2].array.shape[2]};
}

static void call_grow_two(const Slot *a, Slot *r) {
    (void)r;
    Sample sample = sample_of(a);
    Growth growth = growth_of(a + 3, sample.n);
    Forest forest = forest_of(a + 8);
    grow_two(&sample, &growth, a[7].vector.at, &forest);
}

static void call_grow_more(const Slot *a, Slot *r) {
    (void)r;
    Sample sample = sample_of(a);
    Growth growth = growth_of(a + 3, sample.n);
    Forest forest = forest_of(a + 11);
    int64_t n = sample.n, classes = forest.decisions;
    double *of_classes = a[7].cube.at, *of_rows = a[9].matrix.at;
    Classes of = {.values = of_classes,
                  .p = of_classes + classes * n,
                  .pairs = a[8].int_matrix.at,
                  .highest = of_rows,
                  .sum = of_rows + n,
                  .gradients = of_rows + 2 * n,
                  .curvatures = of_rows + 3 * n,
                  .base = a[10].vector.at,
                  .classes = classes};
    grow_more(&sample, &growth, &of, &forest);
}

const Kernel refit_committee_boosting_kernels[] = {
    {"refit.committee.boosting._grow_two", SAMPLE SEED SCRATCH " values: =f64[n])" FOREST, call_grow_two, true},
    {"refit.committee.boosting._grow_more",
     SAMPLE SEED SCRATCH " of_classes: =f64[2,s,n] class_pairs: =i64[s,n] of_rows: =f64[4,n] base: =f64[s])" FOREST,
     call_grow_more, true},
    {0},
};
