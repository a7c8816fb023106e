"""Events of the examples in a ring: each of a probability, and whether it happened."""

from typing import NamedTuple

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.metrics.windowed.window_ring import PROBABILITY, WindowRing
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
