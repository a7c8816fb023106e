/* The label history: a softmax regression of the label on its probabilities and on the last labels. */
#include "compiled/elementary.h"
#include "compiled/kernel.h"

enum { FREQUENCIES = 3, RESIDUALS = 2, FEATURES = 1 + FREQUENCIES + RESIDUALS + 1 };

#define FLOOR 1e-6             /* of a probability, so that its logarithm stays finite */
#define SMOOTHING 0.01         /* added to the frequency of each class */
#define RESIDUAL_SCALE 4.0     /* residuals are small beside logarithms of frequencies */
#define TRANSITION_PRIOR 2.0   /* labels that the frequencies count for in the row of a label */
#define TRANSITION_MEMORY 0.99 /* part of the counts of a row that the next label after it keeps */
#define WEIGHT_MEMORY 0.999    /* part of the evidence on the weights that each label keeps */
#define RIDGE 10.0             /* precision of the prior of the weights: 1 for log p, 0 for the others */

/* The parts that a label keeps, at half-lives of 1, 5 and 50 labels. */
static const double FREQUENCY_MEMORY[FREQUENCIES] = {0.5, 0.8705505632961241, 0.9862327044933592};
/* The same at half-lives of 5 and 50 labels. */
static const double RESIDUAL_MEMORY[RESIDUALS] = {0.8705505632961241, 0.9862327044933592};

/* `HistoryState` of Python. */
typedef struct {
    double *frequencies, *residuals, *transitions;
    double *weights, *precision;
    int64_t *last;
    int64_t n_classes;
} History;

/* Write the features of each class of a row: shape (n_classes, FEATURES). */
static void write_features(History held, const double *point, double *features) {
    int64_t k = held.n_classes, last = *held.last;
    double norm = 1.0 + (double)k * SMOOTHING, seen = TRANSITION_PRIOR;
    const double *row = held.transitions + (last < 0 ? 0 : last) * k;
    for (int64_t y = 0; y < k && last >= 0; y++) seen += row[y];
    for (int64_t y = 0; y < k; y++, features += FEATURES) {
        double slow = 0.0, *to = features;
        *to++ = log_of(greater(point[y], FLOOR));
        for (int64_t f = 0; f < FREQUENCIES; f++) {
            slow = (held.frequencies[f * k + y] + SMOOTHING) / norm;
            *to++ = log_of(slow);
        }
        for (int64_t r = 0; r < RESIDUALS; r++) *to++ = RESIDUAL_SCALE * held.residuals[r * k + y];
        *to = log_of(((last < 0 ? 0.0 : row[y]) + TRANSITION_PRIOR * slow) / seen);
    }
}

/* Write the softmax of the weighted features. */
static void predict(History held, const double *features, double *outputs) {
    double highest = -INFINITY, total = 0.0;
    for (int64_t y = 0; y < held.n_classes; y++) {
        double sum = 0.0;
        for (int64_t f = 0; f < FEATURES; f++) sum = multiply_add(held.weights[f], features[y * FEATURES + f], sum);
        outputs[y] = sum;
        highest = greater(highest, sum);
    }
    for (int64_t y = 0; y < held.n_classes; y++) {
        outputs[y] = exp_nonpositive(outputs[y] - highest);
        total += outputs[y];
    }
    for (int64_t y = 0; y < held.n_classes; y++) outputs[y] /= total;
}

/* Solve A x = b for a positive definite A by its Cholesky factor, which replaces A; x replaces b. */
static void solve(double A[FEATURES][FEATURES], double b[FEATURES]) {
    for (int64_t i = 0; i < FEATURES; i++) {
        for (int64_t j = 0; j <= i; j++) {
            double sum = A[i][j];
            for (int64_t f = 0; f < j; f++) sum -= A[i][f] * A[j][f];
            A[i][j] = i == j ? sqrt(sum) : sum / A[j][j];
        }
        double sum = b[i];
        for (int64_t f = 0; f < i; f++) sum -= A[i][f] * b[f];
        b[i] = sum / A[i][i];
    }
    for (int64_t i = FEATURES - 1; i >= 0; i--) {
        for (int64_t f = i + 1; f < FEATURES; f++) b[i] -= A[f][i] * b[f];
        b[i] /= A[i][i];
    }
}

/* One Newton step on the log loss of a label y, whose answer had these features and probabilities. */
static void learn_weights(History held, const double *features, const double *outputs, int64_t y) {
    double mean[FEATURES] = {0}, step[FEATURES], factor[FEATURES][FEATURES];
    /* 1. The mean of the features under the probabilities, and the gradient. */
    for (int64_t c = 0; c < held.n_classes; c++)
        for (int64_t f = 0; f < FEATURES; f++) mean[f] += outputs[c] * features[c * FEATURES + f];
    for (int64_t f = 0; f < FEATURES; f++) {
        double prior = f == 0 ? 1.0 : 0.0;
        step[f] = features[y * FEATURES + f] - mean[f] + (1.0 - WEIGHT_MEMORY) * RIDGE * (prior - held.weights[f]);
    }
    /* 2. The precision: what is kept of it, of the prior what was forgotten, and the Hessian of this label. */
    double *precision = held.precision;
    for (int64_t f = 0; f < FEATURES; f++) {
        for (int64_t g = 0; g < FEATURES; g++) precision[f * FEATURES + g] *= WEIGHT_MEMORY;
        precision[f * FEATURES + f] += (1.0 - WEIGHT_MEMORY) * RIDGE;
    }
    for (int64_t c = 0; c < held.n_classes; c++) {
        const double *of_class = features + c * FEATURES;
        for (int64_t f = 0; f < FEATURES; f++)
            for (int64_t g = 0; g < FEATURES; g++)
                precision[f * FEATURES + g] += outputs[c] * (of_class[f] - mean[f]) * (of_class[g] - mean[g]);
    }
    /* 3. The step. */
    for (int64_t f = 0; f < FEATURES; f++)
        for (int64_t g = 0; g < FEATURES; g++) factor[f][g] = precision[f * FEATURES + g];
    solve(factor, step);
    for (int64_t f = 0; f < FEATURES; f++) held.weights[f] += step[f];
}

/* Count a label y, whose answer had these features. */
static void count(History held, const double *features, int64_t y) {
    int64_t k = held.n_classes;
    for (int64_t f = 0; f < FREQUENCIES; f++)
        for (int64_t c = 0; c < k; c++) {
            double *frequency = held.frequencies + f * k + c;
            *frequency = FREQUENCY_MEMORY[f] * *frequency + (1.0 - FREQUENCY_MEMORY[f]) * (c == y ? 1.0 : 0.0);
        }
    for (int64_t c = 0; c < k; c++) {
        double error = (c == y ? 1.0 : 0.0) - exp_of(features[c * FEATURES]);
        for (int64_t r = 0; r < RESIDUALS; r++) {
            double *residual = held.residuals + r * k + c;
            *residual = RESIDUAL_MEMORY[r] * *residual + (1.0 - RESIDUAL_MEMORY[r]) * error;
        }
    }
    if (*held.last >= 0) {
        double *row = held.transitions + *held.last * k;
        for (int64_t c = 0; c < k; c++) row[c] *= TRANSITION_MEMORY;
        row[y] += 1.0;
    }
    *held.last = y;
}

/* Answer rows in order, and learn each label after its answer.

A row with a source, itself or an earlier row, is an example that was answered before: it gets the features of that
row. `features` has one plane a row, or a single one if no row has a source. */
static void answer(History held, Matrix points, const int64_t *columns, const int64_t *sources, Cube features,
                   double *outputs) {
    int64_t k = held.n_classes, plane = k * FEATURES;
    for (int64_t i = 0; i < points.rows; i++) {
        double *of_row = features.at + (features.planes == points.rows ? i * plane : 0);
        if (sources[i] < 0)
            write_features(held, points.at + i * k, of_row);
        else if (sources[i] < i)
            for (int64_t f = 0; f < plane; f++) of_row[f] = features.at[sources[i] * plane + f];
        predict(held, of_row, outputs + i * k);
        if (columns[i] < 0 || columns[i] >= k) continue;
        learn_weights(held, of_row, outputs + i * k, columns[i]);
        count(held, of_row, columns[i]);
    }
}

static void call_answer(const Slot *a, Slot *r) {
    (void)r;
    History held = {a[0].matrix.at, a[1].matrix.at,     a[2].matrix.at,     a[3].vector.at,
                    a[4].matrix.at, a[5].int_vector.at, a[0].matrix.columns};
    answer(held, a[6].matrix, a[7].int_vector.at, a[8].int_vector.at, a[9].cube, a[10].matrix.at);
}

const Kernel predictor_label_history_kernels[] = {
    {"predictor.label_history._answer",
     "state: (frequencies: =f64[3,c] residuals: =f64[2,c] transitions: =f64[c,c] weights: =f64[7]"
     " precision: =f64[7,7] last: =i64[1]) points: f64[m,c] columns: i64[m] sources: i64[m]"
     " features: =f64[*,c,7] outputs: =f64[m,c]",
     call_answer, false},
    {0},
};
