/* Votes of nearest neighbours among the newest labelled examples. */
#include "compiled/elementary.h"
#include "compiled/kernel.h"
#include "compiled/kernels.h"

/* Neighbours of each vote, and the newest labelled examples among which they are found. `neighbours.py` repeats N_VOTES
and KEPT_EXAMPLES. */
enum { N_VOTES = 3, MAX_NEIGHBOURS = 10, KEPT_EXAMPLES = 1000, GROUP = 16 };
static const int64_t COUNTS[N_VOTES] = {5, 10, MAX_NEIGHBOURS}, MEMORIES[N_VOTES] = {100, 250, KEPT_EXAMPLES};

/* The nearest examples so far, sorted by distance, and their labels. */
typedef struct {
    int64_t held;
    double distances[MAX_NEIGHBOURS];
    int64_t labels[MAX_NEIGHBOURS];
} Nearest;

/* Whether one of GROUP distances is below `farthest`. */
static inline bool is_any_near(const double *distances, double farthest) {
    int64_t near = 0;
    for (int64_t k = 0; k < GROUP; k++) near |= distances[k] < farthest;
    return near != 0;
}

/* Return the next index, from `place` down to `stop`, of an example among the nearest; `stop` - 1 if there is none. */
static inline int64_t next_near(const Nearest *nearest, const double *distances, int64_t place, int64_t stop) {
    if (nearest->held < MAX_NEIGHBOURS) return place;
    double farthest = nearest->distances[MAX_NEIGHBOURS - 1];
    /* Most groups hold none: they are passed without a branch for each example. */
    while (place - stop >= GROUP && !is_any_near(distances + place - GROUP + 1, farthest)) place -= GROUP;
    while (place >= stop && !(distances[place] < farthest)) place--;
    return place;
}

/* Insert an example among the nearest; on equal distances the earlier insertion stays ahead. */
static void insert(Nearest *nearest, double distance, int64_t label) {
    int64_t at = nearest->held < MAX_NEIGHBOURS ? nearest->held++ : MAX_NEIGHBOURS - 1;
    for (; at > 0 && distance < nearest->distances[at - 1]; at--) {
        nearest->distances[at] = nearest->distances[at - 1];
        nearest->labels[at] = nearest->labels[at - 1];
    }
    nearest->distances[at] = distance;
    nearest->labels[at] = label;
}

/* Log-odds of the votes of the first `count` neighbours for a label; one extra vote is shared among the classes. */
static double log_odds(const Nearest *nearest, int64_t count, int64_t label, int64_t n_classes) {
    double votes = 1.0 / (double)n_classes;
    for (int64_t k = 0; k < count; k++) votes += nearest->labels[k] == label;
    return logit(votes / ((double)count + 1.0));
}

/* Write the log-odds of the votes of a row's neighbours, shape (N_VOTES, decisions), given its distances to `size`
examples, the oldest first. */
static void vote(const double *distances, const int64_t *labels, int64_t size, int64_t decisions, double *odds) {
    Nearest nearest = {0};
    int64_t place = size - 1;
    for (int64_t kind = 0; kind < N_VOTES; kind++, odds += decisions) {
        /* 1. The nearest examples within this memory; on equal distances the newest. */
        int64_t stop = size > MEMORIES[kind] ? size - MEMORIES[kind] : 0;
        while ((place = next_near(&nearest, distances, place, stop)) >= stop) {
            insert(&nearest, distances[place], labels[place]);
            place--;
        }
        /* 2. Their votes; with two classes those for the second. */
        int64_t count = nearest.held < COUNTS[kind] ? nearest.held : COUNTS[kind];
        if (decisions == 1)
            odds[0] = log_odds(&nearest, count, 1, 2);
        else
            for (int64_t s = 0; s < decisions; s++) odds[s] = log_odds(&nearest, count, s, decisions);
    }
}

/* Labelled examples, feature-major, the oldest first. */
typedef struct {
    Matrix points;
    int64_t *labels, size;
} HeldExamples;

/* Rows to answer: points, labels (-1: none), whether to write votes, and the log-odds that are written. */
typedef struct {
    Matrix points;
    const int64_t *columns;
    const bool *asks;
    Cube odds;
} VotedRows;

/* A labelled row joins the examples. */
static void join(HeldExamples *held, const double *x, int64_t label) {
    if (label < 0) return;
    for (int64_t f = 0; f < held->points.rows; f++) held->points.at[f * held->points.columns + held->size] = x[f];
    held->labels[held->size++] = label;
}

/* Write each row's votes to the last N_VOTES inputs of its odds; a labelled row then joins. Return the new size.

A few rows go over the examples together, a block at a time, so that a block is read from memory once for all of them.
Each row votes among the examples that had joined before it. */
static int64_t write_votes(HeldExamples held, VotedRows rows) {
    enum { ROOM = KEPT_EXAMPLES + ROWS_TOGETHER };
    double distances[ROWS_TOGETHER][ROOM];
    int64_t sizes[ROWS_TOGETHER], d = rows.points.columns;
    int64_t members = rows.odds.rows - N_VOTES, decisions = rows.odds.columns;
    for (int64_t top = 0; top < rows.points.rows; top += ROWS_TOGETHER) {
        int64_t count = rows.points.rows - top < ROWS_TOGETHER ? rows.points.rows - top : ROWS_TOGETHER;
        const double *x = rows.points.at + top * d;
        int64_t first = held.size > KEPT_EXAMPLES ? held.size - KEPT_EXAMPLES : 0;
        bool is_each_asked = true;
        /* 1. The rows join, each after its number of examples is noted. */
        for (int64_t i = 0; i < count; i++) {
            is_each_asked = is_each_asked && rows.asks[top + i];
            sizes[i] = held.size;
            join(&held, x + i * d, rows.columns[top + i]);
        }
        /* 2. Distances of each row to all of these examples. */
        for (int64_t start = first; start < held.size; start += BLOCK) {
            int64_t stop = held.size - start < BLOCK ? held.size : start + BLOCK;
            if (is_each_asked)
                squared_distances_of_rows(held.points, x, count, start, stop, distances[0] + (start - first), ROOM);
            for (int64_t i = 0; i < count && !is_each_asked; i++)
                if (rows.asks[top + i])
                    squared_distances(held.points, x + i * d, start, stop, distances[i] + (start - first));
        }
        /* 3. Votes, among the newest examples before the row. */
        for (int64_t i = 0; i < count; i++) {
            if (!rows.asks[top + i]) continue;
            int64_t oldest = sizes[i] > KEPT_EXAMPLES ? sizes[i] - KEPT_EXAMPLES : 0;
            double *odds = rows.odds.at + ((top + i) * rows.odds.rows + members) * decisions;
            vote(distances[i] + (oldest - first), held.labels + oldest, sizes[i] - oldest, decisions, odds);
        }
    }
    return held.size;
}

static void call_write_votes(const Slot *a, Slot *r) {
    HeldExamples held = {a[0].matrix, a[1].int_vector.at, a[2].integer};
    VotedRows rows = {a[3].matrix, a[4].int_vector.at, a[5].bool_vector.at, a[6].cube};
    r->integer = write_votes(held, rows);
}

const Kernel predictor_neighbours_kernels[] = {
    {"predictor.neighbours.write_votes",
     "held: (points: =f64[d,room] labels: =i64[room]) size: int<=room rows: f64[m,d] columns: i64[m] asks: bool[m]"
     " odds: =f64[m,members+3,s] -> int",
     call_write_votes, true},
    {0},
};
