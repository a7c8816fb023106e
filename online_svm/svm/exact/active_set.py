"""The active set of each machine (shrinking): what a pair step may move, and its kernel matrix.

Most training points are far from the margin, and a step that adds or forgets a few examples leaves
them there. The others are *active*, and their kernel matrix is kept in one piece from one solve to
the next, so that a pair step passes over a few hundred numbers and not over the whole window
(shrinking: Joachims 1999, "Making large-scale SVM learning practical"; here the set is kept warm
and every other variable is checked after each round).
"""

import math
from typing import NamedTuple

import numpy as np

from online_svm.compiled.jit import inner, making
from online_svm.compiled.kernels import Kernel, kernel_value
from online_svm.compiled.packed_search import PLACES
from online_svm.svm.exact.kernel_cache import FEW, TRAIN_TAIL, Rows, fetch, is_known
from online_svm.types import Floats, Ints, Values

MOST_BYTES = 64 << 20  # of the kernel matrices of all machines together
PADDING = 16  # columns beside those used: rows a power of two apart would share cache sets
FIRST_MARGIN = 0.05  # it tunes itself from here: see `compact`
VACANT = -1
LINE = 16  # kernel values that are copied from one row at a time

# Entries of `ActiveSet.counts`.
SIZE, FITS, CHECKED = range(3)


class ActiveSet(NamedTuple):
    """The active set of one machine over T training slots: A places at most.

    In `empty_active` all arrays but the scratch have a first axis more, over the machines.

    Attributes
    ----------
    K : ndarray of shape (A, A + padding)
        Kernel values between the active variables.
    slots : ndarray of shape (A,)
        The slot whose variable has each place; -1 where a place is vacant.
    place : ndarray of shape (T,)
        Place of a slot among the active ones; -1 if it is not.
    counts : ndarray of shape (3,)
        Places in use or vacant between such; whether all near variables have one; the ordinal of
        the first training point that was not there when the set was last assessed.
    margin : ndarray of shape (1,)
        Variables become active when their slack is so near to where it would violate optimality.
    bounds : ndarray of shape (3, A)
        Scratch: bounds and coefficients.
    slacks : ndarray of shape (3, A)
        Scratch of the type of the kernel values.
    typed : ndarray of shape (3,)
        As well.
    """

    K: Values
    slots: Ints
    place: Ints
    counts: Ints
    margin: Floats
    bounds: Floats
    slacks: Values
    typed: Values


def most_active(kernel: Kernel, machines: int, train: int) -> int:
    """Return how many places an active set has.

    Examples
    --------
    >>> most_active(Kernel("rbf"), machines=1, train=1024)
    512
    """
    each = MOST_BYTES / machines / np.dtype(kernel.dtype).itemsize
    return max(2, min(train // 2, int(math.sqrt(each)) - PADDING, PLACES))


def empty_active(kernel: Kernel, machines: int, train: int) -> ActiveSet:
    """Return sets without variables, for at most half of the training slots."""
    most = most_active(kernel, machines, train)
    return ActiveSet(
        # Zeros: pages never touched cost no memory.
        K=np.zeros((machines, most, most + PADDING), dtype=kernel.dtype),
        slots=np.full((machines, most), VACANT, dtype=np.int64),
        place=np.full((machines, train), VACANT, dtype=np.int64),
        counts=np.zeros((machines, 3), dtype=np.int64),
        margin=np.full((machines, 1), FIRST_MARGIN),
        bounds=np.zeros((3, most)),
        slacks=np.zeros((3, most), dtype=kernel.dtype),
        typed=np.zeros(3, dtype=kernel.dtype),
    )


@making
def set_of(sets: ActiveSet, s: int) -> ActiveSet:
    """Return the active set of machine s."""
    K, slots, place, counts, margin, bounds, slacks, typed = sets
    return ActiveSet(K[s], slots[s], place[s], counts[s], margin[s], bounds, slacks, typed)


@inner
def _write_row(rows: Rows, slot: int, slots: Ints, out: Values) -> None:
    """Write the kernel values between one slot and others, from what is at hand where it is."""
    place = rows.row_of[slot]
    if place >= 0 and rows.known[place, 0] == rows.rings[TRAIN_TAIL]:
        row = rows.values[place]
        for a in range(len(slots)):
            out[a] = row[max(slots[a], 0)]  # in a vacant place, anything
        return
    for a in range(len(slots)):
        if slots[a] != VACANT:
            other = rows.row_of[slots[a]]
            if other >= 0 and is_known(rows, other, slot):
                out[a] = rows.values[other, slot]
            else:
                out[a] = kernel_value(rows.shape, rows.points[slots[a]], rows.points[slot])


@inner
def _next_vacant(slots: Ints, first: int) -> int:
    for a in range(first, len(slots)):
        if slots[a] == VACANT:
            return a
    return len(slots)


@inner
def room(slots: Ints) -> int:
    """Return how many places are vacant."""
    vacant = 0
    for a in range(len(slots)):
        vacant += slots[a] == VACANT
    return vacant


@making
def join(active: ActiveSet, rows: Rows, joining: Ints) -> None:
    """Give training points the first vacant places; there must be enough.

    Where many join, their rows are computed first: a whole row takes less time than the part of it
    that would be computed value by value.
    """
    K, slots, place, counts = active.K, active.slots, active.place, active.counts
    # 1. Give each the next vacant place.
    places, last = np.empty(len(joining), dtype=np.int64), -1
    for i in range(len(joining)):
        places[i] = last = _next_vacant(slots, last + 1)
        slots[last], place[joining[i]] = joining[i], last
    size = counts[SIZE] = max(counts[SIZE], last + 1)
    # 2. Fill its row of the small kernel matrix, from cached rows where there are any.
    for i in range(len(joining)):
        slot, a = int(joining[i]), places[i]
        if len(joining) > FEW:
            fetch(rows, slot, 1)
        _write_row(rows, slot, slots[:size], K[a, :size])
        K[a, a] = rows.diagonal[slot]
    # 3. Copy the rows to the columns.
    for first in range(0, size, LINE):  # a line of each row at a time: they stay in the cache
        for a in places:
            for c in range(first, min(first + LINE, size)):
                K[c, a] = K[a, c]


@inner
def leave(slots: Ints, place: Ints, counts: Ints, slot: int) -> None:
    """Let a training point be active no more."""
    slots[place[slot]] = place[slot] = VACANT
    while counts[SIZE] > 0 and slots[counts[SIZE] - 1] == VACANT:
        counts[SIZE] -= 1


@inner
def tighten(K: Values, slots: Ints, place: Ints, counts: Ints) -> None:
    """Let the last variable take the first vacant place: places that stay vacant cost time."""
    last = counts[SIZE] - 1
    a = _next_vacant(slots[: last + 1], 0)
    if a > last:
        return
    slot = slots[last]
    for c in range(last):
        K[a, c] = K[last, c]
        K[c, a] = K[last, c]
    K[a, a] = K[last, last]
    leave(slots, place, counts, slot)
    slots[a], place[slot] = slot, a
    counts[SIZE] = max(counts[SIZE], a + 1)


@inner
def restore_active(sets: ActiveSet, rows: Rows, slots: Ints) -> None:
    """Give the training points in `slots`, shape (S, size), these very places."""
    for s in range(len(slots)):
        for a in range(slots.shape[1]):
            slot = slots[s, a]
            sets.slots[s, a] = slot
            if slot != VACANT:
                sets.place[s, slot] = a
                _write_row(rows, slot, sets.slots[s, :a], sets.K[s, a, :a])
                for c in range(a):
                    sets.K[s, c, a] = sets.K[s, a, c]
                sets.K[s, a, a] = rows.diagonal[slot]
