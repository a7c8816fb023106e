/* The calibration of the probabilities of one event: equal-mass bins, statistics, and the CORP decomposition. */
#include "metrics/reliability.h"

#include "calibration/diagram.h"
#include "compiled/extremes.h"
#include "compiled/kernel.h"
#include <math.h>

/* Return the position after the run of equal probabilities that starts at `begin`. */
static int64_t end_of_run(const double *p, int64_t n, int64_t begin) {
    int64_t end = begin + 1;
    while (end < n && p[end] == p[begin]) end++;
    return end;
}

int64_t end_of_bin(const double *p, int64_t n, int64_t n_bins, int64_t begin) {
    int64_t end = end_of_run(p, n, begin);
    int64_t bin = (begin + end - 1) * n_bins / (2 * n);
    while (end < n) {
        int64_t after = end_of_run(p, n, end);
        if ((end + after - 1) * n_bins >= 2 * n * (bin + 1)) break;
        end = after;
    }
    return end;
}

static void call_bin_ends(const Slot *a, Slot *r) {
    Vector p = a[0].vector;
    IntVector ends = a[1].int_vector;
    int64_t count = 0;
    for (int64_t begin = 0; begin < p.n && count < ends.n; begin = ends.at[count++])
        ends.at[count] = end_of_bin(p.at, p.n, ends.n, begin);
    r->integer = count;
}

#define NEGLIGIBLE 1e-20 /* smaller weights, relative to the mode's, do not change a sum */

enum { COUNT, PROBABILITY, FREQUENCY, LOWER, UPPER };

typedef struct {
    int64_t low, high;
} Range;

/* Return the quantiles of the binomial distribution at `tail` and 1 - `tail`: the smallest k whose distribution
function reaches the probability. Weights are relative to the mode, so that only negligible weights underflow. */
static Range binomial_range(int64_t n, double p, double tail, double *weights) {
    if (!(p > 0.0)) return (Range){0, 0};
    if (p >= 1.0) return (Range){n, n};
    /* 1. Weights from the mode to both sides, until they are negligible. */
    double odds = p / (1.0 - p), odds_against = (1.0 - p) / p;
    int64_t mode = lesser_int(n, (int64_t)floor((double)(n + 1) * p)), first = mode, last = mode;
    weights[mode] = 1.0;
    for (; first > 0 && weights[first] > NEGLIGIBLE; first--)
        weights[first - 1] = weights[first] * ((double)first * odds_against / (double)(n - first + 1));
    for (; last < n && weights[last] > NEGLIGIBLE; last++)
        weights[last + 1] = weights[last] * ((double)(n - last) * odds / (double)(last + 1));
    /* 2. Move inwards from both ends while the weights outside are within the tails. */
    double sum = 0.0;
    for (int64_t k = first; k <= last; k++) sum += weights[k];
    Range range = {first, last};
    double below = weights[first], above = 0.0;
    while (below < tail * sum && range.low < last) below += weights[++range.low];
    while (above + weights[range.high] <= tail * sum && range.high > first) above += weights[range.high--];
    return range;
}

static void write_row(SortedEvents events, int64_t begin, int64_t end, double tail, double *row, double *weights) {
    double count = (double)(end - begin), sum = 0.0;
    int64_t hits = 0;
    for (int64_t i = begin; i < end; i++) {
        sum += events.p[i];
        hits += events.happened[i];
    }
    double mean = lesser(1.0, sum / count); /* rounding can lift it above 1 */
    Range range = binomial_range(end - begin, mean, tail, weights);
    row[COUNT] = count;
    row[PROBABILITY] = mean;
    row[FREQUENCY] = (double)hits / count;
    row[LOWER] = (double)range.low / count;
    row[UPPER] = (double)range.high / count;
}

int64_t bin_rows(SortedEvents events, double tail, Matrix rows, double *weights) {
    int64_t count = 0, end;
    for (int64_t begin = 0; begin < events.n && count < rows.rows; begin = end) {
        end = end_of_bin(events.p, events.n, lesser_int(rows.rows, events.n), begin);
        write_row(events, begin, end, tail, rows.at + RELIABILITY_COLUMNS * count++, weights);
    }
    return count;
}

static void call_binomial_range(const Slot *a, Slot *r) {
    Range range = binomial_range(a[2].vector.n - 1, a[0].real, a[1].real, a[2].vector.at);
    r[0].integer = range.low;
    r[1].integer = range.high;
}

static void call_bin_rows(const Slot *a, Slot *r) {
    const Slot *others = a + SORTED_EVENTS_SLOTS;
    r->integer = bin_rows(sorted_events_of(a), others[0].real, others[1].matrix, others[2].vector.at);
}

/* Return count (mean residual)^2 of a bin, minus its expectation by chance: the sample variance of the residuals. */
static double debiased_square_of_bin(SortedEvents events, int64_t begin, int64_t end) {
    double count = (double)(end - begin), residual = 0.0, spread = 0.0;
    for (int64_t i = begin; i < end; i++) residual += events.happened[i] - events.p[i];
    double mean = residual / count;
    for (int64_t i = begin; i < end; i++) {
        double deviation = events.happened[i] - events.p[i] - mean;
        spread += deviation * deviation;
    }
    return count * mean * mean - spread / (count - 1.0);
}

double debiased_square(SortedEvents events, int64_t n_bins) {
    if (events.n < 2) return NAN;
    n_bins = n_bins < 1 ? 1 : lesser_int(n_bins, events.n / 2);
    double sum = 0.0;
    int64_t used = 0, end;
    for (int64_t begin = 0; begin < events.n; begin = end) {
        end = end_of_bin(events.p, events.n, n_bins, begin);
        if (end - begin < 2) continue; /* its variance is unknown */
        sum += debiased_square_of_bin(events, begin, end);
        used += end - begin;
    }
    return sum / (double)used;
}

static void call_debiased_square(const Slot *a, Slot *r) {
    r->real = debiased_square(sorted_events_of(a), a[SORTED_EVENTS_SLOTS].integer);
}

CalibrationStatistics calibration_statistics(SortedEvents events) {
    const double *p = events.p;
    double excess = 0.0, variance = 0.0, running = 0.0, low = 0.0, high = 0.0;
    for (int64_t i = 0; i < events.n; i++) {
        /* 1. Spiegelhalter's sum and its variance. */
        double residual = events.happened[i] - p[i], tilt = 1.0 - 2.0 * p[i];
        excess += residual * tilt;
        variance += tilt * tilt * p[i] * (1.0 - p[i]);
        /* 2. The extremes of the running sum, taken only after each run of equal probabilities. */
        running += residual;
        if (i + 1 == events.n || p[i] != p[i + 1]) {
            low = lesser(low, running);
            high = greater(high, running);
        }
    }
    double z = variance > 0.0 ? excess / sqrt(variance) : NAN, n = (double)events.n;
    return (CalibrationStatistics){z, greater(high, -low) / n, (high - low) / n};
}

static void call_cumulative_statistics(const Slot *a, Slot *r) {
    CalibrationStatistics found = calibration_statistics(sorted_events_of(a));
    r[0].real = found.spiegelhalter_z;
    r[1].real = found.kolmogorov_smirnov;
    r[2].real = found.kuiper;
}

/* Fill the cumulative sum diagram, one point after each run of equal probabilities; return the number of runs. */
static int64_t fill_diagram(SortedEvents events, DiagramRoom room) {
    int64_t runs = 0, hits = 0;
    room.totals[0] = room.positives[0] = 0;
    for (int64_t i = 0; i < events.n; i++) {
        runs += i == 0 || events.p[i] != events.p[i - 1];
        hits += events.happened[i];
        room.totals[runs] = i + 1;
        room.positives[runs] = hits;
    }
    return runs;
}

BrierParts brier_parts(SortedEvents events, DiagramRoom room) {
    double score = 0.0, recalibrated = 0.0;
    for (int64_t i = 0; i < events.n; i++) {
        double miss = events.p[i] - events.happened[i];
        score += miss * miss;
    }
    /* 1. Isotonic regression: the slopes of the greatest convex minorant of the diagram. */
    int64_t runs = fill_diagram(events, room);
    hull_links_of_counts(room.totals, room.positives, runs + 1, room.links);
    /* 2. Score of the recalibrated probabilities: k (m - k) / m for a block of m events of which k happened. */
    for (int64_t at = 0; at != runs; at = room.links[at]) {
        int64_t after = room.links[at];
        int64_t m = room.totals[after] - room.totals[at], k = room.positives[after] - room.positives[at];
        recalibrated += (double)(k * (m - k)) / (double)m;
    }
    /* 3. Score of the constant frequency. */
    int64_t k = room.positives[runs];
    double n = (double)events.n, constant = (double)(k * (events.n - k)) / n;
    /* Rounding can make a part slightly negative. */
    return (BrierParts){
        score / n,
        greater(0.0, score - recalibrated) / n,
        greater(0.0, constant - recalibrated) / n,
        constant / n,
    };
}

static void call_brier_parts(const Slot *a, Slot *r) {
    BrierParts parts = brier_parts(sorted_events_of(a), diagram_room_of(a[SORTED_EVENTS_SLOTS].int_matrix));
    r[0].real = parts.brier;
    r[1].real = parts.miscalibration;
    r[2].real = parts.discrimination;
    r[3].real = parts.uncertainty;
}

const Kernel metrics_reliability_kernels[] = {
    {"metrics.reliability._bin_ends", "p: f64[n] ends: =i64[b] -> int", call_bin_ends, false},
    {"metrics.reliability._binomial_range", "p: float tail: float weights: =f64[n+1] -> int int", call_binomial_range,
     false},
    {"metrics.reliability._bin_rows", SORTED_EVENTS " tail: float rows: =f64[b,5] weights: =f64[n+1] -> int",
     call_bin_rows, false},
    {"metrics.reliability.debiased_square", SORTED_EVENTS " n_bins: int -> float", call_debiased_square, false},
    {"metrics.reliability.cumulative_statistics", SORTED_EVENTS " -> float float float", call_cumulative_statistics,
     false},
    {"metrics.reliability._brier_parts", SORTED_EVENTS " diagram: =i64[3,n+1] -> float float float float",
     call_brier_parts, false},
    {0},
};
