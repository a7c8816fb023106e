"""Votes of nearest neighbours among the last labelled examples, each of which then joins them."""

import numpy as np

from online_svm.compiled.jit import inner, jit
from online_svm.compiled.kernels import squared_distances
from online_svm.compiled.logistic import logit
from online_svm.types import Bools, Floats, Ints

COUNTS, MEMORIES = np.array([5, 10, 10]), np.array([100, 250, 1000])
"""So many neighbours, of so many labelled examples: the last ones."""

KINDS = len(COUNTS)
KEPT = int(MEMORIES[-1])


@jit
def write_votes(
    held: tuple[Floats, Ints], size: int, rows: Floats, columns: Ints, asks: Bools, odds: Floats
) -> int:
    """Write the log-odds of the votes of each row's neighbours; a labelled row then joins them.

    Parameters
    ----------
    held : tuple of ndarray of shape (d, room) and ndarray of shape (room,)
        Labelled examples, the oldest first, and their labels; `size` of them.
    rows : ndarray of shape (m, d)
    columns : ndarray of shape (m,)
    asks : ndarray of bool, shape (m,)
        Whether there is anything to write of a row.
    odds : ndarray of shape (m, KINDS, S)

    Returns
    -------
    int
        The new number of examples.
    """
    points, labels = held
    most = COUNTS.max()
    distances, nearest, of = np.empty(KEPT), np.empty(most), np.empty(most, dtype=np.int64)
    for i in range(len(rows)):
        if asks[i]:
            first = max(0, size - KEPT)
            squared_distances(points, rows[i], first, size, distances[: size - first])
            _vote(distances, labels[first:size], (nearest, of), odds[i])
        if columns[i] >= 0:
            points[:, size] = rows[i]
            labels[size] = columns[i]
            size += 1
    return size


@inner
def _vote(distances: Floats, labels: Ints, found: tuple[Floats, Ints], odds: Floats) -> None:
    """Write the log-odds of the votes of a row's neighbours, given its distances to the examples.

    The arrays of `found` are written over.
    """
    (nearest, of), size = found, len(labels)
    decisions = odds.shape[1]
    classes, most = max(decisions, 2), len(nearest)
    held, place = 0, size - 1
    for kind in range(KINDS):
        # 1. The nearest, sorted, of the examples up to this memory; of equal ones the newest.
        while place >= max(0, size - MEMORIES[kind]):
            distance = distances[place]
            if held < most or distance < nearest[held - 1]:
                at = min(held, most - 1)
                while at > 0 and distance < nearest[at - 1]:
                    nearest[at], of[at] = nearest[at - 1], of[at - 1]
                    at -= 1
                nearest[at], of[at] = distance, labels[place]
                held = min(held + 1, most)
            place -= 1
        # 2. Their votes.
        count = min(held, COUNTS[kind])
        for s in range(decisions):
            votes = 1.0 / classes
            for k in range(count):
                votes += of[k] == (1 if decisions == 1 else s)
            odds[kind, s] = logit(votes / (count + 1.0))
