"""Anytime-valid comparison of two predictors: which has the smaller loss, and since when.

Built on the empirical-Bernstein confidence sequence of Howard et al. (2021), theorem 4, with the
mixture of `confidence_sequence`. It covers the running mean of the conditional expectations, so the
values need be neither independent nor identically distributed.
"""

import math
from dataclasses import dataclass

import numpy as np

from online_svm.compiled.elementary import log
from online_svm.errors import InvalidInput
from online_svm.metrics.sequential.confidence_sequence import (
    ROWS_BETWEEN_STARTS,
    boundary_of_mean,
    group_of,
    log_mean_mixture,
    share_of_group,
    squares_about_mean,
)
from online_svm.types import Bools, Floats

RHOS = (0.5, 5.0, 50.0)
"""Parameters of three mixtures, which are averaged: the variance of a difference can be tiny."""
_RHOS = np.array(RHOS)

VALUES_BETWEEN_LOOKS = 16  # values between two evaluations of the wealth, which take microseconds


class BoundedMean:
    """The mean of values in [`low`, `high`], and a test that it is positive.

    `level` is one minus the confidence, and the level of the test. Raises InvalidInput if a
    parameter is out of range.
    """

    def __init__(self, low: float, high: float, level: float) -> None:
        if not (-math.inf < low < high < math.inf and 0.0 < level < 1.0):
            raise InvalidInput(
                f"low, high, level: need low < high and a level in (0, 1), got {low}, {high} and "
                f"{level}"
            )
        self._low, self._high, self.level = low, high, level
        self._sums = np.zeros(4)  # count, sum, sum of squares about the means before, best wealth

    def update(self, values: Floats) -> None:
        """Add values of shape (m,), in order.

        Raises InvalidInput, and adds nothing, if one is out of range.
        """
        if not ((values >= self._low) & (values <= self._high)).all():
            raise InvalidInput(f"values: must lie in [{self._low}, {self._high}]")
        width = self._high - self._low
        count, total, squares, best = self._sums.tolist()
        for value in (values / width).tolist():
            # Centre each square on the mean of the earlier values, which lies in the range.
            guess = (total + 0.5 * (self._low + self._high) / width) / (count + 1.0)
            apart = value - guess
            count, total, squares = count + 1.0, total + value, squares + apart * apart
            if count % VALUES_BETWEEN_LOOKS == 0:
                best = max(best, _log_wealth(total, squares))
        self._sums[:] = count, total, squares, best

    @property
    def count(self) -> int:
        """Number of values so far."""
        return int(self._sums[0])

    @property
    def log_wealth(self) -> Floats:
        """Log-wealth against the null of a mean of at most zero, shape (1,)."""
        return np.array([_log_wealth(self._sums[1], self._sums[2])])

    @property
    def rejected(self) -> Bools:
        """Whether the wealth ever reached 1 / level, shape (1,)."""
        return np.array([bool(self._sums[3] >= -log(self.level))])

    def interval(self) -> tuple[float, float, float]:
        """Return lower bound, estimate and upper bound of the mean; [low, high] without values."""
        count, total, squares, _ = self._sums.tolist()
        width = self._high - self._low
        if not count:
            return self._low, 0.5 * (self._low + self._high), self._high
        reach, mean = reach_of(squares, self.level / 2) * width / count, total * width / count
        return max(self._low, mean - reach), mean, min(self._high, mean + reach)


def _log_wealth(s: float, v: float) -> float:
    return log_mean_mixture(s, v, _RHOS)[0]


def reach_of(v: float, level: float) -> float:
    """Return the bound that the sum ever exceeds with probability at most `level`, in (0, 1).

    It uses the mean of three mixtures, for values in an interval of length 1; `v` is the sum of
    squared deviations from predictable centres.
    """
    return boundary_of_mean(v, -log(level), _RHOS)


def mean_bounds(
    count: int, total: float, squares: float, span: tuple[float, float], most: int = 1
) -> tuple[float, float]:
    """Return the confidence sequence of a mean of values in a span, at 95 %.

    `squares` is the sum of squares about predictable centres in the span. If a value is counted up
    to `most` times, as one label that stands for so many examples, its multiples are in a span that
    is wider by this factor, and have squares greater by at most this factor.

    Examples
    --------
    >>> lower, upper = mean_bounds(1000, 800.0, 160.0, (0.0, 1.0))
    >>> round(lower, 3), round(upper, 3)
    (0.756, 0.844)
    """
    low, high = span
    width = (high - low) * most
    reach = width * reach_of(most * squares / (width * width), 0.025) / count
    mean = total / count
    return max(low, mean - reach), min(high, mean + reach)


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """Mean of the first loss minus the second, with its confidence sequence."""

    lower: float
    estimate: float
    upper: float


class ScoreComparison:
    """Tests of whether the first or the second of two predictors has the smaller loss.

    Both losses lie in [0, `bound`]. `level` is the level of each test, and one minus the confidence
    of the difference. Raises InvalidInput if a parameter is out of range.

    Examples
    --------
    >>> comparison = ScoreComparison(bound=1.0, level=0.05)
    >>> comparison.update(np.full(400, 0.30), np.full(400, 0.20))
    >>> comparison.rejected  # is the first better? is the second?
    array([False,  True])
    """

    def __init__(self, bound: float, level: float) -> None:
        self._first_loses = BoundedMean(-bound, bound, level)
        self._second_loses = BoundedMean(-bound, bound, level)

    def update(self, first: Floats, second: Floats) -> None:
        """Add both losses on the same examples, in order, shape (m,).

        Raises InvalidInput, and adds nothing, if a difference exceeds the bound.
        """
        self._first_loses.update(first - second)
        self._second_loses.update(second - first)

    @property
    def count(self) -> int:
        """Number of examples so far."""
        return self._first_loses.count

    @property
    def difference(self) -> MeanDifference:
        """Mean of the first loss minus the second."""
        return MeanDifference(*self._first_loses.interval())

    @property
    def log_wealth(self) -> Floats:
        """Log-wealth for "the first is better" and for "the second is better", shape (2,)."""
        return np.concatenate([self._second_loses.log_wealth, self._first_loses.log_wealth])

    @property
    def rejected(self) -> Bools:
        """Whether the first, and whether the second, was found better; shape (2,)."""
        return np.concatenate([self._second_loses.rejected, self._first_loses.rejected])


@dataclass(frozen=True, slots=True)
class MeanSince:
    """The mean of the values since a start, with its interval."""

    since: int  # number of values before the start
    count: int
    lower: float
    estimate: float
    upper: float


def strongest_mean(values: Floats, bound: float, level: float) -> MeanSince:
    """Return the mean whose interval is farthest from 0, or the overall mean if all contain 0.

    `values`, shape (m,), are in order and lie in [-`bound`, `bound`]; `level` is one minus the
    joint confidence of all intervals. Raises InvalidInput if there are no values, or one is out of
    range.
    """
    if not len(values) or not (np.abs(values) <= bound).all():
        raise InvalidInput(f"values: expected at least one, each in [{-bound}, {bound}]")
    scaled = values / (2.0 * bound)
    sums = np.concatenate([[0.0], np.cumsum(scaled)])
    squares = np.zeros(len(values) + 1)
    squares_about_mean(scaled, squares[1:])
    np.cumsum(squares, out=squares)
    found = []
    for start in starts_of(len(values)):
        share = share_of_group(group_of(start // ROWS_BETWEEN_STARTS))
        count, total = len(values) - start, float(sums[-1] - sums[start])
        reach = reach_of(float(squares[-1] - squares[start]), 0.5 * level * share)
        ends = (2.0 * bound * (total + side) / count for side in (-reach, 0.0, reach))
        lower, estimate, upper = ends
        found.append(MeanSince(start, count, max(-bound, lower), estimate, min(bound, upper)))
    best = max(found, key=_distance)
    return best if _distance(best) > 0.0 else found[0]


def starts_of(count: int) -> list[int]:
    """Return the starts of a series of `count` values, ascending; the first is 0."""
    found, spacing = {0}, ROWS_BETWEEN_STARTS
    while spacing < count:
        last = (count - 1) // spacing * spacing
        found |= {last, max(0, last - spacing)}
        spacing *= 2
    return sorted(found)


def _distance(mean: MeanSince) -> float:
    return max(mean.lower, -mean.upper)
