"""Points laid out so that vectors of the processor lie on whole lines of the cache.

The widest vectors of today's processors are one line of 64 bytes long. In an array that begins
anywhere else, or whose rows are no whole number of lines long, each of them lies on two lines and
takes two reads. Where a number lies changes no bit of what is computed from it.
"""

import numpy as np

from online_svm.types import Floats

LINE = 8  # float64 values


def in_lines(points: Floats) -> Floats:
    """Return a copy of points, shape (d, n), each row of which begins at a line of the cache.

    The columns from n on, at most seven, are zero. It is read-only where `points` are, so that
    kernels need not be compiled once more for it.

    Examples
    --------
    >>> found = in_lines(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> found.shape, found[:, :3].tolist()
    ((2, 8), [[1.0, 2.0, 0.0], [3.0, 4.0, 0.0]])
    >>> [row.ctypes.data % 64 for row in found]
    [0, 0]
    """
    d, n = points.shape
    width = -(-n // LINE) * LINE
    room = np.zeros(d * width + LINE)
    first = -room.ctypes.data // 8 % LINE
    lines: Floats = room[first : first + d * width].reshape(d, width)
    lines[:, :n] = points
    lines.flags.writeable = points.flags.writeable
    return lines
