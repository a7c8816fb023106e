/* The Bayes mixture of probabilities, weighted by their past likelihood. */
#include "predictor/ensemble.h"

/* The weights of K components: their logarithms, each one's part of the redistributed share, share and rate. */
typedef struct {
    double *logs;
    const double *moved;
    int64_t n;
    double share, rate;
} Weights;

/* The largest of n >= 1 numbers; NaN if any is NaN. */
static double largest_of(const double *values, int64_t n) {
    double largest = values[0];
    for (int64_t k = 1; k < n && largest == largest; k++) largest = values[k] <= largest ? largest : values[k];
    return largest;
}

/* Multiply each weight by its component's probability of the label: given[k * step]. */
static void learn(Weights weights, const double *given, int64_t step) {
    double *logs = weights.logs, top = -INFINITY, total = 0.0;
    for (int64_t k = 0; k < weights.n; k++) {
        logs[k] += weights.rate * log_of(given[k * step]);
        top = greater(top, logs[k]);
    }
    for (int64_t k = 0; k < weights.n; k++) {
        logs[k] -= top; /* the largest weight is 1: nothing overflows in a long stream */
        total += exp_of(logs[k]);
    }
    if (!(weights.share > 0.0)) return;
    for (int64_t k = 0; k < weights.n; k++) {
        double kept = (1.0 - weights.share) * exp_of(logs[k]) / total;
        logs[k] = log_of(kept + weights.moved[k]);
    }
}

/* Write the weighted mean of row i of the components; their clipped rows to `parts`. */
static void mix_row(Cube components, int64_t i, Weights weights, double *parts, double *mixed) {
    int64_t n_classes = components.columns;
    /* 1. The weights, from their logarithms, and the weighted sum of the rows. */
    double top = largest_of(weights.logs, weights.n), total = 0.0;
    for (int64_t y = 0; y < n_classes; y++) mixed[y] = 0.0;
    for (int64_t k = 0; k < weights.n; k++, parts += n_classes) {
        clip(components.at + (k * components.rows + i) * n_classes, n_classes, parts);
        double weight = exp_of(weights.logs[k] - top);
        total += weight;
        for (int64_t y = 0; y < n_classes; y++) mixed[y] += weight * parts[y];
    }
    /* 2. Divide by the sum of the weights. */
    for (int64_t y = 0; y < n_classes; y++) mixed[y] /= total;
}

/* Mix rows in order; a labelled row changes the weights after its answer. */
static void mix_rows(Cube components, const int64_t *columns, Weights weights, double *parts, double *mixed) {
    for (int64_t i = 0; i < components.rows; i++) {
        mix_row(components, i, weights, parts, mixed + i * components.columns);
        if (0 <= columns[i] && columns[i] < components.columns) learn(weights, parts + columns[i], components.columns);
    }
}

static void call_mix(const Slot *a, Slot *r) {
    (void)r;
    Weights weights = {a[2].vector.at, a[3].vector.at, a[2].vector.n, a[4].real, a[5].real};
    mix_rows(a[0].cube, a[1].int_vector.at, weights, a[6].matrix.at, a[7].matrix.at);
}

const Kernel predictor_ensemble_kernels[] = {
    {"predictor.ensemble._mix",
     "components: f64[k,m,c] columns: i64[m] weights: (logs: =f64[k] moved: f64[k] share: float rate: float)"
     " parts: =f64[k,c] mixed: =f64[m,c]",
     call_mix, false},
    {0},
};
