/* Figures of the examples in a ring, by event and by group of examples. */
#include "compiled/extremes.h"
#include "compiled/floats.h"
#include "compiled/kernel.h"
#include "metrics/reliability.h"
#include "metrics/window_ring.h"

enum { CALIBRATION_BINS = 15 }; /* N_BINS in `scores.py` */

/* Figures of an event; the first are the fields of BrierParts. */
enum {
    BRIER,
    MISCALIBRATION,
    DISCRIMINATION,
    UNCERTAINTY,
    CALIBRATION_SQUARE,
    EXPECTED,
    VARIANCE,
    HAPPENED,
    EXCESS,
    N_EVENT,
};

/* Figures of a group of examples; the first four are the same as for an event. */
enum {
    GROUP_SQUARE = 4,
    GROUP_HITS,
    GROUP_LOWER,
    GROUP_PROBABILITY,
    GROUP_UPPER,
    GROUP_VARIANCE,
    GROUP_LOG_LOSS,
    GROUP_SIZE,
    N_GROUP,
};

/* The arrays of a ring, one column an example. */
typedef struct {
    Matrix values;
    IntVector truth, label;
} Held;

#define HELD "held: (values: f64[4,s] truth: i64[s] label: i64[s])"
enum { HELD_SLOTS = 3 };

static Held held_of(const Slot *a) { return (Held){a[0].matrix, a[1].int_vector, a[2].int_vector}; }

/* ---- Keys: integers in the order of the pairs (probability, outcome) ---- */

static int64_t key_of(double p, bool happened) { return (int64_t)((uint64_t)bits_of(p) << 1 | (uint64_t)happened); }

/* Two classes have one event: the second class is true. K > 2 classes have K + 1 events: class k is true, for each k,
and the predicted label is correct. */
static void call_keys(const Slot *a, Slot *r) {
    (void)r;
    Matrix point = a[0].matrix;
    Held held = held_of(a + 1);
    IntMatrix keys = a[1 + HELD_SLOTS].int_matrix;
    int64_t m = lesser_int(keys.columns, point.columns), first = point.rows == 2;
    for (int64_t e = 0; e < keys.rows; e++) {
        int64_t c = e + first, *of_event = keys.at + e * keys.columns;
        bool is_of_class = c < point.rows;
        const double *p =
            is_of_class ? point.at + c * point.columns : held.values.at + RING_PROBABILITY * held.values.columns;
        for (int64_t i = 0; i < m; i++)
            of_event[i] = key_of(p[i], held.truth.at[i] == (is_of_class ? c : held.label.at[i]));
    }
}

static void unpack(const int64_t *keys, int64_t n, double *p, bool *happened) {
    for (int64_t i = 0; i < n; i++) {
        p[i] = float_of(keys[i] >> 1);
        happened[i] = keys[i] & 1;
    }
}

static void call_unpack(const Slot *a, Slot *r) {
    (void)r;
    IntMatrix keys = a[0].int_matrix;
    unpack(keys.at, keys.rows * keys.columns, a[1].matrix.at, a[2].bool_matrix.at);
}

/* ---- All figures of a window ---- */

static void set_event_figures(double *row, SortedEvents events, DiagramRoom room) {
    BrierParts parts = brier_parts(events, room);
    double expected = 0.0, variance = 0.0;
    int64_t count = 0;
    for (int64_t i = 0; i < events.n; i++) {
        expected += events.p[i];
        variance += events.p[i] * (1.0 - events.p[i]);
        count += events.happened[i];
    }
    row[BRIER] = parts.brier;
    row[MISCALIBRATION] = parts.miscalibration;
    row[DISCRIMINATION] = parts.discrimination;
    row[UNCERTAINTY] = parts.uncertainty;
    row[CALIBRATION_SQUARE] = debiased_square(events, CALIBRATION_BINS);
    row[EXPECTED] = expected;
    row[VARIANCE] = variance;
    row[HAPPENED] = (double)count;
    row[EXCESS] = (double)count - expected;
}

/* Sum over the examples of each code, shape (n_codes, N_GROUP); code -1 is skipped. */
static void add_groups(Held held, IntVector codes, double *found) {
    const double *lower = held.values.at, *probability = lower + held.values.columns;
    const double *upper = probability + held.values.columns, *log_loss = upper + held.values.columns;
    int64_t m = lesser_int(codes.n, held.values.columns);
    for (int64_t i = 0; i < m; i++) {
        if (codes.at[i] < 0) continue;
        double *row = found + N_GROUP * codes.at[i], p = probability[i];
        row[GROUP_SIZE] += 1.0;
        row[GROUP_HITS] += held.truth.at[i] == held.label.at[i];
        row[GROUP_LOWER] += lower[i];
        row[GROUP_PROBABILITY] += p;
        row[GROUP_UPPER] += upper[i];
        row[GROUP_VARIANCE] += p * (1.0 - p);
        row[GROUP_LOG_LOSS] += log_loss[i];
    }
}

static void call_window_figures(const Slot *a, Slot *r) {
    IntMatrix keys = a[0].int_matrix;
    double tail = a[1].real;
    Held held = held_of(a + 2);
    const Slot *found = a + 2 + HELD_SLOTS, *scratch = found + 3;
    double *p = scratch[0].vector.at, *weights = scratch[3].vector.at;
    bool *happened = scratch[1].bool_vector.at;
    SortedEvents events = {p, happened, keys.columns};
    /* The scratch holds one event at a time; after the loop the last one remains, for bins and statistics. */
    for (int64_t e = 0; e < keys.rows; e++) {
        unpack(keys.at + e * keys.columns, keys.columns, p, happened);
        set_event_figures(found[0].matrix.at + N_EVENT * e, events, diagram_room_of(scratch[2].int_matrix));
    }
    add_groups(held, (IntVector){held.label.at, keys.columns}, found[1].matrix.at);
    r[0].integer = bin_rows(events, tail, found[2].matrix, weights);
    CalibrationStatistics statistics = calibration_statistics(events);
    r[1].real = statistics.spiegelhalter_z;
    r[2].real = statistics.kolmogorov_smirnov;
    r[3].real = statistics.kuiper;
}

/* ---- Groups ---- */

static void call_group_figures(const Slot *a, Slot *r) {
    (void)r;
    add_groups(held_of(a), a[HELD_SLOTS].int_vector, a[HELD_SLOTS + 1].matrix.at);
}

/* Set begin[g] to the number of examples in groups before group g. */
static void set_begins(IntVector codes, IntVector begin) {
    for (int64_t g = 0; g < begin.n; g++) begin.at[g] = 0;
    for (int64_t i = 0; i < codes.n; i++)
        if (codes.at[i] >= 0) begin.at[codes.at[i] + 1]++;
    for (int64_t g = 1; g < begin.n; g++) begin.at[g] += begin.at[g - 1];
}

/* Copy the examples of an event to their groups, in order: group g starts at begin[g]. `at` is scratch. */
static void distribute(IntVector codes, const int64_t *order, SortedEvents event, IntVector begin, int64_t *at,
                       double *p, bool *happened) {
    for (int64_t g = 0; g < begin.n; g++) at[g] = begin.at[g];
    for (int64_t i = 0; i < codes.n; i++) {
        int64_t code = codes.at[order[i]];
        if (code < 0) continue;
        p[at[code]] = event.p[i];
        happened[at[code]++] = event.happened[i];
    }
}

/* Add figures of each event to the groups. Groups inherit the sorted order of the event. */
static void call_add_events(const Slot *a, Slot *r) {
    (void)r;
    Matrix found = a[0].matrix;
    IntVector codes = a[1].int_vector, begin = a[8].int_vector;
    IntMatrix order = a[2].int_matrix;
    int64_t n_classes = a[5].integer;
    double *p = a[6].vector.at;
    bool *happened = a[7].bool_vector.at;
    DiagramRoom room = diagram_room_of(a[10].int_matrix);
    set_begins(codes, begin);
    for (int64_t e = 0; e < order.rows; e++) {
        int64_t row = e * order.columns;
        SortedEvents event = {a[3].matrix.at + row, a[4].bool_matrix.at + row, order.columns};
        distribute(codes, order.at + row, event, begin, a[9].int_vector.at, p, happened);
        for (int64_t g = 0; g < found.rows; g++) {
            int64_t first = begin.at[g];
            SortedEvents of_group = {p + first, happened + first, begin.at[g + 1] - first};
            double *figures = found.at + N_GROUP * g;
            if (of_group.n > 0 && (n_classes == 2 || e < n_classes)) {
                BrierParts parts = brier_parts(of_group, room);
                figures[BRIER] += parts.brier;
                figures[MISCALIBRATION] += parts.miscalibration;
                figures[DISCRIMINATION] += parts.discrimination;
                figures[UNCERTAINTY] += parts.uncertainty;
            }
            if (e == order.rows - 1) figures[GROUP_SQUARE] = debiased_square(of_group, CALIBRATION_BINS);
        }
    }
}

const Kernel metrics_windowed_validity_kernels[] = {
    {"metrics.windowed_validity._keys", "point: f64[k,s] " HELD " keys: =i64[e,m]", call_keys, false},
    {"metrics.windowed_validity._unpack", "keys: i64[e,m] p: =f64[e,m] happened: =bool[e,m]", call_unpack, false},
    {"metrics.windowed_validity._window_figures",
     "keys: i64[e+1,m] tail: float " HELD " found: (events: =f64[e+1,9] by_label: =f64[k,12] bins: =f64[b,5])"
     " scratch: (p: =f64[m] happened: =bool[m] diagram: =i64[3,m+1] weights: =f64[m+1])"
     " -> int float float float",
     call_window_figures, true},
    {"metrics.windowed_validity._group_figures", HELD " codes: i64[m] found: =f64[g,12]", call_group_figures, false},
    {"metrics.windowed_validity._add_events",
     "found: =f64[g,12] codes: i64[m] events: (order: i64[e,m] p: f64[e,m] happened: bool[e,m]) n_classes: int"
     " scratch: (p: =f64[m] happened: =bool[m] begin: =i64[g+1] at: =i64[g+1] diagram: =i64[3,m+1])",
     call_add_events, true},
    {0},
};
