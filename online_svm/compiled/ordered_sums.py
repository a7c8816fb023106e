"""Sums in an order that is fixed, and that a processor can still take many at a time.

Term j is added to lane j mod `LANES`, the lanes are then added by halves. Terms of weight zero
change nothing, so they may be left out. `sum_rows` adds rows one after the other.
"""

import numpy as np

from online_svm.compiled.intrinsics import fma
from online_svm.compiled.jit import inner, jit
from online_svm.types import Floats, Values

LANES = 64


@inner
def add_to_lanes(values: Values, coef: Floats, lanes: Floats) -> None:
    """Add coef_j values_j to lane j mod `LANES`, for all j."""
    for first in range(0, len(values), LANES):
        v, c = values[first : first + LANES], coef[first : first + LANES]
        for k in range(len(v)):
            lanes[k] = fma(c[k], np.float64(v[k]), lanes[k])


@inner
def sum_of_lanes(lanes: Floats) -> float:
    """Return the sum over the lanes, added up by halves, in place."""
    half = LANES // 2
    while half > 0:
        for k in range(half):
            lanes[k] += lanes[k + half]
        half //= 2
    return float(lanes[0])


@inner
def sum_rows_of_lanes(lanes: Floats) -> None:
    """Do what `sum_of_lanes` does for each column of `lanes`, shape (LANES, m): into row 0."""
    half = LANES // 2
    while half > 0:
        for k in range(half):
            a, b = lanes[k], lanes[k + half]
            for i in range(len(a)):
                a[i] += b[i]
        half //= 2


@jit
def dot(values: Values, weights: Floats) -> float:
    """Return the sum of weights_j values_j."""
    lanes = np.zeros(LANES)
    add_to_lanes(values, weights, lanes)
    return sum_of_lanes(lanes)


@jit
def total(values: Floats) -> float:
    """Return the sum of the values, shape (n,).

    Examples
    --------
    >>> total(np.arange(101.0))
    5050.0
    """
    lanes = np.zeros(LANES)
    for first in range(0, len(values), LANES):
        v = values[first : first + LANES]
        for k in range(len(v)):
            lanes[k] += v[k]
    return sum_of_lanes(lanes)


def variance(values: Floats) -> float:
    """Return the mean square of the values, of any shape, about their mean.

    Examples
    --------
    >>> variance(np.array([[0.0, 2.0], [4.0, 6.0]]))
    5.0
    """
    flat = np.array(values, dtype=np.float64, order="C").reshape(-1)
    flat -= total(flat) / len(flat)
    return total(flat * flat) / len(flat)


def sum_rows(values: Floats) -> Floats:
    """Return the sum of the rows of an array of shape (n, d), n >= 1.

    Examples
    --------
    >>> sum_rows(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([4., 6.])
    """
    found: Floats = values[0].copy()
    _add_rows(np.ascontiguousarray(values[1:]), found)
    return found


@jit
def _add_rows(values: Floats, found: Floats) -> None:
    for i in range(len(values)):
        row = values[i]
        for j in range(len(row)):
            found[j] += row[j]
