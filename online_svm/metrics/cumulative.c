#include "compiled/kernel.h"
#include "metrics/scores.h"

/* Columns of the running sums: four for the predicted label, four for the SVM's class, two scores,
and the squares of hits and scores about the means before. */
enum {
    LOWER,
    PROBABILITY,
    UPPER,
    VARIANCE,
    N_OF_LABEL,
    LOG_LOSS = 8,
    BRIER,
    HIT_SQUARES,
    LOG_LOSS_SQUARES,
    BRIER_SQUARES
};
enum { SCORED, PREDICTED_HITS, SVM_HITS, CLIPPED };

/* `MethodAnswers` of Python: probabilities, optional intervals, and the two labels of each row. */
typedef struct {
    Matrix probabilities, lower, upper;
    const int64_t *label, *svm_label;
    bool has_intervals;
} MethodAnswers;

static MethodAnswers method_answers_of(const Slot *a) {
    Matrix p = a[0].matrix, lower = a[1].matrix;
    bool has_intervals = lower.rows == p.rows && lower.columns == p.columns;
    return (MethodAnswers){p, lower, a[2].matrix, a[3].int_vector.at, a[4].int_vector.at, has_intervals};
}

/* Add the probability, variance and bounds of one label of a row. */
static void add_label(double *sums, const MethodAnswers *answers, int64_t row, int64_t label) {
    int64_t at = row * answers->probabilities.columns + label;
    double p = answers->probabilities.at[at];
    sums[PROBABILITY] += p;
    sums[VARIANCE] += p * (1.0 - p);
    if (answers->has_intervals) {
        sums[LOWER] += answers->lower.at[at];
        sums[UPPER] += answers->upper.at[at];
    }
}

/* Add each labelled row to the sums, in order. */
static void call_add(const Slot *a, Slot *r) {
    (void)r;
    double *sums = a[0].vector.at;
    int64_t *counts = a[1].int_vector.at;
    MethodAnswers answers = method_answers_of(a + 2);
    IntVector truth = a[7].int_vector;
    int64_t k = answers.probabilities.columns;
    for (int64_t i = 0; i < truth.n; i++) {
        int64_t true_label = truth.at[i];
        if (true_label < 0) continue;
        const double *p = answers.probabilities.at + i * k;
        double n = (double)counts[SCORED], hits = (double)counts[PREDICTED_HITS];
        double loss = log_loss(p[true_label]), brier = brier_sum(p, k, true_label);
        sums[HIT_SQUARES] += square_about_mean(answers.label[i] == true_label, hits, n, 0.5);
        sums[LOG_LOSS_SQUARES] += square_about_mean(loss, sums[LOG_LOSS], n, 0.5);
        sums[BRIER_SQUARES] += square_about_mean(brier, sums[BRIER], n, 0.5);
        counts[SCORED]++;
        /* 1. The predicted label, then the SVM's class. */
        counts[PREDICTED_HITS] += answers.label[i] == true_label;
        counts[SVM_HITS] += answers.svm_label[i] == true_label;
        add_label(sums, &answers, i, answers.label[i]);
        add_label(sums + N_OF_LABEL, &answers, i, answers.svm_label[i]);
        /* 2. Log loss and Brier score of the true label. */
        counts[CLIPPED] += p[true_label] < CLIP;
        sums[LOG_LOSS] += loss;
        sums[BRIER] += brier;
    }
}

const Kernel metrics_cumulative_kernels[] = {
    {"metrics.cumulative._add",
     "sums: =f64[13] counts: =i64[4]"
     " answers: (probabilities: f64[m,k] lower: f64[l,i] upper: f64[l,i] label: i64[m] svm_label: i64[m])"
     " truth: i64[m]",
     call_add, false},
    {0},
};
