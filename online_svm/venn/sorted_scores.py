"""Lists of labelled scores kept in ascending order, for taxonomies that depend on the ranks."""

from typing import NamedTuple

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.types import Floats, Ints


class SortedScores(NamedTuple):
    """G lists, each with room for the same number of labelled scores.

    Attributes
    ----------
    scores : ndarray of shape (G, room)
        Ascending in the first `sizes[g]` places of row g. The order of equal scores has no
        meaning: what is computed from a list depends on its multiset alone.
    codes : ndarray of shape (G, room)
        Their label codes.
    sizes : ndarray of shape (G,)
    """

    scores: Floats
    codes: Ints
    sizes: Ints


def empty_lists(n_lists: int, room: int) -> SortedScores:
    """Return `n_lists` empty lists.

    Examples
    --------
    >>> empty_lists(2, 5).scores.shape
    (2, 5)
    """
    return SortedScores(
        np.zeros((n_lists, room)),
        np.zeros((n_lists, room), dtype=np.int64),
        np.zeros(n_lists, dtype=np.int64),
    )


def fill(lists: SortedScores, g: int, scores: Floats, codes: Ints) -> None:
    """Make list g the sorted form of `scores` and `codes`, each of shape (n,)."""
    order = np.argsort(scores, kind="stable")  # the order of ties is part of the state
    lists.scores[g, : len(scores)] = scores[order]
    lists.codes[g, : len(scores)] = codes[order]
    lists.sizes[g] = len(scores)


def with_room(lists: SortedScores, more: int) -> SortedScores:
    """Return lists that `more` scores can join: the same ones, or copies with room to spare.

    Examples
    --------
    >>> with_room(empty_lists(1, 5), 5).scores.shape, with_room(empty_lists(1, 5), 6).scores.shape
    ((1, 5), (1, 76))
    """
    need = int(lists.sizes.max()) + more
    if need <= lists.scores.shape[1]:
        return lists
    grown = empty_lists(len(lists.sizes), 2 * need + 64)
    for g, size in enumerate(lists.sizes.tolist()):
        grown.scores[g, :size] = lists.scores[g, :size]
        grown.codes[g, :size] = lists.codes[g, :size]
    grown.sizes[:] = lists.sizes
    return grown


@jit
def place(scores: Floats, size: int, score: float) -> int:
    """Return how many of the first `size` ascending `scores` are below `score`."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if scores[middle] < score:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def insert(lists: SortedScores, g: int, score: float, code: int) -> None:
    """Add a labelled score to list g, which has room for it."""
    scores, codes = lists.scores[g], lists.codes[g]
    at, size = place(scores, lists.sizes[g], score), lists.sizes[g]
    for i in range(size, at, -1):
        scores[i], codes[i] = scores[i - 1], codes[i - 1]
    scores[at], codes[at] = score, code
    lists.sizes[g] = size + 1


@jit
def remove(lists: SortedScores, g: int, score: float, code: int) -> None:
    """Take a labelled score, which is there, out of list g."""
    scores, codes = lists.scores[g], lists.codes[g]
    at, size = place(scores, lists.sizes[g], score), lists.sizes[g]
    while codes[at] != code:  # equal scores may carry several labels
        at += 1
    for i in range(at, size - 1):
        scores[i], codes[i] = scores[i + 1], codes[i + 1]
    lists.sizes[g] = size - 1
