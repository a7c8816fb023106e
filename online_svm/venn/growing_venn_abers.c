/* The pairs (p0, p1) of Venn-Abers prediction on a calibration set that grows with every example; see
`growing_venn_abers.py`. */
#include "compiled/kernel.h"
#include "compiled/search.h"
#include <string.h>

/* `PooledScores` of Python: G lists of B buckets, with room for W scores each. */
typedef struct {
    Cube scores;
    IntCube totals, hits;
    IntMatrix lengths;
    IntCube block_totals, block_hits;
    IntMatrix blocks, order;
    IntVector in_use, sizes;
} PooledScores;

#define POOLED_SCORES                                                                                                  \
    "lists: (scores: =f64[G,B,W] totals: =i64[G,B,W] hits: =i64[G,B,W] lengths: =i64[G,B]"                             \
    " block_totals: =i64[G,B,W] block_hits: =i64[G,B,W] blocks: =i64[G,B]"                                             \
    " order: =i64[G,B] in_use: =i64[G] sizes: =i64[G])"
enum { POOLED_SCORES_SLOTS = 10 };

/* Ascending distinct scores of a bucket, and the numbers of examples and of positive examples at each. */
typedef struct {
    double *scores;
    int64_t *totals, *hits;
} Counts;

/* A stack of blocks, with the block nearest to a score on top; `top` is -1 if it is empty. */
typedef struct {
    int64_t *hits, *totals, top;
} Stack;

/* Read the lists from the arguments declared by POOLED_SCORES. */
static PooledScores pooled_scores_of(const Slot *a) {
    return (PooledScores){a[0].cube,     a[1].int_cube,   a[2].int_cube,   a[3].int_matrix, a[4].int_cube,
                          a[5].int_cube, a[6].int_matrix, a[7].int_matrix, a[8].int_vector, a[9].int_vector};
}

static inline int64_t bucket_at(const PooledScores *lists, int64_t g, int64_t b) { return g * lists->scores.rows + b; }

static inline Counts counts_of(const PooledScores *lists, int64_t bucket) {
    int64_t first = bucket * lists->scores.columns;
    return (Counts){lists->scores.at + first, lists->totals.at + first, lists->hits.at + first};
}

/* Push a block, after pooling it with the blocks on the stack until the one below has a lower mean. */
static inline void push(Stack *stack, int64_t hit, int64_t total) {
    while (stack->top >= 0 && stack->hits[stack->top] * total >= hit * stack->totals[stack->top]) {
        hit += stack->hits[stack->top];
        total += stack->totals[stack->top];
        stack->top--;
    }
    stack->top++;
    stack->hits[stack->top] = hit;
    stack->totals[stack->top] = total;
}

/* Write the blocks of a bucket. */
static void pool(const PooledScores *lists, int64_t bucket) {
    int64_t first = bucket * lists->scores.columns;
    Counts counts = counts_of(lists, bucket);
    Stack stack = {lists->block_hits.at + first, lists->block_totals.at + first, -1};
    for (int64_t i = 0; i < lists->lengths.at[bucket]; i++) push(&stack, counts.hits[i], counts.totals[i]);
    lists->blocks.at[bucket] = stack.top + 1;
}

/* Return the place in `order` of the bucket of a score: the last bucket whose first score is not larger. */
static int64_t rank_of(const PooledScores *lists, int64_t g, double score) {
    const int64_t *order = lists->order.at + g * lists->order.columns;
    int64_t low = 0, high = lists->in_use.at[g] - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (counts_of(lists, bucket_at(lists, g, order[middle])).scores[0] <= score)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Move the upper half of a full bucket to a free bucket, which follows it in `order`; return the new bucket. */
static int64_t split(const PooledScores *lists, int64_t g, int64_t rank) {
    int64_t *order = lists->order.at + g * lists->order.columns, last = lists->in_use.at[g]++;
    int64_t unused = order[last];
    for (int64_t r = last; r > rank + 1; r--) order[r] = order[r - 1];
    order[rank + 1] = unused;
    int64_t bucket = bucket_at(lists, g, order[rank]), after = bucket_at(lists, g, unused);
    int64_t length = lists->lengths.at[bucket], half = length / 2;
    Counts from = counts_of(lists, bucket), to = counts_of(lists, after);
    for (int64_t i = half; i < length; i++) {
        to.scores[i - half] = from.scores[i];
        to.totals[i - half] = from.totals[i];
        to.hits[i - half] = from.hits[i];
    }
    lists->lengths.at[bucket] = half;
    lists->lengths.at[after] = length - half;
    return after;
}

static void free_bucket(const PooledScores *lists, int64_t g, int64_t rank) {
    int64_t *order = lists->order.at + g * lists->order.columns, last = --lists->in_use.at[g];
    int64_t b = order[rank];
    for (int64_t r = rank; r < last; r++) order[r] = order[r + 1];
    order[last] = b;
}

/* Move the counts from place `from` up to `stop` to place `to`. */
static void move(Counts counts, int64_t from, int64_t stop, int64_t to) {
    size_t n = (size_t)(stop - from);
    memmove(counts.scores + to, counts.scores + from, n * sizeof *counts.scores);
    memmove(counts.totals + to, counts.totals + from, n * sizeof *counts.totals);
    memmove(counts.hits + to, counts.hits + from, n * sizeof *counts.hits);
}

/* Fill the empty list g with ascending distinct scores, `filled` in each bucket. */
static void fill(const PooledScores *lists, int64_t g, Counts counts, int64_t n, int64_t filled) {
    for (int64_t i = 0; i < n; i++) {
        int64_t b = i / filled, at = i % filled, bucket = bucket_at(lists, g, b);
        Counts to = counts_of(lists, bucket);
        to.scores[at] = counts.scores[i];
        to.totals[at] = counts.totals[i];
        to.hits[at] = counts.hits[i];
        lists->lengths.at[bucket] = at + 1;
        lists->sizes.at[g] += counts.totals[i];
        lists->in_use.at[g] = b + 1;
    }
    for (int64_t b = 0; b < lists->in_use.at[g]; b++) pool(lists, bucket_at(lists, g, b));
}

/* Add an example to list g, positive if `hit` is 1; the list must have room for it. */
static void pooled_insert(const PooledScores *lists, int64_t g, double score, int64_t hit) {
    int64_t rank = rank_of(lists, g, score);
    int64_t bucket = bucket_at(lists, g, lists->order.at[g * lists->order.columns + rank]);
    Counts counts = counts_of(lists, bucket);
    int64_t at = lower_bound(counts.scores, lists->lengths.at[bucket], score);
    lists->sizes.at[g]++;
    /* 1. An existing score. */
    if (at < lists->lengths.at[bucket] && counts.scores[at] == score) {
        counts.totals[at]++;
        counts.hits[at] += hit;
        pool(lists, bucket);
        return;
    }
    /* 2. Split a full bucket; continue in the half to which the score belongs. */
    if (lists->lengths.at[bucket] == lists->scores.columns) {
        int64_t after = split(lists, g, rank);
        if (at > lists->lengths.at[bucket]) {
            pool(lists, bucket);
            at -= lists->lengths.at[bucket];
            bucket = after;
            counts = counts_of(lists, bucket);
        } else {
            pool(lists, after);
        }
    }
    /* 3. A new score. */
    move(counts, at, lists->lengths.at[bucket], at + 1);
    counts.scores[at] = score;
    counts.totals[at] = 1;
    counts.hits[at] = hit;
    lists->lengths.at[bucket]++;
    pool(lists, bucket);
}

/* Remove an example from list g; it must be there. */
static void pooled_remove(const PooledScores *lists, int64_t g, double score, int64_t hit) {
    int64_t rank = rank_of(lists, g, score);
    int64_t bucket = bucket_at(lists, g, lists->order.at[g * lists->order.columns + rank]);
    Counts counts = counts_of(lists, bucket);
    int64_t at = lower_bound(counts.scores, lists->lengths.at[bucket], score);
    lists->sizes.at[g]--;
    counts.totals[at]--;
    counts.hits[at] -= hit;
    if (counts.totals[at] == 0) {
        move(counts, at + 1, lists->lengths.at[bucket], at);
        lists->lengths.at[bucket]--;
    }
    if (lists->lengths.at[bucket] == 0 && lists->in_use.at[g] > 1) free_bucket(lists, g, rank);
    pool(lists, bucket);
}

/* Return the mean of the block around an example with its ties, `hit` positive among `total`, after pooling it with the
blocks below and above. */
static double pooled_outwards(Stack below, Stack above, int64_t hit, int64_t total) {
    int64_t i = below.top, j = above.top;
    for (;;) {
        if (i >= 0 && below.hits[i] * total >= hit * below.totals[i]) {
            hit += below.hits[i];
            total += below.totals[i];
            i--;
        } else if (j >= 0 && above.hits[j] * total >= (total - hit) * above.totals[j]) {
            hit += above.totals[j] - above.hits[j];
            total += above.totals[j];
            j--;
        } else {
            return (double)hit / (double)total;
        }
    }
}

/* Write p0 and p1 to `pair`: the isotonic values at `score` with an added negative and an added positive example.

`work` has four rows of `room` integers, more than the number of examples in the list. */
static void isotonic_pair(const PooledScores *lists, int64_t g, double score, int64_t *work, int64_t room,
                          double pair[2]) {
    const int64_t *order = lists->order.at + g * lists->order.columns;
    int64_t rank = rank_of(lists, g, score), width = lists->scores.columns;
    int64_t bucket = bucket_at(lists, g, order[rank]), length = lists->lengths.at[bucket];
    Counts counts = counts_of(lists, bucket);
    int64_t at = lower_bound(counts.scores, length, score);
    bool has_tie = at < length && counts.scores[at] == score;
    /* 1. Stack the blocks below the score, the nearest on top. */
    Stack below = {work, work + room, -1};
    for (int64_t r = 0; r < rank; r++) {
        int64_t c = bucket_at(lists, g, order[r]);
        const int64_t *hits = lists->block_hits.at + c * width, *totals = lists->block_totals.at + c * width;
        for (int64_t i = 0; i < lists->blocks.at[c]; i++) push(&below, hits[i], totals[i]);
    }
    for (int64_t i = 0; i < at; i++) push(&below, counts.hits[i], counts.totals[i]);
    /* 2. Stack the blocks above the score, the nearest on top, counting negatives instead of positives. */
    Stack above = {work + 2 * room, work + 3 * room, -1};
    for (int64_t r = lists->in_use.at[g] - 1; r > rank; r--) {
        int64_t c = bucket_at(lists, g, order[r]);
        const int64_t *hits = lists->block_hits.at + c * width, *totals = lists->block_totals.at + c * width;
        for (int64_t i = lists->blocks.at[c] - 1; i >= 0; i--) push(&above, totals[i] - hits[i], totals[i]);
    }
    for (int64_t i = length - 1; i > at - 1 + has_tie; i--)
        push(&above, counts.totals[i] - counts.hits[i], counts.totals[i]);
    /* 3. The example with its ties, for either label. */
    int64_t hits = has_tie ? counts.hits[at] : 0, total = has_tie ? counts.totals[at] : 0;
    for (int64_t label = 0; label < 2; label++) pair[label] = pooled_outwards(below, above, label + hits, 1 + total);
}

static void call_fill(const Slot *a, Slot *r) {
    (void)r;
    PooledScores lists = pooled_scores_of(a);
    a += POOLED_SCORES_SLOTS;
    Counts counts = {a[1].vector.at, a[2].int_vector.at, a[3].int_vector.at};
    fill(&lists, a[0].integer, counts, a[1].vector.n, a[4].integer);
}

static void call_insert(const Slot *a, Slot *r) {
    (void)r;
    PooledScores lists = pooled_scores_of(a);
    a += POOLED_SCORES_SLOTS;
    pooled_insert(&lists, a[0].integer, a[1].real, a[2].integer);
}

static void call_remove(const Slot *a, Slot *r) {
    (void)r;
    PooledScores lists = pooled_scores_of(a);
    a += POOLED_SCORES_SLOTS;
    pooled_remove(&lists, a[0].integer, a[1].real, a[2].integer);
}

static void call_isotonic_pair(const Slot *a, Slot *r) {
    (void)r;
    PooledScores lists = pooled_scores_of(a);
    a += POOLED_SCORES_SLOTS;
    isotonic_pair(&lists, a[0].integer, a[1].real, a[2].int_matrix.at, a[2].int_matrix.columns, a[3].vector.at);
}

/* Scores and labels in order of arrival. */
typedef struct {
    Matrix scores;
    IntVector codes;
} ScoredRows;

typedef void (*Change)(const PooledScores *lists, int64_t g, double score, int64_t hit);

/* Add or remove an example of a known class: list g is that class against the rest, a single list is class 1. */
static void change_all(Change change, const PooledScores *lists, ScoredRows rows, int64_t i) {
    int64_t n_lists = rows.scores.columns;
    for (int64_t g = 0; g < n_lists; g++) {
        int64_t positive = n_lists == 1 ? 1 : g;
        change(lists, g, rows.scores.at[i * n_lists + g], rows.codes.at[i] == positive);
    }
}

/* Answer and add rows in turn; return how many of the held examples left.

`held` are `size` held examples, followed by those that are added. `work` is scratch for `isotonic_pair`. */
static int64_t answer(ScoredRows rows, int64_t size, ScoredRows held, int64_t limit, int64_t n_known,
                      const PooledScores *lists, IntMatrix work, double *pairs, int64_t *sizes) {
    int64_t gone = 0, n_lists = rows.scores.columns;
    for (int64_t i = 0; i < rows.codes.n; i++) {
        /* 1. Answer: the isotonic values for either label of this example, class by class. */
        sizes[i] = lists->sizes.at[0];
        for (int64_t g = 0; g < n_lists; g++) {
            int64_t at = i * n_lists + g;
            isotonic_pair(lists, g, rows.scores.at[at], work.at, work.columns, pairs + 2 * at);
        }
        if (rows.codes.at[i] < 0) continue;
        /* 2. Add the row to the calibration set. */
        if (rows.codes.at[i] < n_known) change_all(pooled_insert, lists, rows, i);
        size++;
        /* 3. Remove the oldest example if the window is full. */
        if (limit >= 0 && size - gone > limit) {
            if (held.codes.at[gone] < n_known) change_all(pooled_remove, lists, held, gone);
            gone++;
        }
    }
    return gone;
}

static void call_answer(const Slot *a, Slot *r) {
    ScoredRows rows = {a[0].matrix, a[1].int_vector}, held = {a[2].matrix, a[3].int_vector};
    PooledScores lists = pooled_scores_of(a + 7);
    const Slot *written = a + 7 + POOLED_SCORES_SLOTS;
    r->integer = answer(rows, a[4].integer, held, a[5].integer, a[6].integer, &lists, written[0].int_matrix,
                        written[1].cube.at, written[2].int_vector.at);
}

static void call_write_two_classes(const Slot *a, Slot *r) {
    (void)r;
    const double *pairs = a[0].cube.at;
    double *point = a[1].matrix.at, *lower = a[2].matrix.at, *upper = a[3].matrix.at;
    for (int64_t i = 0; i < 2 * a[1].matrix.rows; i += 2) {
        double p0 = pairs[i], p1 = pairs[i + 1], mean = 0.5 * (p0 + p1);
        point[i] = 1.0 - mean;
        point[i + 1] = mean;
        lower[i] = 1.0 - p1;
        lower[i + 1] = p0;
        upper[i] = 1.0 - p0;
        upper[i + 1] = p1;
    }
}

const Kernel venn_growing_venn_abers_kernels[] = {
    {"venn.growing_venn_abers._fill",
     POOLED_SCORES " g: int<G scores: f64[n] totals: i64[n] hits: i64[n] filled: int<=W", call_fill, false},
    {"venn.growing_venn_abers.insert", POOLED_SCORES " g: int<G score: float hit: int", call_insert, false},
    {"venn.growing_venn_abers.remove", POOLED_SCORES " g: int<G score: float hit: int", call_remove, false},
    {"venn.growing_venn_abers.isotonic_pair", POOLED_SCORES " g: int<G score: float work: =i64[4,*] pair: =f64[2]",
     call_isotonic_pair, false},
    {"venn.growing_venn_abers._answer",
     "rows: (scores: f64[m,G] codes: i64[m]) held: (scores: f64[N,G] codes: i64[N] size: int<=N limit: int)"
     " n_known: int " POOLED_SCORES " work: =i64[4,N+1] found: (pairs: =f64[m,G,2] sizes: =i64[m]) -> int",
     call_answer, true},
    {"venn.growing_venn_abers._write_two_classes",
     "pairs: f64[m,1,2] point: =f64[m,2] lower: =f64[m,2] upper: =f64[m,2]", call_write_two_classes, false},
    {0},
};
