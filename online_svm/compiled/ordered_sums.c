#include "compiled/ordered_sums.h"

#include "compiled/kernel.h"

static void call_dot(const Slot *a, Slot *r) {
    const Array *values = &a[0].array;
    if (values->type == FLOAT64) {
        r->real = dot(values->at, a[1].vector.at, values->shape[0]);
        return;
    }
    double lanes[LANES] = {0.0};
    add_floats_to_lanes(values->at, a[1].vector.at, values->shape[0], lanes);
    r->real = sum_of_lanes(lanes);
}

static void call_total(const Slot *a, Slot *r) { r->real = total(a->vector.at, a->vector.n); }

static void call_add_rows(const Slot *a, Slot *r) {
    (void)r;
    Matrix values = a[0].matrix;
    double *found = a[1].vector.at;
    for (int64_t i = 0; i < values.rows; i++)
        for (int64_t j = 0; j < values.columns; j++) found[j] += values.at[i * values.columns + j];
}

const Kernel compiled_ordered_sums_kernels[] = {
    {"compiled.ordered_sums.dot", "values: f32|f64[n] weights: f64[n] -> float", call_dot, false},
    {"compiled.ordered_sums.total", "values: f64[n] -> float", call_total, false},
    {"compiled.ordered_sums._add_rows", "values: f64[n,d] found: =f64[d]", call_add_rows, false},
    {0},
};
