"""Reach of an interval, by its start and variance: looked up, or found once.

A start has a share of the level that does not depend on how many will follow. The boundary of
`mixture_boundary` grows with the variance, so that of the next point of a grid may stand for it.
Finding one takes some forty microseconds; those of the usual level are in a file, for as many rows
as most feeds have.
"""

import math
from bisect import bisect_left
from functools import cache
from itertools import accumulate
from operator import mul
from pathlib import Path
from typing import Self

import numpy as np

from online_svm.compiled.elementary import logs
from online_svm.compiled.jit import jit
from online_svm.metrics.sequential.mixture_boundary import RHO, boundary_of_mean
from online_svm.types import Floats

POINTS = 16  # of the variance, to each doubling: an interval is at most 2 % too wide
FIRST_GROUP = 128  # starts with a larger share of the level: the first 8,192 rows
GROUPS = 48

# Of the points from 1 to 2, by square roots, which are the same on any machine.
_STEP = math.sqrt(math.sqrt(math.sqrt(math.sqrt(2.0))))
_OCTAVE = list(accumulate([1.0] + [_STEP] * (POINTS - 1), mul))
_RHO = np.array([RHO])

USUAL_LEVEL = 0.05
"""One minus the confidence of the intervals whose reaches are in the file."""

TABLE = Path(__file__).with_name("interval_reach.npy")
"""Reaches by group and point; `scripts/make_interval_reach.py` writes it."""

TABLE_SHAPE = 12, 22 * POINTS + 1
"""Starts up to 8 million rows, and variances up to 4 million."""


class IntervalReach:
    """Half widths of intervals, times the count, for each start and variance.

    Parameters
    ----------
    level : float
        One minus the confidence of the intervals of all starts together.

    Attributes
    ----------
    logs : ndarray of shape (GROUPS,)
        ln(1 / level) of one side, by the group of a start.

    Examples
    --------
    >>> reach = IntervalReach(0.05)
    >>> round(reach.of(100.0, number=0), 2)
    39.74
    """

    def __init__(self, level: float) -> None:
        self.logs = _logs(level)
        self._found: dict[tuple[int, int], float] = {}
        self._table = table() if level == USUAL_LEVEL else []

    def __deepcopy__(self, memo: object) -> Self:
        """Return the reaches themselves: they are the same for all who ask."""
        return self

    def of(self, squares: float, number: int) -> float:
        """Return the reach for a sum of squares, by the number of its start."""
        group, point = group_of(number), point_of(squares)
        if group < len(self._table) and point < len(self._table[group]):
            return self._table[group][point]
        key = group, point
        if key not in self._found:
            self._found[key] = _find(point, float(self.logs[group]))
        return self._found[key]


@cache
def table() -> list[list[float]]:
    """Return the reaches of `USUAL_LEVEL` that are in the file, by group and point."""
    found: list[list[float]] = np.load(TABLE, allow_pickle=False).tolist()
    return found


def make_table() -> Floats:
    """Return what the file holds, computed anew."""
    groups, points = TABLE_SHAPE
    logs = _logs(USUAL_LEVEL)[:groups].tolist()
    return np.array([[_find(point, log) for point in range(points)] for log in logs])


@cache
def _logs(level: float) -> Floats:
    return -logs(np.array([0.5 * level * share_of_group(group) for group in range(GROUPS)]))


def _find(point: int, log: float) -> float:
    """Return the reach at a point of the grid of variances, for ln(1 / level) of one side."""
    return boundary_of_mean(variance_at(point), log, _RHO)


def point_of(variance: float) -> int:
    """Return the first point of the grid whose variance is as large.

    Examples
    --------
    >>> point_of(0.5), point_of(2.0), point_of(2.0001)
    (0, 16, 17)
    """
    mantissa, exponent = math.frexp(max(variance, 1.0))
    return POINTS * (exponent - 1) + bisect_left(_OCTAVE, 2.0 * mantissa)


def variance_at(point: int) -> float:
    """Return the variance at a point of the grid, 2^(point / POINTS).

    Examples
    --------
    >>> variance_at(32)
    4.0
    """
    return math.ldexp(_OCTAVE[point % POINTS], point // POINTS)


@jit
def group_of(number: int) -> int:
    """Return the group of a start: 0, 1 ... 127, 128 ... 255, 256 ... 511 and so on."""
    group, first = min(number, 1), FIRST_GROUP
    while first <= number:
        group += 1
        first *= 2
    return group


def share_of_group(group: int) -> float:
    """Return the share of the level of one start; those of all starts sum to 1.

    A quarter is the beginning's, a quarter that of the next 127 starts, and half that of the groups
    of 128, 256, 512, ... starts after them.
    """
    if group == 0:
        return 0.25
    if group == 1:
        return 0.25 / (FIRST_GROUP - 1)
    starts = FIRST_GROUP << (group - 2)
    return 0.5 / ((group - 1) * group * starts)
