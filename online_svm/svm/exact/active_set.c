#include "svm/exact/active_set.h"

enum { LINE = 16 }; /* columns that are copied together */

ActiveSets active_from(const Slot *a) {
    return (ActiveSets){
        a[0].array,  a[1].int_matrix, a[2].int_matrix, a[3].int_matrix,
        a[4].matrix, a[5].matrix,     a[6].array,      a[7].int_matrix,
    };
}

ActiveSet set_of(const ActiveSets *sets, int64_t s) {
    int64_t places = sets->K.shape[1], columns = sets->K.shape[2];
    Row K = row_from((Row){sets->K.at, sets->K.type}, s * places * columns);
    return (ActiveSet){
        {(void *)K.at, {places, columns, 0}, K.type},
        {sets->slots.at + s * places, places},
        {sets->place.at + s * sets->place.columns, sets->place.columns},
        sets->counts.at + s * N_COUNTS,
        sets->margin.at + s,
        sets->bounds,
        sets->slacks,
        sets->chosen,
    };
}

/* Write a kernel value to K[a, c]. */
static inline void put(const Array *K, int64_t a, int64_t c, double value) {
    put_value(K->at, K->type, a * K->shape[1] + c, value);
}

/* Write the kernel values between `slot` and `slots` to row a of K, from the cache if possible. */
static void write_row(const Rows *rows, int64_t slot, const int64_t *slots, int64_t n, const Array *K, int64_t a) {
    const int64_t *row_of = rows->row_of.at;
    int64_t place = row_of[slot];
    if (place >= 0 && rows->known.at[2 * place] == rows->rings[TRAIN_TAIL]) {
        Row row = cached_row(rows, place);
        for (int64_t c = 0; c < n; c++) put(K, a, c, value_at(row, slots[c] < 0 ? 0 : slots[c])); /* unused if vacant */
        return;
    }
    int64_t d = rows->points.columns;
    for (int64_t c = 0; c < n; c++) {
        if (slots[c] == VACANT) continue;
        int64_t other = row_of[slots[c]];
        double value = other >= 0 && is_known(rows, other, slot)
                           ? value_at(cached_row(rows, other), slot)
                           : kernel_value(rows->shape, rows->points.at + slots[c] * d, rows->points.at + slot * d, d);
        put(K, a, c, value);
    }
}

/* Return the first vacant place from `first` on, or `n`. */
static int64_t next_vacant(const int64_t *slots, int64_t first, int64_t n) {
    for (int64_t a = first; a < n; a++)
        if (slots[a] == VACANT) return a;
    return n;
}

int64_t room(IntVector slots) {
    int64_t vacant = 0;
    for (int64_t a = 0; a < slots.n; a++) vacant += slots.at[a] == VACANT;
    return vacant;
}

void join(const ActiveSet *active, const Rows *rows, const int64_t *joining, int64_t n) {
    const Array *K = &active->K;
    Row values = {K->at, K->type};
    int64_t *slots = active->slots.at, *counts = active->counts;
    int64_t *places = active->chosen.at + active->chosen.columns;
    /* 1. Give each point the next vacant place. */
    int64_t last = -1;
    for (int64_t i = 0; i < n; i++) {
        places[i] = last = next_vacant(slots, last + 1, active->slots.n);
        slots[last] = joining[i];
        active->place.at[joining[i]] = last;
    }
    if (counts[SIZE] < last + 1) counts[SIZE] = last + 1;
    int64_t size = counts[SIZE];
    /* 2. Fill its row of the small kernel matrix. If many points join, their rows are cached first: a whole row takes
        less time than its part computed value by value. */
    for (int64_t i = 0; i < n; i++) {
        if (n > FEW) fetch(rows, joining[i], 1);
        write_row(rows, joining[i], slots, size, K, places[i]);
        put(K, places[i], places[i], rows->diagonal.at[joining[i]]);
    }
    /* 3. Copy the rows to the columns, a few columns at a time, so that the data stay in the processor's cache. */
    for (int64_t first = 0; first < size; first += LINE) {
        int64_t stop = size - first < LINE ? size : first + LINE;
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = first; c < stop; c++) put(K, c, places[i], value_at(values, places[i] * K->shape[1] + c));
    }
}

void leave(const ActiveSet *active, int64_t slot) {
    int64_t *slots = active->slots.at, *size = &active->counts[SIZE];
    slots[active->place.at[slot]] = VACANT;
    active->place.at[slot] = VACANT;
    while (*size > 0 && slots[*size - 1] == VACANT) --*size;
}

void tighten(const ActiveSet *active) {
    const Array *K = &active->K;
    Row values = {K->at, K->type};
    int64_t *slots = active->slots.at, *counts = active->counts;
    int64_t last = counts[SIZE] - 1, a = next_vacant(slots, 0, last + 1);
    if (a > last) return;
    int64_t slot = slots[last], from = last * K->shape[1];
    for (int64_t c = 0; c < last; c++) {
        put(K, a, c, value_at(values, from + c));
        put(K, c, a, value_at(values, from + c));
    }
    put(K, a, a, value_at(values, from + last));
    leave(active, slot);
    slots[a] = slot;
    active->place.at[slot] = a;
    if (counts[SIZE] < a + 1) counts[SIZE] = a + 1;
}

/* Put the training points of `slots`, shape (size,), in the places with the same indices. */
static void restore(const ActiveSet *active, const Rows *rows, const int64_t *slots, int64_t size) {
    Row values = {active->K.at, active->K.type};
    for (int64_t a = 0; a < size; a++) {
        active->slots.at[a] = slots[a];
        if (slots[a] == VACANT) continue;
        active->place.at[slots[a]] = a;
        write_row(rows, slots[a], active->slots.at, a, &active->K, a);
        for (int64_t c = 0; c < a; c++) put(&active->K, c, a, value_at(values, a * active->K.shape[1] + c));
        put(&active->K, a, a, rows->diagonal.at[slots[a]]);
    }
}

static void call_restore_active(const Slot *a, Slot *r) {
    (void)r;
    ActiveSets sets = active_from(a);
    Rows rows = rows_from(a + ACTIVE_SLOTS);
    IntMatrix slots = a[ACTIVE_SLOTS + ROWS_SLOTS].int_matrix;
    for (int64_t s = 0; s < slots.rows; s++) {
        ActiveSet active = set_of(&sets, s);
        restore(&active, &rows, slots.at + s * slots.columns, slots.columns);
    }
}

const Kernel svm_exact_active_set_kernels[] = {
    {"svm.exact.machine_state.restore_active", ACTIVE_ARGUMENT ROWS_ARGUMENT "slots: i64[s,*]", call_restore_active,
     true},
    {0},
};
