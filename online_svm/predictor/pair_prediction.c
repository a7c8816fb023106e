/* The components of the primary prediction of two classes. */
#include "compiled/elementary.h"
#include "compiled/kernel.h"

/* Write both classes' probabilities by the stack, the stack clipped to the pair, and the mean of the pair. */
static void call_fill(const Slot *a, Slot *r) {
    (void)r;
    Matrix scores = a[0].matrix, mean = a[1].matrix;
    const double *lower = a[2].matrix.at, *upper = a[3].matrix.at;
    double *stack = a[4].cube.at, *clip = stack + 2 * scores.rows, *pair = clip + 2 * scores.rows;
    for (int64_t i = 0; i < scores.rows; i++) {
        int64_t first = i * mean.columns, second = first + 1;
        double stacked = logistic(scores.at[i * scores.columns]);
        double clipped = bounded_by(stacked, lower[second], upper[second]);
        stack[2 * i] = 1.0 - stacked;
        stack[2 * i + 1] = stacked;
        clip[2 * i] = 1.0 - clipped;
        clip[2 * i + 1] = clipped;
        pair[2 * i] = mean.at[first];
        pair[2 * i + 1] = mean.at[second];
    }
}

const Kernel predictor_pair_prediction_kernels[] = {
    {"predictor.pair_prediction._fill",
     "scores: f64[m,1] mean: f64[m,unseen+2] lower: f64[m,unseen+2] upper: f64[m,unseen+2] components: =f64[3,m,2]",
     call_fill, false},
    {0},
};
