"""Means of bounded values, with intervals that hold at all times and a wealth against a sign.

The empirical-Bernstein confidence sequence of Howard et al. (2021), theorem 4, with the mixture of
`mixture_boundary`: it holds the mean of the conditional expectations so far, which may change all
the time. So the values need be neither independent nor alike.
"""

import math

import numpy as np

from online_svm.compiled.elementary import log
from online_svm.errors import InvalidInput
from online_svm.metrics.sequential.mixture_boundary import boundary_of_mean, log_mean_mixture
from online_svm.types import Bools, Floats

RHOS = (0.5, 5.0, 50.0)
"""Of three mixtures, whose mean is used: the variance of a difference may be tiny."""
_RHOS = np.array(RHOS)

LOOK_EVERY = 16  # values between two looks at the wealth: it takes some microseconds


class BoundedMean:
    """The mean of values in an interval, and whether it is above zero.

    Parameters
    ----------
    low, high : float
        Each value lies in [low, high].
    level : float
        One minus the confidence; also the level at which the mean is called positive.

    Raises
    ------
    InvalidInput
        If a parameter is out of range.

    Examples
    --------
    >>> mean = BoundedMean(0.0, 1.0, level=0.05)
    >>> mean.update(np.tile([0.0, 1.0, 1.0, 1.0], 250))
    >>> lower, estimate, upper = mean.interval()
    >>> round(lower, 2), estimate, round(upper, 2)
    (0.7, 0.75, 0.8)
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
        """Add values, in order, shape (m,).

        Raises
        ------
        InvalidInput
            If one lies outside the interval; nothing is then added.
        """
        if not ((values >= self._low) & (values <= self._high)).all():
            raise InvalidInput(f"values: must lie in [{self._low}, {self._high}]")
        width = self._high - self._low
        count, total, squares, best = self._sums.tolist()
        for value in (values / width).tolist():
            # The mean before a value is where its square is taken about: it lies in the range.
            guess = (total + 0.5 * (self._low + self._high) / width) / (count + 1.0)
            apart = value - guess
            count, total, squares = count + 1.0, total + value, squares + apart * apart
            if count % LOOK_EVERY == 0:
                best = max(best, _log_wealth(total, squares))
        self._sums[:] = count, total, squares, best

    @property
    def count(self) -> int:
        """Values so far."""
        return int(self._sums[0])

    @property
    def log_wealth(self) -> Floats:
        """Natural logarithm of the wealth against a mean of at most zero, shape (1,)."""
        return np.array([_log_wealth(self._sums[1], self._sums[2])])

    @property
    def rejected(self) -> Bools:
        """Whether that wealth ever reached 1 / level, shape (1,)."""
        return np.array([bool(self._sums[3] >= -log(self.level))])

    def interval(self) -> tuple[float, float, float]:
        """Return lower end, estimate and upper end of the mean; at first [low, high]."""
        count, total, squares, _ = self._sums.tolist()
        width = self._high - self._low
        if not count:
            return self._low, 0.5 * (self._low + self._high), self._high
        reach, mean = reach_of(squares, self.level / 2) * width / count, total * width / count
        return max(self._low, mean - reach), mean, min(self._high, mean + reach)


def _log_wealth(s: float, v: float) -> float:
    return log_mean_mixture(s, v, _RHOS)[0]


def reach_of(v: float, level: float) -> float:
    """Return the sum that is exceeded, at any time, with probability at most `level`.

    By the mean of three mixtures, for values in an interval of length 1.

    Parameters
    ----------
    v : float
        Sum of squares about what was expected of each value.
    level : float
        In (0, 1).

    Examples
    --------
    >>> round(reach_of(100.0, 0.05), 1)
    32.8
    """
    return boundary_of_mean(v, -log(level), _RHOS)
