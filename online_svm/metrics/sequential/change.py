"""Tests that are never done: for a change that may come at any time, and come again.

A wealth that bounds the probability of a single false alarm for ever needs more evidence the older
a feed is. These statistics need the same at any age. They do raise a false alarm some day: what is
bounded is how long that takes on average.

- Shiryaev-Roberts: R_t = (R_{t-1} + 1) f_t, with f the factor of a bet of `bets`. While its null
  holds R_t - t is a supermartingale, so the mean run length to R >= A is at least A.
- CUSUM: C_t = max(C_{t-1}, 1) f_t <= R_t, with the same bound.

Both are means over directions and sizes of bets, for which the bound holds as well (Shin, Ramdas &
Rinaldo 2024, "E-detectors: a nonparametric framework for sequential change detection").
"""

from typing import Literal, Self

import numpy as np

from online_svm.compiled.elementary import log, logs
from online_svm.compiled.jit import jit
from online_svm.compiled.ordered_sums import sum_rows
from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.metrics.sequential.bets import BETS, MOST
from online_svm.storage.arrays import check_floats
from online_svm.types import Arrays, Bools, Floats

Form = Literal["shiryaev-roberts", "cusum"]


class ChangeTest:
    """Statistics of a change of the mean, for several series.

    The null is |E[e_t | past]| <= tolerance.

    Parameters
    ----------
    series : int
    tolerance : float
        >= 0.
    run_length : float
        Mean number of rows to a false alarm of each series is at least so large.
    form : {"shiryaev-roberts", "cusum"}

    Raises
    ------
    InvalidInput
        If a parameter is out of range.

    Examples
    --------
    >>> test = ChangeTest(1, tolerance=0.02, run_length=10_000)
    >>> test.update(np.full((40, 1), 0.5)).shape
    (40, 1)
    >>> test.rejected
    array([ True])
    """

    def __init__(
        self,
        series: int,
        tolerance: float,
        run_length: float,
        form: Form = "shiryaev-roberts",
    ) -> None:
        if not (series >= 0 and 0.0 <= tolerance < 1.0 and run_length >= 1.0):
            raise InvalidInput(
                "series, tolerance, run_length: must be >= 0, in [0, 1) and >= 1, got "
                f"{series}, {tolerance} and {run_length}"
            )
        self.tolerance, self.form = tolerance, form
        self.threshold = log(float(run_length))
        self._statistics = np.zeros((series, 2, len(BETS)))

    def update(self, values: Floats) -> Floats:
        """Add rows; return the logarithm of each statistic after each row.

        Parameters
        ----------
        values : ndarray of shape (m, n_series)
            Each in [-1, 1]; NaN in a row that a series is not about.

        Returns
        -------
        ndarray of shape (m, n_series)
        """
        found = np.empty(values.shape)
        sizes = BETS / (1.0 + self.tolerance)
        is_sum = self.form == "shiryaev-roberts"
        _advance(values, self.tolerance, sizes, is_sum, self._statistics, found)
        return found

    @property
    def log_wealth(self) -> Floats:
        """Natural logarithm of each statistic; no wealth, since stakes are added to it."""
        each = self._statistics.reshape(-1, 2 * len(BETS)).T
        means = sum_rows(each) / len(each)
        return logs(np.maximum(means, 1.0 / MOST))

    @property
    def rejected(self) -> Bools:
        """Whether each statistic is at its threshold; it goes on either way."""
        return np.asarray(self.log_wealth >= self.threshold)

    def restart(self, series: int) -> None:
        """Begin anew, as after an alarm."""
        self._statistics[series] = 0.0

    def state(self) -> Arrays:
        """Return the statistics."""
        return {"statistics": self._statistics.copy()}

    @classmethod
    def from_state(
        cls,
        state: Arrays,
        series: int,
        tolerance: float,
        run_length: float,
        form: Form = "shiryaev-roberts",
    ) -> Self:
        """Return the tests that `state` describes.

        Raises
        ------
        InvalidSnapshot
            If the array is absent or does not fit.
        """
        restored = cls(series, tolerance, run_length, form)
        try:
            check_floats(state, "statistics", restored._statistics.shape)
        except (KeyError, ValueError) as error:
            raise InvalidSnapshot(f"change: {error}") from error
        restored._statistics = state["statistics"].copy()
        return restored


@jit
def _advance(
    values: Floats,
    tolerance: float,
    sizes: Floats,
    is_sum: bool,
    statistics: Floats,
    logs: Floats,
) -> None:
    for i in range(len(values)):
        for j in range(values.shape[1]):
            value = 0.0 if np.isnan(values[i, j]) else values[i, j]
            total = 0.0
            for side in range(2):
                gain = value - tolerance if side == 0 else -value - tolerance
                for k in range(len(sizes)):
                    before = statistics[j, side, k]
                    start = before + 1.0 if is_sum else max(before, 1.0)
                    statistics[j, side, k] = min(start * (1.0 + sizes[k] * gain), MOST)
                    total += statistics[j, side, k]
            logs[i, j] = log(total / (2 * len(sizes)))
