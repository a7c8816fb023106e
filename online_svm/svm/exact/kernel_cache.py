"""Kernel cache: the rows of the kernel matrix that were used last, over two rings of points.

The columns of a row are slots: first the ring of training points, then the ring of observers
(points whose decision values are wanted but which do not train). A point keeps its slot while it
is held, so forgetting moves nothing. A row is brought up to date when it is asked for: only the
columns of points that arrived since it was last used are computed. Kernel values depend on the
two points alone, so what the cache holds can never change a result.
"""

from typing import NamedTuple

import numpy as np

from online_svm.compiled.jit import inner, making
from online_svm.compiled.kernels import BLOCK, Kernel, Shape, kernel_row, kernel_value
from online_svm.types import Floats, Ints, Values

# Entries of `Rows.rings`.
TRAIN_HEAD, TRAIN_TAIL, TRAIN_SIZE, SEEN_HEAD, SEEN_TAIL, SEEN_SIZE, CLOCK = range(7)

FEW = 8  # so few columns are computed one by one, without the set-up of a vectorised block
VECTORS = 32  # columns in whole vectors; the capacities of the rings are multiples of it


class Rows(NamedTuple):
    """Points and the cached rows of their kernel matrix: plain arrays, for compiled code.

    Attributes
    ----------
    shape : tuple
        `Kernel.shape`.
    X : ndarray of shape (d, n_slots)
        The points, feature-major.
    points : ndarray of shape (n_slots, d)
        The points again, each in one piece.
    diagonal : ndarray of shape (n_slots,)
    values : ndarray of shape (n_rows, n_slots)
        Cached rows.
    row_of : ndarray of shape (n_slots,)
        Where the row of a slot is cached; -1 if nowhere.
    owner : ndarray of shape (n_rows,)
        The slot a row belongs to; -1 if free.
    used : ndarray of shape (n_rows,)
        Clock of the last use; the least is the first to be replaced.
    known : ndarray of shape (n_rows, 2)
        Columns of which points are computed: training points and observers before this ordinal.
    rings : ndarray of shape (7,)
        Ordinals of the oldest and of the next point, and the capacity, of either ring; a clock.
        The point with ordinal q lies in slot q mod capacity of its ring.
    sums : ndarray of shape (BLOCK,)
        Scratch of `kernel_row`.
    row : ndarray of shape (n_slots,)
        Scratch: a row that is not worth keeping.
    """

    shape: Shape
    X: Floats
    points: Floats
    diagonal: Floats
    values: Values
    row_of: Ints
    owner: Ints
    used: Ints
    known: Ints
    rings: Ints
    sums: Floats
    row: Values


def empty_rows(kernel: Kernel, dimension: int, train: int, seen: int, cache_bytes: int) -> Rows:
    """Return room for `train` training points and `seen` observers, and rows within the cache."""
    width = train + seen
    itemsize = np.dtype(kernel.dtype).itemsize
    n_rows = max(2, min(train, cache_bytes // (itemsize * width)))  # a solver step needs two
    rings = np.zeros(7, dtype=np.int64)
    rings[TRAIN_SIZE], rings[SEEN_SIZE] = train, seen
    return Rows(
        shape=kernel.shape,
        X=np.zeros((dimension, width)),
        points=np.zeros((width, dimension)),
        diagonal=np.zeros(width),
        # Zeros: vacant slots are computed with, and pages never touched cost no memory.
        values=np.zeros((n_rows, width), dtype=kernel.dtype),
        row_of=np.full(width, -1, dtype=np.int64),
        owner=np.full(n_rows, -1, dtype=np.int64),
        used=np.full(n_rows, -1, dtype=np.int64),
        known=np.zeros((n_rows, 2), dtype=np.int64),
        rings=rings,
        sums=np.zeros(BLOCK),
        row=np.zeros(width, dtype=kernel.dtype),
    )


@inner
def _place(row_of: Ints, owner: Ints, used: Ints, slot: int) -> int:
    """Give `slot` the free or least recently used place, and return it."""
    place = 0
    for r in range(len(used)):
        if used[r] < used[place]:
            place = r
    if owner[place] >= 0:
        row_of[owner[place]] = -1
    owner[place] = slot
    row_of[slot] = place
    return place


@inner
def is_known(rows: Rows, place: int, slot: int) -> bool:
    """Return whether a cached row has the column of a training slot."""
    tail, size = rows.rings[TRAIN_TAIL], rows.rings[TRAIN_SIZE]
    return bool((tail - 1 - slot) % size >= tail - rows.known[place, 0])


@inner
def _fill(rows: Rows, slot: int, place: int, first: int, stop: int) -> None:
    """Compute the columns first..stop of one row, or copy them from the rows of these points.

    Many are computed up to whole vectors: what is left over takes as long as ten times as many.
    Their neighbours in the ring get the values that they have, or will be given when they come.
    """
    # 1. Many columns: whole vectors of them, from the points.
    x, out = rows.points[slot], rows.values[place]
    if stop - first > FEW:
        begin, end = first - first % VECTORS, stop + -stop % VECTORS
        kernel_row(rows.shape, rows.X, x, begin, end, rows.sums, out)
        return
    # 2. Few: k(x_j, x) from the row of j where that has it, else from the points.
    for j in range(first, stop):
        other = rows.row_of[j]
        if other >= 0 and is_known(rows, other, slot):
            out[j] = rows.values[other, slot]
        else:
            out[j] = kernel_value(rows.shape, x, rows.points[j])


@inner
def fetch(rows: Rows, slot: int, rings_wanted: int) -> int:
    """Return where the row of `slot` is cached, its columns up to date.

    Parameters
    ----------
    rows : Rows
    slot : int
    rings_wanted : int
        1: only the columns of the training points; 2: those of the observers too.
    """
    rings, known = rows.rings, rows.known
    # 1. Where the row is; the least recently used one makes room for it.
    place = rows.row_of[slot]
    if place < 0:
        place = _place(rows.row_of, rows.owner, rows.used, slot)
        known[place, 0] = rings[TRAIN_HEAD]
        known[place, 1] = rings[SEEN_HEAD]
    # 2. It is now the most recently used.
    rings[CLOCK] += 1
    rows.used[place] = rings[CLOCK]
    # 3. The columns of points that came since it was last used.
    for ring in range(rings_wanted):
        head, tail, size = rings[3 * ring], rings[3 * ring + 1], rings[3 * ring + 2]
        begin = max(known[place, ring], head)
        offset = ring * rings[TRAIN_SIZE]
        while begin < tail:  # twice if the new points lie on both ends of the ring
            first = begin % size
            stop = min(first + tail - begin, size)
            _fill(rows, slot, place, offset + first, offset + stop)
            begin += stop - first
        known[place, ring] = tail
    return int(place)


@making
def columns_since(rings: Ints, first_training: int, first_observer: int) -> Ints:
    """Return the columns of the points from two ordinals on, as ranges: two a ring, as it wraps.

    Returns
    -------
    ranges : ndarray of shape (4, 2)
        First column and end of each; some may be empty.
    """
    ranges = np.zeros((4, 2), dtype=np.int64)
    for ring in range(2):
        # 1. Where the first of the points lies, and where the last would without the wrap.
        tail, size, offset = rings[3 * ring + 1], rings[3 * ring + 2], ring * rings[TRAIN_SIZE]
        begin = first_observer if ring else first_training
        first = begin % size
        end = first + tail - begin
        # 2. The range up to the end of the ring, and the one that goes on at its start.
        ranges[2 * ring, 0], ranges[2 * ring, 1] = offset + first, offset + min(end, size)
        ranges[2 * ring + 1] = offset
        ranges[2 * ring + 1, 1] += max(end - size, 0)
    return ranges


@inner
def take_slot(rings: Ints, tail: int) -> int:
    """Return the slot at the end of a ring, `TRAIN_TAIL` or `SEEN_TAIL`, and let it be in use."""
    offset = 0 if tail == TRAIN_TAIL else rings[TRAIN_SIZE]
    rings[tail] += 1
    return int(offset + (rings[tail] - 1) % rings[tail + 1])


@inner
def bring_up(rows: Rows, slots: Ints) -> None:
    """Let the rows of a few slots be at hand with all columns, as far as there is room for all.

    A row that only lacks the columns of a few training points, whose own rows are there, copies
    them without a call: at each step this is so for every row that is used.
    """
    row_of, known, used, rings, values = rows.row_of, rows.known, rows.used, rows.rings, rows.values
    tail, seen_tail, size = rings[TRAIN_TAIL], rings[SEEN_TAIL], rings[TRAIN_SIZE]
    for slot in slots:
        # 1. A row that is not there, or lacks much, is fetched.
        place = row_of[slot]
        if place < 0 or known[place, 1] < seen_tail or known[place, 0] < tail - FEW:
            fetch(rows, slot, 2)
            continue
        # 2. Else its few missing columns are copied from the rows of these points.
        rings[CLOCK] += 1
        used[place] = rings[CLOCK]
        for ordinal in range(known[place, 0], tail):
            column = ordinal % size
            other = row_of[column]
            # Slots in use lie less than a ring behind the tail.
            if other < 0 or known[other, 0] <= tail - 1 - (tail - 1 - slot) % size:
                fetch(rows, slot, 2)
                break
            values[place, column] = values[other, slot]
        known[place, 0] = tail


@inner
def drop_rows(rows: Rows, slots: Ints) -> None:
    """Free the rows of points that leave their slots."""
    for slot in slots:
        place = rows.row_of[slot]
        if place >= 0:
            rows.row_of[slot] = rows.owner[place] = rows.used[place] = -1
