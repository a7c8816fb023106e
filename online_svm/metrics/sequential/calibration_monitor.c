/* The values that the calibration tests bet on: y - p of each row, overall and by part. */
#include "compiled/kernel.h"
#include <math.h>

/* Column of values for each test; -1 for unwatched parts. */
typedef struct {
    int64_t overall;
    IntVector of_class, of_category, of_bin;
} Columns;

/* For each row: class probabilities, the SVM's class, the true class and the category. */
typedef struct {
    Matrix point;
    const int64_t *own, *truth, *category;
} CalibrationRows;

/* Return the bin of a probability, among n equal-width bins. */
static int64_t bin_of(double p, int64_t n) {
    double place = p * (double)n;
    return place < (double)(n - 1) ? (place > 0.0 ? (int64_t)place : 0) : n - 1;
}

/* Fill y - p for the tests whose part contains the row. */
static void fill_row(double *values, const CalibrationRows *rows, int64_t i, bool of_second, const Columns *columns) {
    int64_t n_classes = rows->point.columns, own = rows->own[i], truth = rows->truth[i], category = rows->category[i];
    const double *point = rows->point.at + i * n_classes;
    /* 1. Overall and by class. */
    values[columns->overall] = (truth == own) - point[own];
    for (int64_t k = 0; k < n_classes; k++) {
        int64_t column = columns->of_class.at[k];
        if (column >= 0) values[column] = (truth == k) - point[k];
    }
    /* 2. By category and bin: for the second of two classes, or for the SVM's class if there are more. */
    int64_t chosen = of_second ? 1 : own;
    double value = (truth == chosen) - point[chosen];
    if (0 <= category && category < columns->of_category.n) {
        int64_t column = columns->of_category.at[category];
        if (column >= 0) values[column] = value;
    }
    int64_t column = columns->of_bin.at[bin_of(point[chosen], columns->of_bin.n)];
    if (column >= 0) values[column] = value;
}

static void call_fill(const Slot *a, Slot *r) {
    (void)r;
    Matrix values = a[0].matrix;
    CalibrationRows rows = {a[1].matrix, a[2].int_vector.at, a[3].int_vector.at, a[4].int_vector.at};
    Columns columns = {a[6].integer, a[7].int_vector, a[8].int_vector, a[9].int_vector};
    bool of_second = a[5].integer && rows.point.columns > 1;
    for (int64_t i = 0; i < values.rows * values.columns; i++) values.at[i] = NAN;
    for (int64_t i = 0; i < values.rows; i++) fill_row(values.at + i * values.columns, &rows, i, of_second, &columns);
}

const Kernel metrics_sequential_calibration_monitor_kernels[] = {
    {"metrics.sequential.calibration_monitor._fill",
     "values: =f64[m,w] answered: (point: f64[m,k] own: i64[m] truth: i64[m] category: i64[m]) of_second: bool"
     " columns: (overall: int<w of_class: i64[k] of_category: i64[c] of_bin: i64[b+1])",
     call_fill, false},
    {0},
};
