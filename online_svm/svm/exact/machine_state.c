#include "svm/exact/machine_state.h"

#include <string.h>

#include "compiled/extremes.h"
#include "compiled/floats.h"
#include "compiled/ordered_sums.h"

Bank bank_from(const Slot *a) {
    const Slot *own = a + ROWS_SLOTS;
    return (Bank){
        .rows = rows_from(a),
        .codes = own[0].int_vector,
        .arrival = own[1].int_vector,
        .z = own[2].matrix,
        .lower = own[3].matrix,
        .upper = own[4].matrix,
        .weights = own[5].matrix,
        .beta = own[6].matrix,
        .members = own[7].matrix,
        .sums = own[8].matrix,
        .F = own[9].matrix,
        .R = own[10].matrix,
        .b = own[11].vector,
        .before = own[12].matrix,
        .work = own[13].matrix,
        .active = active_from(own + 14),
    };
}

Spans spans(const Rows *rows) {
    const int64_t *rings = rows->rings;
    int64_t train = rings[TRAIN_SIZE];
    return (Spans){lesser_int(rings[TRAIN_TAIL], train), train, train + lesser_int(rings[SEEN_TAIL], rings[SEEN_SIZE])};
}

static inline void add_part(double *F, double change, Row row, int64_t first, int64_t stop) {
    for (int64_t i = first; i < stop; i++) F[i] = multiply_add(change, value_at(row, i), F[i]);
}

void add_row(double *F, double change, Row row, int64_t first, int64_t stop) {
    if (row.type == FLOAT32)
        add_part(F, change, float_row(row), first, stop);
    else
        add_part(F, change, double_row(row), first, stop);
}

/* ---- Sums from the coefficients alone ---- */

static bool has_weight(Matrix weights, int64_t slot) {
    for (int64_t w = 0; w < weights.rows; w++)
        if (row_in(weights, w)[slot] != 0.0) return true;
    return false;
}

/* Add `weight` times the columns of a kernel row in the ranges, one after the other, to a lane. */
static void add_to_lane(double *lane, double weight, Row row, int64_t ranges[4][2]) {
    for (int r = 0; r < 4; r++) {
        int64_t first = ranges[r][0], n = ranges[r][1] - first;
        add_row(lane, weight, row_from(row, first), 0, n);
        lane += n;
    }
}

/* Set the sums of the `count` points in the ranges, from the rows of the points with a nonzero weight. */
static void sum_by_support(const Bank *bank, int64_t ranges[4][2], int64_t count, int64_t span, double *lanes) {
    Matrix weights = bank->weights, sums = bank->sums;
    int64_t each = LANES * count;
    memset(lanes, 0, (size_t)(weights.rows * each) * sizeof *lanes);
    /* 1. Add the row of each weighted point to its lane. */
    for (int64_t j = 0; j < span; j++) {
        if (!has_weight(weights, j)) continue;
        Row row = cached_row(&bank->rows, fetch(&bank->rows, j, 2));
        for (int64_t w = 0; w < weights.rows; w++) {
            double weight = row_in(weights, w)[j];
            if (weight != 0.0) add_to_lane(lanes + w * each + j % LANES * count, weight, row, ranges);
        }
    }
    /* 2. Sum over the lanes. */
    for (int64_t w = 0; w < weights.rows; w++) {
        const double *sum = lanes + w * each;
        sum_rows_of_lanes(lanes + w * each, count);
        for (int r = 0; r < 4; r++)
            for (int64_t slot = ranges[r][0]; slot < ranges[r][1]; slot++) row_in(sums, w)[slot] = *sum++;
    }
}

/* Return the kernel row of a point over the first `span` training slots. The row of a training point is cached, because
other rows will need its values; else it is in scratch. */
static Row row_of_point(const Rows *rows, int64_t slot, int64_t span) {
    if (slot < rows->rings[TRAIN_SIZE]) return cached_row(rows, fetch(rows, slot, 1));
    const double *x = rows->points.at + slot * rows->points.columns;
    if (rows->row.type == FLOAT32)
        kernel_row_floats(rows->shape, rows->X, x, 0, span, rows->row.at);
    else
        kernel_row(rows->shape, rows->X, x, 0, span, rows->row.at);
    return (Row){rows->row.at, rows->row.type};
}

/* Set the same sums, with the terms in the same order, from the rows of the points in the ranges. */
static void sum_by_point(const Bank *bank, int64_t ranges[4][2], int64_t span) {
    for (int r = 0; r < 4; r++)
        for (int64_t slot = ranges[r][0]; slot < ranges[r][1]; slot++) {
            Row row = row_of_point(&bank->rows, slot, span);
            for (int64_t w = 0; w < bank->weights.rows; w++) {
                double lanes[LANES] = {0.0};
                const double *weights = row_in(bank->weights, w);
                if (row.type == FLOAT32)
                    add_floats_to_lanes(row.at, weights, span, lanes);
                else
                    add_to_lanes(row.at, weights, span, lanes);
                row_in(bank->sums, w)[slot] = sum_of_lanes(lanes);
            }
        }
}

void sum_from(const Bank *bank, int64_t first_training, int64_t first_observer, double *lanes) {
    const int64_t *rings = bank->rows.rings;
    int64_t ranges[4][2];
    columns_since(rings, first_training, first_observer, ranges);
    int64_t count = rings[TRAIN_TAIL] - first_training + rings[SEEN_TAIL] - first_observer;
    int64_t span = spans(&bank->rows).span, support = 0;
    if (count > FEW)
        for (int64_t j = 0; j < span; j++) support += has_weight(bank->weights, j);
    if (count <= FEW || support > 4 * count)
        sum_by_point(bank, ranges, span);
    else
        sum_by_support(bank, ranges, count, span, lanes); /* the rows of the support vectors will be needed anyway */
}

/* ---- Bounds, observers, members ---- */

void bound_point(const Bank *bank, int64_t slot, const double *penalties) {
    int64_t machines = bank->b.n, first = machines == 1 ? 1 : 0;
    double penalty = penalties[bank->codes.at[slot]];
    for (int64_t s = 0; s < machines; s++) {
        bool is_positive = bank->codes.at[slot] == s + first;
        row_in(bank->z, s)[slot] = is_positive ? 1.0 : -1.0;
        row_in(bank->lower, s)[slot] = is_positive ? 0.0 : -penalty;
        row_in(bank->upper, s)[slot] = is_positive ? penalty : 0.0;
    }
}

void update_observers(const Bank *bank) {
    Spans in_use = spans(&bank->rows);
    for (int64_t j = 0; j < in_use.span; j++) {
        int64_t place = -1;
        for (int64_t s = 0; s < bank->b.n; s++) {
            double *before = row_in(bank->before, s), beta = row_in(bank->beta, s)[j], change = beta - before[j];
            if (change != 0.0 && in_use.first < in_use.stop) {
                if (place < 0) place = fetch(&bank->rows, j, 2);
                add_row(row_in(bank->F, s), change, cached_row(&bank->rows, place), in_use.first, in_use.stop);
            }
            before[j] = beta;
        }
    }
}

void set_member(const Bank *bank, int64_t s, int64_t slot, bool is_member) {
    Row row = cached_row(&bank->rows, fetch(&bank->rows, slot, 2));
    row_in(bank->members, s)[slot] = is_member ? 1.0 : 0.0;
    double change = is_member ? 1.0 : -1.0, *R = row_in(bank->R, s);
    Spans in_use = spans(&bank->rows);
    add_row(R, change, row, 0, in_use.span);
    add_row(R, change, row, in_use.first, in_use.stop);
}

/* ---- Calls ---- */

static void call_set_bounds(const Slot *a, Slot *r) {
    (void)r;
    Bank bank = bank_from(a);
    a += BANK_SLOTS;
    for (int64_t i = 0; i < a[0].int_vector.n; i++) bound_point(&bank, a[0].int_vector.at[i], a[1].vector.at);
}

static void call_sum_afresh(const Slot *a, Slot *r) {
    (void)r;
    Bank bank = bank_from(a);
    sum_from(&bank, bank.rows.rings[TRAIN_HEAD], bank.rows.rings[SEEN_HEAD], a[BANK_SLOTS].cube.at);
}

static void call_ring_values(const Slot *a, Slot *r) {
    (void)r;
    Bank bank = bank_from(a);
    int64_t ring = a[BANK_SLOTS].integer, *rings = bank.rows.rings + 3 * ring, size = rings[2];
    Matrix values = a[BANK_SLOTS + 1].matrix;
    for (int64_t s = 0; s < values.columns; s++) {
        const double *F = row_in(bank.F, s) + ring * bank.rows.rings[TRAIN_SIZE];
        int64_t slot = rings[0] % size;
        for (int64_t i = 0; i < values.rows; i++) {
            values.at[i * values.columns + s] = F[slot] + bank.b.at[s];
            slot = slot + 1 < size ? slot + 1 : 0;
        }
    }
}

static void call_values_of(const Slot *a, Slot *r) {
    (void)r;
    Matrix F = a[0].matrix, values = a[3].matrix;
    const double *b = a[1].vector.at;
    const int64_t *slots = a[2].int_vector.at;
    for (int64_t i = 0; i < values.rows; i++)
        for (int64_t s = 0; s < values.columns; s++) values.at[i * values.columns + s] = row_in(F, s)[slots[i]] + b[s];
}

const Kernel svm_exact_machine_state_kernels[] = {
    {"svm.exact.machine_state._ring_values", BANK_ARGUMENT "observers: bool values: =f64[n,s]", call_ring_values,
     false},
    {"svm.exact.machine_state.set_bounds", BANK_ARGUMENT "slots: i64[n] penalties: f64[*]", call_set_bounds, false},
    {"svm.exact.machine_state._sum_afresh", BANK_ARGUMENT "lanes: =f64[2s,64,*]", call_sum_afresh, true},
    {"svm.exact.machine_state._values_of", "F: f64[s,w] b: f64[s] slots: i64[n] values: =f64[n,s]", call_values_of,
     false},
    {0},
};
