/* The calibration of the probabilities of one event, from events sorted by probability.

Among equal probabilities, non-events come first. Example r of n (from 0) belongs to bin floor(n_bins r / n); a run of
equal probabilities belongs to the bin of its middle rank. */
#ifndef ONLINE_SVM_RELIABILITY_H
#define ONLINE_SVM_RELIABILITY_H

#include <stdint.h>

#include "compiled/kernel.h"

/* `SortedEvents` of Python: probabilities, and whether each event happened. */
typedef struct {
    const double *p;
    const bool *happened;
    int64_t n;
} SortedEvents;

#define SORTED_EVENTS "p: f64[n] happened: bool[n]"
enum { SORTED_EVENTS_SLOTS = 2 };

/* Read the events from the arguments declared by SORTED_EVENTS. */
static inline SortedEvents sorted_events_of(const Slot *a) {
    return (SortedEvents){a[0].vector.at, a[1].bool_vector.at, a[0].vector.n};
}

/* Return the position after the last example of the bin that starts at `begin`; p ascends, and 1 <= n_bins <= n. */
int64_t end_of_bin(const double *p, int64_t n, int64_t n_bins, int64_t begin);

enum { RELIABILITY_COLUMNS = 5 };

/* Write count, mean probability, frequency and consistency band of each equal-mass bin; return the number of bins.

`rows` has at least one row, for one bin each, and RELIABILITY_COLUMNS columns. A band covers the binomial distribution
except for probability `tail` at each end. `weights` is scratch for n + 1 numbers. */
int64_t bin_rows(SortedEvents events, double tail, Matrix rows, double *weights);

/* Return the debiased mean over equal-mass bins of (frequency - mean probability)^2; NaN for fewer than two events.

The number of bins is at most n_bins and at most half the number of events. */
double debiased_square(SortedEvents events, int64_t n_bins);

/* `CalibrationStatistics` of Python; z is NaN if all probabilities are 0, 1/2 or 1. */
typedef struct {
    double spiegelhalter_z, kolmogorov_smirnov, kuiper;
} CalibrationStatistics;

CalibrationStatistics calibration_statistics(SortedEvents events);

/* `BrierParts` of Python. */
typedef struct {
    double brier, miscalibration, discrimination, uncertainty;
} BrierParts;

/* Scratch for the cumulative sum diagram of n events and its links, n + 1 each. */
typedef struct {
    int64_t *totals, *positives, *links;
} DiagramRoom;

/* Split an array of shape (3, at least n + 1) into the scratch vectors. */
static inline DiagramRoom diagram_room_of(IntMatrix a) {
    return (DiagramRoom){a.at, a.at + a.columns, a.at + 2 * a.columns};
}

/* Return the parts; there must be at least one event. */
BrierParts brier_parts(SortedEvents events, DiagramRoom room);

#endif
