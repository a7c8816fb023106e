"""Cells as the exchangeability tests see them."""

from collections.abc import Sequence

import numpy as np

from online_svm.compiled.intrinsics import bits_of
from online_svm.compiled.jit import jit
from online_svm.stream.cells import FALSE, FIRST_TIME, GAP, HASH, LARGEST, TRUE
from online_svm.types import Floats


def watched(rows: Floats, width: int, hidden: Sequence[int] = ()) -> Floats:
    """Return what the exchangeability tests see of rows: a fixed function of each cell.

    A number is itself, a text or a boolean a number from 0 to 1 that its bits give, and a time or a
    gap is missing: a clock drifts for ever, and no test of it says anything.

    Parameters
    ----------
    rows : ndarray of shape (m, n_features)
    width : int
        Features that are looked at, the first ones; missing where the rows have fewer.
    hidden : sequence of int
        Those of them that are times whatever their cells are.

    Examples
    --------
    >>> from online_svm.stream.cells import cell
    >>> row = np.array([[2.5, cell(True), cell("2024-01-05"), cell(None)]])
    >>> watched(row, 5)
    array([[2.5, 1. , nan, nan, nan]])
    """
    rows = rows[:, :width]
    if rows.shape[1] == width and not hidden and np.abs(rows).max(initial=0.0) <= LARGEST:
        return rows
    found = np.full((len(rows), width), GAP)
    _watch(np.ascontiguousarray(rows), found)
    found[:, [f for f in hidden if f < width]] = GAP
    return found


@jit
def _watch(rows: Floats, found: Floats) -> None:
    for i in range(len(rows)):
        for f in range(min(rows.shape[1], found.shape[1])):
            value = rows[i, f]
            if abs(value) <= LARGEST:
                found[i, f] = value
            elif value < FIRST_TIME:
                found[i, f] = (bits_of(value) & HASH) * 2.0**-60
            elif value == TRUE:
                found[i, f] = 1.0
            elif value == FALSE:
                found[i, f] = 0.0
