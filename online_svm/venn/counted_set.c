/* Label counts by category, on a calibration set that grows with every example. */
#include "compiled/kernel.h"

/* Categories and labels in order of arrival: first `size` held examples, then those that are added. */
typedef struct {
    IntVector categories, codes;
    int64_t size, limit;
} HeldExamples;

/* Answer and add rows in turn; return how many of the held examples left. */
static int64_t answer(IntVector categories, IntVector codes, HeldExamples held, IntMatrix counts,
                      IntMatrix label_counts) {
    int64_t size = held.size, gone = 0;
    for (int64_t i = 0; i < codes.n; i++) {
        /* 1. Answer: the label counts of its category. */
        int64_t *row = counts.at + categories.at[i] * counts.columns;
        for (int64_t y = 0; y < counts.columns; y++) label_counts.at[i * label_counts.columns + y] = row[y];
        if (codes.at[i] < 0) continue;
        /* 2. Add the row to the calibration set. */
        row[codes.at[i]]++;
        size++;
        /* 3. Remove the oldest example if the window is full. */
        if (held.limit >= 0 && size - gone > held.limit) {
            counts.at[held.categories.at[gone] * counts.columns + held.codes.at[gone]]--;
            gone++;
        }
    }
    return gone;
}

static void call_answer(const Slot *a, Slot *r) {
    HeldExamples held = {a[2].int_vector, a[3].int_vector, a[4].integer, a[5].integer};
    r->integer = answer(a[0].int_vector, a[1].int_vector, held, a[6].int_matrix, a[7].int_matrix);
}

const Kernel venn_counted_set_kernels[] = {
    {"venn.counted_set._answer",
     "rows: (categories: i64[m] codes: i64[m]) held: (categories: i64[N] codes: i64[N] size: int<=N limit: int)"
     " counts: =i64[k,c] label_counts: =i64[m,c] -> int",
     call_answer, false},
    {0},
};
