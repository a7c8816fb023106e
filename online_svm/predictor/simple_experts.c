/* The simple experts: base rate of the labels so far, and logistic regressions of their features. */
#include "compiled/elementary.h"
#include "compiled/kernel.h"

#define SMOOTHING 0.5    /* added to the count of each class (Krichevsky and Trofimov) */
#define LEAST_RATE 1e-12 /* of a class against the rest, so that their sum is never 0 */

/* `Regressions` of Python. */
typedef struct {
    Cube weights;     /* of each regression, decision and feature; the last is the intercept */
    IntVector fitted; /* columns of the classes that were fitted, ascending */
} Regressions;

/* Write the smoothed frequency of each class. */
static void write_base_rates(const double *counts, int64_t n_classes, double *rates) {
    double total = 0.0;
    for (int64_t y = 0; y < n_classes; y++) total += counts[y] + SMOOTHING;
    for (int64_t y = 0; y < n_classes; y++) rates[y] = (counts[y] + SMOOTHING) / total;
}

/* The probability of a decision: the last weight is the intercept. */
static double decided(const double *weights, const double *row, int64_t n_features) {
    double sum = weights[n_features];
    for (int64_t f = 0; f < n_features; f++) sum = multiply_add(weights[f], row[f], sum);
    return logistic(sum);
}

/* Write the probabilities of regression j; a class that was not fitted keeps its base rate. */
static void write_regression(Regressions of, int64_t j, const double *row, const double *rates, int64_t n_classes,
                             double *outputs) {
    int64_t n_features = of.weights.columns - 1, n = of.fitted.n;
    const double *weights = of.weights.at + j * of.weights.rows * of.weights.columns;
    double rest = 1.0, total = 0.0;
    for (int64_t y = 0; y < n_classes; y++) outputs[y] = rates[y];
    for (int64_t s = 0; s < n; s++) rest -= rates[of.fitted.at[s]];
    if (n == 2) {
        double p = decided(weights, row, n_features);
        outputs[of.fitted.at[0]] = (1.0 - rest) * (1.0 - p);
        outputs[of.fitted.at[1]] = (1.0 - rest) * p;
        return;
    }
    for (int64_t s = 0; s < n; s++) {
        double p = greater(decided(weights + s * of.weights.columns, row, n_features), LEAST_RATE);
        outputs[of.fitted.at[s]] = p;
        total += p;
    }
    for (int64_t s = 0; s < n; s++) outputs[of.fitted.at[s]] *= (1.0 - rest) / total;
}

/* Write the answers of the experts to rows in order; a label is counted after its answer. */
static void answer(double *counts, Matrix rows, Regressions of, const int64_t *columns, Cube experts) {
    int64_t n_classes = experts.columns, plane = experts.rows * n_classes;
    for (int64_t i = 0; i < experts.rows; i++) {
        double *rates = experts.at + i * n_classes;
        write_base_rates(counts, n_classes, rates);
        for (int64_t j = 0; j + 1 < experts.planes; j++)
            write_regression(of, j, rows.at + i * rows.columns, rates, n_classes, rates + (j + 1) * plane);
        if (0 <= columns[i] && columns[i] < n_classes) counts[columns[i]] += 1.0;
    }
}

static void call_answer(const Slot *a, Slot *r) {
    (void)r;
    Regressions of = {a[2].cube, a[3].int_vector};
    answer(a[0].vector.at, a[1].matrix, of, a[4].int_vector.at, a[5].cube);
}

const Kernel predictor_simple_experts_kernels[] = {
    {"predictor.simple_experts._answer",
     "counts: =f64[c] rows: f64[m,d] regressions: (weights: f64[j,s,d+1] fitted: i64[f]) columns: i64[m]"
     " experts: =f64[*,m,c]",
     call_answer, false},
    {0},
};
