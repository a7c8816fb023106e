"""A bounded cache of kernel rows over two rings of points.

The columns of a row are slots: first the ring of training points, then the ring of observers
(points whose decision values are wanted but which do not train). A point keeps its slot while it
is held, so forgetting moves nothing. A row is brought up to date when it is asked for: only the
columns of points that arrived since it was last used are computed. Kernel values depend on the
two points alone, so what the cache holds can never change a result.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from online_svm._jit import jit
from online_svm.kernels import BLOCK, Floats, Kernel, Shape, Values, kernel_row, kernel_value

Ints = NDArray[np.int64]

# Entries of `Rows.rings`.
TRAIN_HEAD, TRAIN_TAIL, TRAIN_SIZE, SEEN_HEAD, SEEN_TAIL, SEEN_SIZE, CLOCK = range(7)

FEW = 8  # so few columns are computed one by one, without the set-up of a vectorised block


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


@jit
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


@jit
def _fill(rows: Rows, slot: int, place: int, first: int, stop: int) -> None:
    """Compute the columns first..stop of one row."""
    x, out = rows.points[slot], rows.values[place]
    if stop - first > FEW:
        kernel_row(rows.shape, rows.X, x, first, stop, rows.sums, out)
        return
    for j in range(first, stop):
        out[j] = kernel_value(rows.shape, x, rows.points[j])


@jit
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
    place = rows.row_of[slot]
    if place < 0:
        place = _place(rows.row_of, rows.owner, rows.used, slot)
        known[place, 0] = rings[TRAIN_HEAD]
        known[place, 1] = rings[SEEN_HEAD]
    rings[CLOCK] += 1
    rows.used[place] = rings[CLOCK]
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


def drop_rows(rows: Rows, slots: Ints) -> None:
    """Free the rows of points that leave their slots."""
    places = rows.row_of[slots]
    places = places[places >= 0]
    rows.row_of[slots] = -1
    rows.owner[places] = -1
    rows.used[places] = -1
