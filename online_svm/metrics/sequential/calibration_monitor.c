/* The parts of each row that the calibration tests bet on, and what was announced there. */
#include "compiled/extremes.h"
#include "compiled/kernel.h"

#define SQUARED_ERRORS 2.25 /* 1.5 standard errors of a frequency are tolerated */

/* The columns of a row, and what each has; see `Columns` of Python. */
enum { OVERALL, BIN, CATEGORY, CLASSES };

typedef struct {
    IntMatrix cells;
    double *happened, *announced, *doubts;
} Cells;

/* Probabilities of the classes, the SVM's class, the true class, the category and its calibration examples. */
typedef struct {
    Matrix point;
    const int64_t *own, *truth, *category, *examples;
    IntMatrix slices;
} Rows;

/* Part of each category, bin, class and slice value; the last category and value stand for all later ones. */
typedef struct {
    IntVector of_category, of_bin;
    IntVector watched; /* index of each class with a part */
    const int64_t *of_class;
    IntMatrix of_slice;
} Columns;

/* Return the bin of a probability, among n equal-width bins. */
static int64_t bin_of(double p, int64_t n) {
    double place = p * (double)n;
    return place < (double)(n - 1) ? (place > 0.0 ? (int64_t)place : 0) : n - 1;
}

/* Write one cell: whether class k was true, and its probability. With `examples` < 0 no count is behind it. */
static void put(const Cells *into, int64_t at, int64_t part, const Rows *rows, int64_t i, int64_t k) {
    into->cells.at[at] = part;
    into->happened[at] = rows->truth[i] == k ? 1.0 : 0.0;
    into->announced[at] = rows->point.at[i * rows->point.columns + k];
    int64_t examples = rows->examples[i];
    into->doubts[at] = examples < 0 ? 0.0 : SQUARED_ERRORS / (double)greater_int(examples, 1);
}

static void fill_row(const Cells *into, const Rows *rows, int64_t i, bool is_binary, const Columns *columns) {
    int64_t at = i * into->cells.columns, own = rows->own[i], chosen = is_binary ? 1 : own;
    int64_t category = lesser_int(rows->category[i], columns->of_category.n - 1);
    /* 1. Overall; by bin and category of the second of two classes, or of the SVM's class. */
    put(into, at + OVERALL, 0, rows, i, own);
    double p = rows->point.at[i * rows->point.columns + chosen];
    put(into, at + BIN, columns->of_bin.at[bin_of(p, columns->of_bin.n)], rows, i, chosen);
    put(into, at + CATEGORY, category < 0 ? -1 : columns->of_category.at[category], rows, i, chosen);
    /* 2. By class: the probability of that class. By slice: as for bins. */
    int64_t classes = columns->watched.n;
    for (int64_t k = 0; k < classes; k++)
        put(into, at + CLASSES + k, columns->of_class[k], rows, i, columns->watched.at[k]);
    for (int64_t s = 0; s < rows->slices.columns; s++) {
        int64_t code = lesser_int(rows->slices.at[i * rows->slices.columns + s], columns->of_slice.columns - 1);
        int64_t part = code < 0 ? -1 : columns->of_slice.at[s * columns->of_slice.columns + code];
        put(into, at + CLASSES + classes + s, part, rows, i, chosen);
    }
}

static void call_fill(const Slot *a, Slot *r) {
    (void)r;
    Cells into = {a[0].int_matrix, a[1].matrix.at, a[2].matrix.at, a[3].matrix.at};
    Rows rows = {a[4].matrix,        a[5].int_vector.at, a[6].int_vector.at,
                 a[7].int_vector.at, a[8].int_vector.at, a[9].int_matrix};
    Columns columns = {a[10].int_vector, a[11].int_vector, a[12].int_vector, a[13].int_vector.at, a[14].int_matrix};
    bool is_binary = a[15].integer && rows.point.columns > 1;
    if (into.cells.columns < CLASSES + columns.watched.n + rows.slices.columns) return;
    for (int64_t i = 0; i < into.cells.rows; i++) fill_row(&into, &rows, i, is_binary, &columns);
}

const Kernel metrics_sequential_calibration_monitor_kernels[] = {
    {"metrics.sequential.calibration_monitor._fill",
     "cells: =i64[m,w] happened: =f64[m,w] announced: =f64[m,w] doubts: =f64[m,w]"
     " rows: (point: f64[m,k] own: i64[m] truth: i64[m] category: i64[m] examples: i64[m] slices: i64[m,s])"
     " columns: (of_category: i64[g+1] of_bin: i64[b+1] watched: i64[v] of_class: i64[v] of_slice: i64[s,u+1])"
     " is_binary: bool",
     call_fill, false},
    {0},
};
