/* Label counts by the rank of an example's score among the calibration examples of its own class. */
#include <string.h>

#include "compiled/kernel.h"
#include "compiled/search.h"

/* `SortedScores` of Python: G lists, each with room for the same number of labelled scores. */
typedef struct {
    Matrix scores;
    IntMatrix codes;
    IntVector sizes;
} SortedScores;

#define SORTED_SCORES "lists: (scores: =f64[G,room] codes: =i64[G,room] sizes: =i64[G])"

/* Read the lists from the arguments declared by SORTED_SCORES. */
static inline SortedScores sorted_scores_of(const Slot *a) {
    return (SortedScores){a[0].matrix, a[1].int_matrix, a[2].int_vector};
}

/* Move the items from place `from` up to `stop` to place `to`. */
static void move(double *scores, int64_t *codes, int64_t from, int64_t stop, int64_t to) {
    memmove(scores + to, scores + from, (size_t)(stop - from) * sizeof *scores);
    memmove(codes + to, codes + from, (size_t)(stop - from) * sizeof *codes);
}

/* Add a labelled score to list g, which must have room for it. */
static void sorted_insert(SortedScores lists, int64_t g, double score, int64_t code) {
    double *scores = lists.scores.at + g * lists.scores.columns;
    int64_t *codes = lists.codes.at + g * lists.codes.columns, size = lists.sizes.at[g];
    int64_t at = lower_bound(scores, size, score);
    move(scores, codes, at, size, at + 1);
    scores[at] = score;
    codes[at] = code;
    lists.sizes.at[g] = size + 1;
}

/* Remove a labelled score from list g; it must be there. */
static void sorted_remove(SortedScores lists, int64_t g, double score, int64_t code) {
    double *scores = lists.scores.at + g * lists.scores.columns;
    int64_t *codes = lists.codes.at + g * lists.codes.columns, size = lists.sizes.at[g];
    int64_t at = lower_bound(scores, size, score);
    while (codes[at] != code) at++; /* equal scores may carry several labels */
    move(scores, codes, at + 1, size, at);
    lists.sizes.at[g] = size - 1;
}

/* Return the first place of the ties of the score at place i. */
static int64_t group_start(const double *scores, int64_t i) {
    while (i > 0 && scores[i - 1] == scores[i]) i--;
    return i;
}

/* Return the place after the last tie of the score at place i. */
static int64_t group_stop(const double *scores, int64_t i, int64_t size) {
    for (i++; i < size && scores[i] == scores[i - 1];) i++;
    return i;
}

/* Add the labels in the bin of `score` to `label_counts`; return the bin.

The example with this score is ranked among the ascending scores and itself. Rank r (from 0) of n = size + 1 belongs to
bin floor(n_bins r / n). A group of ties belongs to the bin of its middle rank: twice that rank is the first plus the
last rank of the group. */
static int64_t count(const double *scores, const int64_t *codes, int64_t size, double score, int64_t n_bins,
                     int64_t *label_counts) {
    /* 1. The ties of the example, and its bin by their middle rank. */
    int64_t begin = lower_bound(scores, size, score), end = begin;
    while (end < size && scores[end] == score) end++;
    int64_t twice = 2 * (size + 1);
    int64_t bin = (begin + end) * n_bins / twice;
    /* 2. The range of examples in that bin, one group of ties after the other. */
    int64_t low = begin;
    while (low > 0) { /* downwards: the example does not change ranks below it */
        int64_t first = group_start(scores, low - 1);
        if ((first + low - 1) * n_bins / twice != bin) break;
        low = first;
    }
    int64_t high = end;
    while (high < size) { /* upwards: the example increases ranks above it by one */
        int64_t last = group_stop(scores, high, size);
        if ((high + last + 1) * n_bins / twice != bin) break;
        high = last;
    }
    /* 3. Their labels. */
    for (int64_t i = low; i < high; i++) label_counts[codes[i]]++;
    return bin;
}

/* Rows in order of arrival: the SVM's own class, its score, and the label code, -1 for unlabelled rows. */
typedef struct {
    const int64_t *own;
    const double *strengths;
    const int64_t *codes;
    int64_t n;
} RankedRows;

/* Answer and add rows in turn, starting with `size` held examples; return how many of them left.

`oldest` are the held examples that can leave. */
static int64_t answer(RankedRows rows, int64_t size, RankedRows oldest, int64_t limit, SortedScores lists,
                      int64_t n_bins, IntMatrix label_counts, int64_t *categories) {
    int64_t gone = 0;
    for (int64_t i = 0; i < rows.n; i++) {
        /* 1. Answer: the label counts of its bin. */
        int64_t k = rows.own[i];
        const double *scores = lists.scores.at + k * lists.scores.columns;
        const int64_t *codes = lists.codes.at + k * lists.codes.columns;
        int64_t bin = count(scores, codes, lists.sizes.at[k], rows.strengths[i], n_bins,
                            label_counts.at + i * label_counts.columns);
        categories[i] = k * n_bins + bin;
        if (rows.codes[i] < 0) continue;
        /* 2. Add the row to the calibration set. */
        sorted_insert(lists, k, rows.strengths[i], rows.codes[i]);
        size++;
        /* 3. Remove the oldest example if the window is full. */
        if (limit >= 0 && size > limit) {
            sorted_remove(lists, oldest.own[gone], oldest.strengths[gone], oldest.codes[gone]);
            gone++;
            size--;
        }
    }
    return gone;
}

static void call_answer(const Slot *a, Slot *r) {
    RankedRows rows = {a[0].int_vector.at, a[1].vector.at, a[2].int_vector.at, a[2].int_vector.n};
    RankedRows oldest = {a[3].int_vector.at, a[4].vector.at, a[5].int_vector.at, a[3].int_vector.n};
    r->integer = answer(rows, a[6].integer, oldest, a[7].integer, sorted_scores_of(a + 8), a[11].integer,
                        a[12].int_matrix, a[13].int_vector.at);
}

const Kernel venn_rank_predictor_kernels[] = {
    {"venn.rank_predictor._answer",
     "rows: (own: i64[m] strengths: f64[m] codes: i64[m]) held: (own: i64[h] strengths: f64[h] codes: i64[N]"
     " size: int<=N limit: int) " SORTED_SCORES " n_bins: int label_counts: =i64[m,c] categories: =i64[m] -> int",
     call_answer, true},
    {0},
};
