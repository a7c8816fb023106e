"""The Clopper-Pearson interval of a frequency, compiled, with a memory of those asked for.

The bounds of k hits among n are quantiles of beta distributions (Clopper & Pearson 1934): the lower
one solves I_x(k, n - k + 1) = a / 2, the upper one I_x(k + 1, n - k) = 1 - a / 2 at level 1 - a,
where I is the regularised incomplete beta function. A bound depends on k, n and the level alone.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.compiled.special import beta_quantile
from online_svm.errors import InvalidInput
from online_svm.types import Floats, Ints

SLOTS = 1 << 15  # a window of 2,000 in a dozen bins meets some thousand pairs of counts


class BinomialIntervals(NamedTuple):
    """Intervals at one level, those computed last kept.

    Attributes
    ----------
    tail : float
        (1 - level) / 2, the probability beyond either end.
    keys : ndarray of int of shape (SLOTS,)
        Which counts a slot holds; -1 for none.
    bounds : ndarray of shape (SLOTS, 2)
        Their lower and upper end.
    """

    tail: float
    keys: Ints
    bounds: Floats


@cache
def binomial_intervals(level: float) -> BinomialIntervals:
    """Return the intervals at a level: the same object for all who ask, so that they share it.

    Raises
    ------
    InvalidInput
        If the level is not between 0 and 1.

    Examples
    --------
    >>> [round(bound, 3) for bound in interval(binomial_intervals(0.9), 1, 10)]
    [0.005, 0.394]
    """
    if not 0.0 < level < 1.0:
        raise InvalidInput(f"level: {level} is not between 0 and 1")
    keys = np.full(SLOTS, -1, dtype=np.int64)
    return BinomialIntervals((1.0 - level) / 2.0, keys, np.zeros((SLOTS, 2)))


@jit
def interval(intervals: BinomialIntervals, hits: int, total: int) -> tuple[float, float]:
    """Return the interval of the frequency after `hits` among `total`, both below 2^31.

    Examples
    --------
    >>> interval(binomial_intervals(0.9), 0, 0)
    (0.0, 1.0)
    """
    key = (total << 32) | hits
    slot = (total * 1_000_003 + hits) % SLOTS
    if intervals.keys[slot] != key:
        low, high, tail = 0.0, 1.0, intervals.tail
        if hits > 0:
            low = beta_quantile(float(hits), total - hits + 1.0, tail)
        if hits < total:  # the upper end is the lower one of the misses, mirrored
            high = 1.0 - beta_quantile(float(total - hits), hits + 1.0, tail)
        intervals.keys[slot] = key
        intervals.bounds[slot, 0], intervals.bounds[slot, 1] = low, high
    return intervals.bounds[slot, 0], intervals.bounds[slot, 1]
