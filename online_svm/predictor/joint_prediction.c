/* The logarithms of one-against-all probabilities. */
#include "compiled/elementary.h"
#include "compiled/kernel.h"

/* Write -log(1 + exp(-s)) of each score; the exponent is at most 0, so nothing overflows. */
static void call_log_probabilities(const Slot *a, Slot *r) {
    (void)r;
    Matrix scores = a[0].matrix;
    double *logs = a[1].matrix.at;
    int64_t n = scores.rows * scores.columns;
    /* Two loops: gcc vectorises both, but not one loop with both steps. */
    for (int64_t i = 0; i < n; i++) logs[i] = exp_nonpositive(-fabs(scores.at[i]));
    for (int64_t i = 0; i < n; i++) logs[i] = lesser(scores.at[i], 0.0) - log1p_of(logs[i]);
}

const Kernel predictor_joint_prediction_kernels[] = {
    {"predictor.joint_prediction._log_probabilities", "scores: f64[m,k] logs: =f64[m,k]", call_log_probabilities,
     false},
    {0},
};
