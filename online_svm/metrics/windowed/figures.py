"""Figures of the examples in a ring, compiled: of each class, and of each group of examples."""

import math
from typing import NamedTuple

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.metrics.calibration_error import debiased_square
from online_svm.metrics.corp import brier_parts
from online_svm.metrics.sorted_events import sort_keys
from online_svm.metrics.windowed.window_ring import (
    LOG_LOSS,
    LOWER,
    PROBABILITY,
    UPPER,
    WindowRing,
)
from online_svm.types import Bools, Floats, Ints

CALIBRATION_BINS = 15  # as of `squared_calibration_error`

# Figures of an event; BRIER to UNCERTAINTY are those of `BrierParts`, in its order.
BRIER, MISCALIBRATION, DISCRIMINATION, UNCERTAINTY, CALIBRATION_INDEX = range(5)
CALIBRATION_SQUARE = 5
EXPECTED, VARIANCE, HAPPENED, EXCESS, N_EVENT = range(6, 11)

# Figures of a group of examples; the first four are those of an event.
GROUP_SQUARE, GROUP_HITS, GROUP_LOWER, GROUP_PROBABILITY, GROUP_UPPER = range(4, 9)
GROUP_VARIANCE, GROUP_LOG_LOSS, GROUP_SIZE, N_GROUP = range(9, 13)


class Events(NamedTuple):
    """An event of each example, or several, each sorted as `SortedEvents` is.

    Attributes
    ----------
    order : ndarray of int of shape (n_events, m)
        The examples; of shape (n_events, 0) where nobody asks which they are.
    p : ndarray of shape (n_events, m)
        Their probabilities, in that order.
    happened : ndarray of bool of shape (n_events, m)
    """

    order: Ints
    p: Floats
    happened: Bools

    @classmethod
    def of(cls, keys: Ints, *, ordered: bool) -> "Events":
        """Return events in order of their keys, see `sort_keys`: these hold all but the order."""
        order = np.empty((len(keys), 0), dtype=np.int64)
        if ordered:
            order = np.argsort(keys, axis=1)
            keys = np.take_along_axis(keys, order, axis=1)
        else:
            keys.sort(axis=1)
        return cls(order, *_unpacked(keys))


def class_events(ring: WindowRing) -> Events:
    """Return the event of each class: that it is the true one. Of two classes only the last."""
    first = 1 if len(ring.classes) == 2 else 0
    keys = _class_keys(ring.point.view(np.int64), ring.truth, first, ring.held)
    return Events.of(keys, ordered=len(ring.codes) > 0)


def announced_events(ring: WindowRing) -> Events:
    """Return the event that the predicted label is right, as one of shape (1, m)."""
    held = ring.held
    hits = ring.truth[:held] == ring.label[:held]
    keys = sort_keys(ring.values[PROBABILITY, :held], hits)
    return Events.of(keys[None], ordered=len(ring.codes) > 0)


@jit
def _class_keys(bits: Ints, truth: Ints, first: int, held: int) -> Ints:
    """Return what `sort_keys` does for the bits of the probabilities of each class."""
    keys = np.empty((len(bits) - first, held), dtype=np.int64)
    for c in range(first, len(bits)):
        for i in range(held):
            keys[c - first, i] = (bits[c, i] << 1) | (truth[i] == c)
    return keys


@jit
def _unpacked(keys: Ints) -> tuple[Floats, Bools]:
    p = np.empty(keys.shape)
    happened = np.empty(keys.shape, dtype=np.bool_)
    bits = p.view(np.int64)
    for e in range(len(keys)):
        for i in range(keys.shape[1]):
            bits[e, i] = keys[e, i] >> 1
            happened[e, i] = keys[e, i] & 1
    return p, happened


@jit
def event_figures(p: Floats, happened: Bools) -> Floats:
    """Return the figures of each event, shape (n_events, N_EVENT), from those in order."""
    found = np.zeros((len(p), N_EVENT))
    for e in range(len(p)):
        of = found[e]
        parts = brier_parts(p[e], happened[e])
        for j in range(5):
            of[j] = parts[j]
        of[CALIBRATION_SQUARE] = debiased_square(p[e], happened[e], CALIBRATION_BINS)
        for i in range(p.shape[1]):
            of[EXPECTED] += p[e, i]
            of[VARIANCE] += p[e, i] * (1.0 - p[e, i])
            of[HAPPENED] += happened[e, i]
        of[EXCESS] = of[HAPPENED] - of[EXPECTED]
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
def add_events(found: Floats, codes: Ints, classes: Events, announced: Events) -> None:
    """Add the figures of events to those of groups: of the classes' events, and of the announced.

    What is in order as a whole is so in each group, so nothing is sorted again.
    """
    begin = np.zeros(len(found) + 1, dtype=np.int64)
    for g in range(len(found)):
        begin[g + 1] = begin[g] + int(found[g, GROUP_SIZE])
    p = np.empty(begin[-1])
    happened = np.empty(begin[-1], dtype=np.bool_)
    for e in range(len(classes.p)):
        _distribute(codes, begin, classes.order[e], classes.p[e], classes.happened[e], p, happened)
        for g in range(len(found)):
            if begin[g] < begin[g + 1]:
                parts = brier_parts(p[begin[g] : begin[g + 1]], happened[begin[g] : begin[g + 1]])
                for j in range(4):
                    found[g, j] += parts[j]
    order, said, was = announced
    _distribute(codes, begin, order[0], said[0], was[0], p, happened)
    for g in range(len(found)):
        found[g, GROUP_SQUARE] = debiased_square(
            p[begin[g] : begin[g + 1]], happened[begin[g] : begin[g + 1]], CALIBRATION_BINS
        )


@jit
def _distribute(
    codes: Ints, begin: Ints, order: Ints, p: Floats, happened: Bools, p_of: Floats, was: Bools
) -> None:
    """Copy examples in order, those of a group to begin[code] and after."""
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
