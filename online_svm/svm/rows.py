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
from online_svm.kernels import Floats, Kernel, Shape, kernel_row

Ints = NDArray[np.int64]

# Entries of `Rows.rings`.
TRAIN_HEAD, TRAIN_TAIL, TRAIN_SIZE, SEEN_HEAD, SEEN_TAIL, SEEN_SIZE, CLOCK = range(7)


class Rows(NamedTuple):
    """Points and the cached rows of their kernel matrix: plain arrays, for compiled code.

    Attributes
    ----------
    shape : tuple
        `Kernel.shape`.
    X : ndarray of shape (d, n_slots)
        The points, feature-major.
    x : ndarray of shape (d,)
        Scratch: the point whose row is being computed.
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
    """

    shape: Shape
    X: Floats
    x: Floats
    diagonal: Floats
    values: Floats
    row_of: Ints
    owner: Ints
    used: Ints
    known: Ints
    rings: Ints


def empty_rows(kernel: Kernel, dimension: int, train: int, seen: int, cache_bytes: int) -> Rows:
    """Return room for `train` training points and `seen` observers, and rows within the cache."""
    width = train + seen
    n_rows = max(2, min(width, cache_bytes // (8 * width)))  # one solver step needs two rows
    rings = np.zeros(7, dtype=np.int64)
    rings[TRAIN_SIZE], rings[SEEN_SIZE] = train, seen
    return Rows(
        shape=kernel.shape,
        X=np.zeros((dimension, width)),
        x=np.zeros(dimension),
        diagonal=np.zeros(width),
        values=np.empty((n_rows, width)),  # untouched pages cost no memory
        row_of=np.full(width, -1, dtype=np.int64),
        owner=np.full(n_rows, -1, dtype=np.int64),
        used=np.full(n_rows, -1, dtype=np.int64),
        known=np.zeros((n_rows, 2), dtype=np.int64),
        rings=rings,
    )


@jit
def _place(rows: Rows, slot: int) -> int:
    """Give `slot` the free or least recently used place, and return it."""
    place = 0
    for r in range(len(rows.used)):
        if rows.used[r] < rows.used[place]:
            place = r
    if rows.owner[place] >= 0:
        rows.row_of[rows.owner[place]] = -1
    rows.owner[place] = slot
    rows.row_of[slot] = place
    rows.known[place, 0] = rows.rings[TRAIN_HEAD]
    rows.known[place, 1] = rows.rings[SEEN_HEAD]
    return place


@jit
def _fill(rows: Rows, slot: int, place: int, begin: int, end: int, offset: int, size: int) -> None:
    """Compute the columns of the points with ordinals begin..end of one ring (it may wrap)."""
    for f in range(len(rows.x)):
        rows.x[f] = rows.X[f, slot]
    start = begin % size
    stop = start + end - begin
    out = rows.values[place]
    kernel_row(rows.shape, rows.X, rows.x, offset + start, offset + min(stop, size), out)
    if stop > size:
        kernel_row(rows.shape, rows.X, rows.x, offset, offset + stop - size, out)


@jit
def train_row(rows: Rows, slot: int) -> int:
    """Return where the row of `slot` is cached, its training columns up to date."""
    place = int(rows.row_of[slot])
    if place < 0:
        place = _place(rows, slot)
    rings = rows.rings
    begin, end = max(rows.known[place, 0], rings[TRAIN_HEAD]), rings[TRAIN_TAIL]
    if begin < end:
        _fill(rows, slot, place, begin, end, 0, rings[TRAIN_SIZE])
        rows.known[place, 0] = end
    rings[CLOCK] += 1
    rows.used[place] = rings[CLOCK]
    return place


@jit
def whole_row(rows: Rows, slot: int) -> int:
    """Return where the row of `slot` is cached, all its columns up to date."""
    place = train_row(rows, slot)
    rings = rows.rings
    begin, end = max(rows.known[place, 1], rings[SEEN_HEAD]), rings[SEEN_TAIL]
    if begin < end:
        _fill(rows, slot, place, begin, end, rings[TRAIN_SIZE], rings[SEEN_SIZE])
        rows.known[place, 1] = end
    return place


@jit
def drop_row(rows: Rows, slot: int) -> None:
    """Free the row of a point that leaves `slot`."""
    place = rows.row_of[slot]
    if place >= 0:
        rows.row_of[slot] = -1
        rows.owner[place] = -1
        rows.used[place] = -1
