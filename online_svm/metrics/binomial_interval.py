"""The Clopper-Pearson interval of a frequency, compiled, with a memory of those asked for.

The bounds of k hits among n are quantiles of beta distributions (Clopper & Pearson 1934): the lower
one solves I_x(k, n - k + 1) = a / 2, the upper one I_x(k + 1, n - k) = 1 - a / 2 at level 1 - a,
where I is the regularized incomplete beta function. It is evaluated by its continued fraction
(Lentz's method), and solved by Newton's method inside a bracket. A bound depends on k, n and the
level alone.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.errors import InvalidInput
from online_svm.types import Floats, Ints

SLOTS = 1 << 15  # a window of 2,000 in a dozen bins meets some thousand pairs of counts
STEPS = 200
TINY = 1e-300


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
            low = _beta_quantile(float(hits), total - hits + 1.0, tail)
        if hits < total:  # the upper end is the lower one of the misses, mirrored
            high = 1.0 - _beta_quantile(float(total - hits), hits + 1.0, tail)
        intervals.keys[slot] = key
        intervals.bounds[slot, 0], intervals.bounds[slot, 1] = low, high
    return intervals.bounds[slot, 0], intervals.bounds[slot, 1]


@jit
def _beta_quantile(a: float, b: float, p: float) -> float:
    """Return x with I_x(a, b) = p."""
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    low, high = 0.0, 1.0
    x = a / (a + b)
    for _ in range(STEPS):
        # 1. Where x lies: narrow the bracket.
        excess = _incomplete_beta(a, b, x, log_beta) - p
        if excess > 0.0:
            high = x
        else:
            low = x
        # 2. Newton's step, or half the bracket where it leaves that.
        log_density = (a - 1.0) * math.log(x) + (b - 1.0) * math.log1p(-x) - log_beta
        following = x - excess * math.exp(-log_density)
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - x) <= 1e-15 * x or following in (low, high):
            return following
        x = following
    return x


@jit
def _incomplete_beta(a: float, b: float, x: float, log_beta: float) -> float:
    """Return I_x(a, b) by the continued fraction, which converges fast below (a+1)/(a+b+2)."""
    front = math.exp(a * math.log(x) + b * math.log1p(-x) - log_beta)
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(a, b, x) / a
    return 1.0 - front * _fraction(b, a, 1.0 - x) / b


@jit
def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, from the front."""
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        d = 1.0 / _away_from_zero(1.0 + even * d)
        c = _away_from_zero(1.0 + even / c)
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        d = 1.0 / _away_from_zero(1.0 + odd * d)
        c = _away_from_zero(1.0 + odd / c)
        value *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return value


@jit
def _away_from_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY
