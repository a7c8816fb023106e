/* The interval of an example by the taxonomy "class", in one pass over the calibration set. */
#include "compiled/kernel.h"

/* Return the class that `svm_classes` gives a row of scores; a NaN counts as the largest. */
static inline int64_t own_class(const double *score, int64_t n) {
    if (n == 1) return score[0] > 0.0;
    int64_t own = 0;
    double best = score[0];
    for (int64_t s = 1; s < n; s++) {
        bool is_ahead = !(score[s] <= best) & (best == best); /* no score replaces a NaN */
        own = is_ahead ? s : own;
        best = is_ahead ? score[s] : best;
    }
    return own;
}

/* Count the labels in the category of `score`, N_k[y] with sum N; write N_k[y]/(N+1) and (N_k[y]+1)/(N+1). */
static void count(Matrix scores, IntVector codes, const double *score, Matrix bounds) {
    int64_t own = own_class(score, scores.columns);
    int64_t total = 1;
    for (int64_t y = 0; y < bounds.rows; y++) bounds.at[2 * y] = 0.0;
    for (int64_t i = 0; i < codes.n; i++) {
        /* Branch-free: the branch would be mispredicted half of the time. */
        bool is_own = own_class(scores.at + i * scores.columns, scores.columns) == own;
        bounds.at[2 * codes.at[i]] += is_own;
        total += is_own;
    }
    for (int64_t y = 0; y < bounds.rows; y++) {
        bounds.at[2 * y + 1] = (bounds.at[2 * y] + 1.0) / (double)total;
        bounds.at[2 * y] /= (double)total;
    }
}

static void call_count(const Slot *a, Slot *r) {
    (void)r;
    count(a[0].matrix, a[1].int_vector, a[2].vector.at, a[3].matrix);
}

const Kernel venn_scheme_kernels[] = {
    {"venn.scheme._count", "scores: f64[n,S] codes: i64[n] score: f64[S] bounds: =f64[c,2]", call_count, false},
    {0},
};
