/* The Bayes mixture of probabilities, weighted by their past likelihood. */
#include "predictor/ensemble.h"

/* The largest of n >= 1 numbers; NaN if any is NaN. */
static double largest_of(const double *values, int64_t n) {
    double largest = values[0];
    for (int64_t k = 1; k < n && largest == largest; k++) largest = values[k] <= largest ? largest : values[k];
    return largest;
}

void learn_mixture(Mixture of, const double *given, int64_t step) {
    double *logs = of.logs, top = -INFINITY, total = 0.0;
    for (int64_t k = 0; k < of.n; k++) {
        logs[k] += of.rate * log_of(given[k * step]);
        top = greater(top, logs[k]);
    }
    for (int64_t k = 0; k < of.n; k++) {
        logs[k] -= top; /* the largest weight is 1: nothing overflows in a long stream */
        total += exp_of(logs[k]);
    }
    if (!(of.share > 0.0)) return;
    for (int64_t k = 0; k < of.n; k++) {
        double kept = (1.0 - of.share) * exp_of(logs[k]) / total;
        logs[k] = log_of(kept + of.moved[k]);
    }
}

void mix_row(const double *experts, int64_t step, int64_t n_classes, Mixture of, double *parts, double *mixed) {
    /* 1. The weights, from their logarithms, and the weighted sum of the rows. */
    double top = largest_of(of.logs, of.n), total = 0.0;
    for (int64_t y = 0; y < n_classes; y++) mixed[y] = 0.0;
    for (int64_t k = 0; k < of.n; k++, parts += n_classes) {
        clip(experts + k * step, n_classes, parts);
        double weight = exp_of(of.logs[k] - top);
        total += weight;
        for (int64_t y = 0; y < n_classes; y++) mixed[y] += weight * parts[y];
    }
    /* 2. Divide by the sum of the weights. */
    for (int64_t y = 0; y < n_classes; y++) mixed[y] /= total;
}

/* Mix rows in order; a labelled row changes the weights after its answer. */
static void mix_rows(Cube experts, const int64_t *columns, Mixture of, double *parts, double *mixed) {
    int64_t n = experts.columns;
    for (int64_t i = 0; i < experts.rows; i++) {
        mix_row(experts.at + i * n, experts.rows * n, n, of, parts, mixed + i * n);
        if (0 <= columns[i] && columns[i] < n) learn_mixture(of, parts + columns[i], n);
    }
}

static void call_mix(const Slot *a, Slot *r) {
    (void)r;
    Mixture of = {a[2].vector.at, a[3].vector.at, a[2].vector.n, a[4].real, a[5].real};
    mix_rows(a[0].cube, a[1].int_vector.at, of, a[6].matrix.at, a[7].matrix.at);
}

const Kernel predictor_ensemble_kernels[] = {
    {"predictor.ensemble._mix",
     "components: f64[k,m,c] columns: i64[m] weights: (logs: =f64[k] moved: f64[k] share: float rate: float)"
     " parts: =f64[k,c] mixed: =f64[m,c]",
     call_mix, false},
    {0},
};
