#include "svm/exact/kernel_cache.h"

enum { VECTORS = 32 }; /* columns that fill whole vectors; the ring capacities of a stream are multiples of it */

Rows rows_from(const Slot *a) {
    const Slot *b = a + KERNEL_SHAPE_SLOTS;
    return (Rows){
        .shape = kernel_shape_of(a),
        .X = b[0].matrix,
        .points = b[1].matrix,
        .diagonal = b[2].vector,
        .values = b[3].array,
        .row_of = b[4].int_vector,
        .owner = b[5].int_vector,
        .used = b[6].int_vector,
        .known = b[7].int_matrix,
        .rings = b[8].int_vector.at,
        .row = b[9].array,
    };
}

static const double *point_at(const Rows *rows, int64_t slot) { return rows->points.at + slot * rows->points.columns; }

static void set_value(const Rows *rows, int64_t place, int64_t column, double value) {
    int64_t at = place * rows->values.shape[1] + column;
    if (rows->values.type == FLOAT32)
        ((float *)rows->values.at)[at] = (float)value;
    else
        ((double *)rows->values.at)[at] = value;
}

/* Mark a row as the most recently used one. */
static void touch(const Rows *rows, int64_t place) { rows->used.at[place] = ++rows->rings[CLOCK]; }

/* Give `slot` a free or the least recently used place, and return it. */
static int64_t take_place(const Rows *rows, int64_t slot) {
    int64_t place = 0;
    for (int64_t r = 1; r < rows->used.n; r++)
        if (rows->used.at[r] < rows->used.at[place]) place = r;
    int64_t last_owner = rows->owner.at[place];
    if (last_owner >= 0) rows->row_of.at[last_owner] = -1;
    rows->owner.at[place] = slot;
    rows->row_of.at[slot] = place;
    return place;
}

/* The ordinal of the training point in a slot; an unused slot gives an ordinal before the oldest point. */
static int64_t ordinal_of(const int64_t *rings, int64_t slot) {
    int64_t last = rings[TRAIN_TAIL] - 1, size = rings[TRAIN_SIZE];
    return last - (last - slot + size) % size;
}

bool is_known(const Rows *rows, int64_t place, int64_t slot) {
    return ordinal_of(rows->rings, slot) < rows->known.at[2 * place];
}

/* Compute the columns from `first` to `stop` of one row, or copy them from the rows of these points.

Ranges of many columns are extended to whole vectors, because a remainder takes ten times as long. The extra columns
keep their values, or belong to slots that are not in use yet. */
static void fill(const Rows *rows, int64_t slot, int64_t place, int64_t first, int64_t stop) {
    const double *x = point_at(rows, slot);
    int64_t width = rows->values.shape[1];
    /* 1. Many columns: whole vectors of them, from the points. */
    if (stop - first > FEW) {
        int64_t begin = first - first % VECTORS, end = stop + (VECTORS - 1) - (stop + (VECTORS - 1)) % VECTORS;
        if (end > width) end = width;
        int64_t at = place * width + begin;
        if (rows->values.type == FLOAT32)
            kernel_row_floats(rows->shape, rows->X, x, begin, end, (float *)rows->values.at + at);
        else
            kernel_row(rows->shape, rows->X, x, begin, end, (double *)rows->values.at + at);
        return;
    }
    /* 2. Few columns: k(x_j, x) from the cached row of j if it has the value, else from the points. */
    for (int64_t j = first; j < stop; j++) {
        int64_t other = rows->row_of.at[j];
        double value = other >= 0 && is_known(rows, other, slot)
                           ? value_at(cached_row(rows, other), slot)
                           : kernel_value(rows->shape, x, point_at(rows, j), rows->points.columns);
        set_value(rows, place, j, value);
    }
}

/* Compute the missing columns of one ring; `known` is the ordinal of the first of them. */
static void fill_ring(const Rows *rows, int64_t slot, int64_t place, const int64_t *ring, int64_t offset,
                      int64_t *known) {
    int64_t head = ring[0], tail = ring[1], size = ring[2];
    int64_t begin = *known > head ? *known : head;
    while (begin < tail) { /* twice if the missing columns wrap around the ring */
        int64_t first = begin % size, stop = first + tail - begin;
        if (stop > size) stop = size;
        fill(rows, slot, place, offset + first, offset + stop);
        begin += stop - first;
    }
    *known = tail;
}

int64_t fetch(const Rows *rows, int64_t slot, int64_t rings_wanted) {
    int64_t *rings = rows->rings;
    /* 1. The place of the row; if it is not cached, it replaces the least recently used one. */
    int64_t place = rows->row_of.at[slot];
    if (place < 0) {
        place = take_place(rows, slot);
        rows->known.at[2 * place] = rings[TRAIN_HEAD];
        rows->known.at[2 * place + 1] = rings[SEEN_HEAD];
    }
    int64_t *known = rows->known.at + 2 * place;
    /* 2. Mark it as the most recently used row. */
    touch(rows, place);
    /* 3. The columns of points that arrived since its last use. */
    fill_ring(rows, slot, place, rings + TRAIN_HEAD, 0, known);
    if (rings_wanted > 1) fill_ring(rows, slot, place, rings + SEEN_HEAD, rings[TRAIN_SIZE], known + 1);
    return place;
}

/* Return whether a row is cached and lacks no columns but a few of training points. */
static bool lacks_few(const Rows *rows, int64_t place) {
    if (place < 0) return false;
    const int64_t *known = rows->known.at + 2 * place;
    return known[1] >= rows->rings[SEEN_TAIL] && known[0] >= rows->rings[TRAIN_TAIL] - FEW;
}

/* Copy the few missing columns of a row from the rows of these points; return whether all could be copied. */
static bool copy_columns(const Rows *rows, int64_t slot, int64_t place) {
    int64_t tail = rows->rings[TRAIN_TAIL], ordinal = ordinal_of(rows->rings, slot);
    for (int64_t q = rows->known.at[2 * place]; q < tail; q++) {
        int64_t column = q % rows->rings[TRAIN_SIZE], other = rows->row_of.at[column];
        if (other < 0 || rows->known.at[2 * other] <= ordinal) return false;
        set_value(rows, place, column, value_at(cached_row(rows, other), slot));
    }
    return true;
}

void bring_up(const Rows *rows, const int64_t *slots, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        int64_t place = rows->row_of.at[slots[i]];
        /* 1. Fetch a row that is absent or lacks many columns. */
        if (!lacks_few(rows, place)) {
            fetch(rows, slots[i], 2);
            continue;
        }
        /* 2. Otherwise, which is the usual case, copy its few missing columns. */
        touch(rows, place);
        if (!copy_columns(rows, slots[i], place)) fetch(rows, slots[i], 2);
        rows->known.at[2 * place] = rows->rings[TRAIN_TAIL];
    }
}

void columns_since(const int64_t *rings, int64_t first_training, int64_t first_observer, int64_t ranges[4][2]) {
    for (int64_t ring = 0; ring < 2; ring++) {
        /* 1. The first slot, and the end as if the ring did not wrap. */
        int64_t tail = rings[3 * ring + 1], size = rings[3 * ring + 2];
        int64_t offset = ring == 0 ? 0 : rings[TRAIN_SIZE], begin = ring == 0 ? first_training : first_observer;
        int64_t first = size > 0 ? begin % size : 0, end = first + tail - begin;
        /* 2. The range up to the end of the ring, and the range from its start. */
        ranges[2 * ring][0] = offset + first;
        ranges[2 * ring][1] = offset + (end < size ? end : size);
        ranges[2 * ring + 1][0] = offset;
        ranges[2 * ring + 1][1] = offset + (end > size ? end - size : 0);
    }
}

int64_t take_slot(int64_t *rings, int64_t tail) {
    int64_t offset = tail == TRAIN_TAIL ? 0 : rings[TRAIN_SIZE];
    return offset + rings[tail]++ % rings[tail + 1];
}

void drop_rows(const Rows *rows, const int64_t *slots, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        int64_t place = rows->row_of.at[slots[i]];
        if (place >= 0) rows->row_of.at[slots[i]] = rows->owner.at[place] = rows->used.at[place] = -1;
    }
}
