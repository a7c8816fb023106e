"""Figures of the examples in a ring, compiled: of each event, and of each group of examples."""

import math
from typing import NamedTuple

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.metrics.calibration_error import debiased_square
from online_svm.metrics.calibration_statistics import cumulative_statistics
from online_svm.metrics.corp import brier_parts
from online_svm.metrics.reliability import LEVEL, N_BINS, bin_rows
from online_svm.metrics.windowed.window_ring import LOG_LOSS, LOWER, PROBABILITY, UPPER, WindowRing
from online_svm.types import Bools, Floats, Ints


class Events(NamedTuple):
    """Events of the same examples, each sorted as `SortedEvents` is.

    Attributes
    ----------
    order : ndarray of int of shape (n_events, m)
        The examples.
    p : ndarray of shape (n_events, m)
        Their probabilities, in that order.
    happened : ndarray of bool of shape (n_events, m)
    """

    order: Ints
    p: Floats
    happened: Bools


def ring_keys(ring: WindowRing) -> Ints:
    """Return what `sort_keys` does, for each event of the examples in a ring, not sorted.

    Two classes have one event: that the last of them is the true one. More have one each, and last
    that the predicted label is right.
    """
    return _keys(
        ring.point.view(np.int64), ring.values.view(np.int64), ring.truth, ring.label, ring.held
    )


def ordered_events(keys: Ints) -> Events:
    """Return the events of keys in order."""
    order = np.argsort(keys, axis=1)
    return Events(order, *unpacked(np.take_along_axis(keys, order, axis=1)))


@jit
def _keys(point: Ints, values: Ints, truth: Ints, label: Ints, held: int) -> Ints:
    """Return the keys from the bits of the probabilities."""
    k = len(point)
    first = 1 if k == 2 else 0
    keys = np.empty((1 if k == 2 else k + 1, held), dtype=np.int64)
    for c in range(first, k):
        for i in range(held):
            keys[c - first, i] = (point[c, i] << 1) | (truth[i] == c)
    if k > 2:
        for i in range(held):
            keys[k, i] = (values[PROBABILITY, i] << 1) | (truth[i] == label[i])
    return keys


@jit
def unpacked(keys: Ints) -> tuple[Floats, Bools]:
    """Return the probabilities of keys, and whether the events happened.

    Examples
    --------
    >>> from online_svm.metrics.sorted_events import sort_keys
    >>> unpacked(sort_keys(np.array([0.25, 0.5]), np.array([False, True]))[None])
    (array([[0.25, 0.5 ]]), array([[False,  True]]))
    """
    p = np.empty(keys.shape)
    happened = np.empty(keys.shape, dtype=np.bool_)
    bits = p.view(np.int64)
    for e in range(len(keys)):
        for i in range(keys.shape[1]):
            bits[e, i] = keys[e, i] >> 1
            happened[e, i] = keys[e, i] & 1
    return p, happened


CALIBRATION_BINS = 15  # as of `squared_calibration_error`
TAIL = (1.0 - LEVEL) / 2.0

# Figures of an event; BRIER to CALIBRATION_INDEX are those of `BrierParts`, in its order.
BRIER, MISCALIBRATION, DISCRIMINATION, UNCERTAINTY, CALIBRATION_INDEX = range(5)
CALIBRATION_SQUARE = 5
EXPECTED, VARIANCE, HAPPENED, EXCESS, N_EVENT = range(6, 11)

# Figures of a group of examples; the first four are those of an event.
GROUP_SQUARE, GROUP_HITS, GROUP_LOWER, GROUP_PROBABILITY, GROUP_UPPER = range(4, 9)
GROUP_VARIANCE, GROUP_LOG_LOSS, GROUP_SIZE, N_GROUP = range(9, 13)


@jit
def window_figures(
    keys: Ints, values: Floats, truth: Ints, label: Ints, n_classes: int
) -> tuple[Floats, Floats, Floats, tuple[float, float, float]]:
    """Return all figures but those of slices, in one call: a call costs as much as some of them.

    Parameters
    ----------
    keys : ndarray of int of shape (n_events, m)
        Of `ring_keys`, sorted along each row.
    values, truth, label : ndarray
        Of the ring.
    n_classes : int

    Returns
    -------
    events : ndarray of shape (n_events, N_EVENT)
    by_label : ndarray of shape (n_classes, N_GROUP)
        Sums over the examples with each predicted label.
    bins : ndarray of shape (at most N_BINS, 5)
        Of the last event.
    statistics : (z, greatest, span)
        Of the last event, see `cumulative_statistics`.
    """
    p, happened = unpacked(keys)
    last = len(keys) - 1
    return (
        _event_figures(p, happened),
        group_figures(values, truth, label, label[: keys.shape[1]], n_classes),
        bin_rows(p[last], happened[last], N_BINS, TAIL),
        cumulative_statistics(p[last], happened[last]),
    )


@jit
def _event_figures(p: Floats, happened: Bools) -> Floats:
    found = np.zeros((len(p), N_EVENT))
    for e in range(len(p)):
        parts = brier_parts(p[e], happened[e])
        for j in range(5):
            found[e, j] = parts[j]
        found[e, CALIBRATION_SQUARE] = debiased_square(p[e], happened[e], CALIBRATION_BINS)
        expected, variance, count = 0.0, 0.0, 0
        for i in range(p.shape[1]):
            expected += p[e, i]
            variance += p[e, i] * (1.0 - p[e, i])
            count += happened[e, i]
        found[e, EXPECTED], found[e, VARIANCE], found[e, HAPPENED] = expected, variance, count
        found[e, EXCESS] = count - expected
    return found


@jit
def group_figures(values: Floats, truth: Ints, label: Ints, codes: Ints, n_codes: int) -> Floats:
    """Return sums over the examples of each code, shape (n_codes, N_GROUP); -1 is no group.

    Those of events stay 0.
    """
    found = np.zeros((n_codes, N_GROUP))
    for i in range(len(codes)):
        code = codes[i]
        if code >= 0:
            p = values[PROBABILITY, i]
            found[code, GROUP_SIZE] += 1
            found[code, GROUP_HITS] += truth[i] == label[i]
            found[code, GROUP_LOWER] += values[LOWER, i]
            found[code, GROUP_PROBABILITY] += p
            found[code, GROUP_UPPER] += values[UPPER, i]
            found[code, GROUP_VARIANCE] += p * (1.0 - p)
            found[code, GROUP_LOG_LOSS] += values[LOG_LOSS, i]
    return found


@jit
def add_events(found: Floats, codes: Ints, events: Events, n_classes: int) -> None:
    """Add to the figures of groups the parts of the Brier score and the calibration error.

    What is in order as a whole is so in each group, so nothing is sorted again.
    """
    begin = np.zeros(len(found) + 1, dtype=np.int64)
    for g in range(len(found)):
        begin[g + 1] = begin[g] + int(found[g, GROUP_SIZE])
    p = np.empty(begin[-1])
    happened = np.empty(begin[-1], dtype=np.bool_)
    last = len(events.p) - 1
    for e in range(last + 1):
        event = events.order[e], events.p[e], events.happened[e]
        _distribute(codes, begin, event, p, happened)
        for g in range(len(found)):
            said, was = p[begin[g] : begin[g + 1]], happened[begin[g] : begin[g + 1]]
            if len(said) and (n_classes == 2 or e < n_classes):
                parts = brier_parts(said, was)
                for j in range(4):
                    found[g, j] += parts[j]
            if e == last:
                found[g, GROUP_SQUARE] = debiased_square(said, was, CALIBRATION_BINS)


@jit
def _distribute(
    codes: Ints, begin: Ints, event: tuple[Ints, Floats, Bools], p_of: Floats, was: Bools
) -> None:
    """Copy examples in order, those of a group to begin[code] and after."""
    order, p, happened = event
    at = begin.copy()
    for i in range(len(order)):
        code = codes[order[i]]
        if code >= 0:
            p_of[at[code]], was[at[code]] = p[i], happened[i]
            at[code] += 1


def standardised(excess: float, variance: float) -> float | None:
    """Return an excess in standard deviations; None where there are none.

    Examples
    --------
    >>> standardised(3.0, 4.0), standardised(0.0, 0.0)
    (1.5, None)
    """
    return excess / math.sqrt(variance) if variance > 0.0 else None


def root(square: float) -> float | None:
    """Return the root of a debiased square, 0 where it is negative, None where it is NaN.

    Examples
    --------
    >>> root(0.25), root(-0.1), root(math.nan)
    (0.5, 0.0, None)
    """
    return None if math.isnan(square) else math.sqrt(max(0.0, square))
