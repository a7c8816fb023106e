"""Mean deviations since several starts, with confidence sequences, in constant memory.

A mean since the beginning hides what began late. So the sums up to some earlier rows are kept, and
a mean since any of these is a difference. Of the multiples of 64 * 2^j rows the last two are kept,
for each j: near starts lie close together.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.metrics.sequential.interval_reach import IntervalReach, group_of
from online_svm.storage.fields import Fields, floats, ints
from online_svm.types import Arrays, Floats, Ints

MEMORY = 32.0  # rows behind the mean that squares are taken about
SPACING = 64  # rows between two starts
DOUBLINGS = 24  # 64 * 2^23 rows: more than 500 million

_FIELDS = Fields(
    ints("_rows"), floats("_expected"), floats("_sums"), ints("_starts"), floats("_before")
)


@dataclass(frozen=True, slots=True)
class Deviation:
    """Mean of y - p since a start, with its confidence sequence.

    Attributes
    ----------
    since : int
        Examples learned before the first row.
    rows : int
        Rows it is the mean of.
    estimate, lower, upper : float
        Together, the intervals of all starts and all times hold the mean of what was expected of
        each row, given those before it, with the stated probability.
    """

    since: int
    rows: int
    estimate: float
    lower: float
    upper: float


class DeviationSums:
    """Sums of several series of y - p, with y either 0 or 1.

    Parameters
    ----------
    m : int
        Number of series.
    level : float
        One minus the confidence of the intervals of each.

    Examples
    --------
    >>> sums = DeviationSums(1)
    >>> sums.update(np.full((640, 1), 0.5), np.arange(640))
    >>> strongest = sums.strongest(0)
    >>> strongest.since, strongest.estimate, round(strongest.lower, 2)
    (0, 0.5, 0.48)
    """

    def __init__(self, m: int, level: float = 0.05) -> None:
        self._reach = IntervalReach(level)
        self._rows = np.zeros(1, dtype=np.int64)
        self._sums = np.zeros((m, 3))  # count, sum, sum of squares about what was expected
        self._expected = np.zeros(m)  # an exponentially weighted mean of the rows before
        self._starts = np.zeros((2 * DOUBLINGS, 2), dtype=np.int64)  # number of the start, n
        self._before = np.zeros((2 * DOUBLINGS, m, 3))  # the sums at each start

    def add(self) -> None:
        """Begin one more series, from the next row on."""
        self._sums = np.concatenate([self._sums, np.zeros((1, 3))])
        self._expected = np.append(self._expected, 0.0)
        zeros = np.zeros((len(self._before), 1, 3))
        self._before = np.concatenate([self._before, zeros], axis=1)

    def update(self, values: Floats, n: Ints) -> None:
        """Add rows.

        Parameters
        ----------
        values : ndarray of shape (m, n_series)
            y - p of each series, with y either 0 or 1; NaN where a row is not in it.
        n : ndarray of shape (m,)
            Examples learned before each row.
        """
        if not self._rows[0] and len(n):
            self._starts[:, 1] = n[0]
        held = (self._rows, self._expected, self._sums, self._starts, self._before)
        _add(values, n, held)

    def strongest(self, series: int) -> Deviation | None:
        """Return the mean whose interval lies farthest from 0; None before the first row.

        Where all intervals hold 0 it is the mean that is largest beside its standard error. The
        intervals since all starts hold together, at all times, with probability 1 - `level`.
        """
        known = self._sums, self._before, self._starts
        distances, most, chosen = _outlook(series, *known, self._reach.logs)
        if chosen < 0:
            return None
        if most > 0.0:
            chosen = self._farthest(series, distances, chosen)
        return self._since(chosen, series)

    def _farthest(self, series: int, distances: Floats, usual: int) -> int:
        """Return the start whose interval lies farthest from 0; `usual` where all hold it."""
        best, chosen = 0.0, usual
        for at in np.argsort(-distances, kind="stable").tolist():
            if distances[at] <= best:  # so is that of every start behind it
                break
            count, total, squares = (self._sums[series] - self._before[at, series]).tolist()
            distance = (abs(total) - self._reach.of(squares, int(self._starts[at, 0]))) / count
            if distance > best:
                best, chosen = distance, at
        return chosen

    def _since(self, at: int, series: int) -> Deviation:
        number, since = self._starts[at].tolist()
        count, total, squares = (self._sums[series] - self._before[at, series]).tolist()
        reach = self._reach.of(squares, number)
        lower, upper = max(-1.0, (total - reach) / count), min(1.0, (total + reach) / count)
        return Deviation(since, int(count), total / count, lower, upper)

    def state(self) -> Arrays:
        """Return the sums, and those at each start."""
        return _FIELDS.arrays_of(self)

    @classmethod
    def from_state(cls, state: Arrays, m: int, level: float = 0.05) -> Self:
        """Return the sums that `state` describes.

        Raises
        ------
        InvalidSnapshot
            If an array is absent or does not fit.
        """
        restored = cls(m, level)
        _FIELDS.fill(restored, None, state)
        return restored


@jit
def _outlook(
    series: int, sums: Floats, before: Floats, starts: Ints, logs: Floats
) -> tuple[Floats, float, int]:
    """Return how far each interval may lie from 0, the most of that, and the start with most z.

    The start is -1 before the first row. No mixture exceeds exp(s^2 / (2 v)): a boundary is at
    least sqrt(2 v ln(1 / level)), which costs less to find.
    """
    distances, chosen, best, most = np.full(len(starts), -1.0), -1, -1.0, -1.0
    for i in range(len(starts)):
        count = sums[series, 0] - before[i, series, 0]
        if count < 1.0:
            continue
        total = abs(sums[series, 1] - before[i, series, 1])
        squares = max(0.0, sums[series, 2] - before[i, series, 2])
        least = np.sqrt(2.0 * squares * logs[group_of(starts[i, 0])])
        distances[i] = (total - least) / count
        most = max(most, distances[i])
        z = total / np.sqrt(squares + 1.0)
        if z > best:
            best, chosen = z, i
    return distances, most, chosen


@jit
def _add(values: Floats, n: Ints, held: tuple[Ints, Floats, Floats, Ints, Floats]) -> None:
    """Add each row, in order; at a start keep the sums before it."""
    rows, expected, sums, starts, before = held
    for i in range(len(values)):
        if rows[0] > 0 and rows[0] % SPACING == 0:
            number = rows[0] // SPACING
            for j in range(DOUBLINGS):
                if number % 2**j:
                    break
                at = 2 * j + (number // 2**j) % 2
                starts[at, 0], starts[at, 1] = number, n[i]
                before[at] = sums
        rows[0] += 1
        for k in range(values.shape[1]):
            value = values[i, k]
            if not np.isnan(value):
                # y - p tells p, and so its range, which has to hold what it is compared with.
                lowest = value if value < 0.0 else value - 1.0
                about = min(max(expected[k], lowest), lowest + 1.0) if value else 0.0
                sums[k, 0] += 1.0
                sums[k, 1] += value
                sums[k, 2] += (value - about) * (value - about)
                expected[k] += (value - expected[k]) / MEMORY
