"""Confidence sequences of mean deviations since several start rows, in constant memory.

Let X_t lie in an interval of length at most 1 that contains a predictable g_t, with conditional
mean m_t. Let S be the sum of X - m and V the sum of (X - g)^2. Then exp(l S - (-ln(1 - l) - l) V)
is a supermartingale for each l in [0, 1) (Fan, Grama & Liu 2015; Howard, Ramdas, McAuliffe &
Sekhon 2021, "Time-uniform, nonparametric, nonasymptotic confidence sequences", theorem 4). Its
mixture over l, with a gamma density of 1 - l, has a closed form (their proposition 9).

A mean over all rows hides a late change. So the sums at some earlier rows are kept, and a mean
since any of them is a difference. For each j, the last two multiples of 64 * 2^j rows are kept:
recent starts are dense. Each start has a share of the level that does not depend on the number of
later starts. The boundary grows with the variance, so the variance is rounded up to a grid.
Computing one boundary takes about forty microseconds; a file holds the boundaries of the usual
level, for as many rows as most feeds have.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from operator import mul
from pathlib import Path
from typing import Self

import numpy as np

from online_svm.compiled.elementary import logs
from online_svm.compiled.kernel import kernel
from online_svm.storage.state_schema import StateSchema, StoredArrays, floats, ints
from online_svm.types import Bools, Floats, Ints

RHO = 10.0
"""Mixture parameter: within a tenth of the tightest boundary for variances from 20 to 2,000."""


@kernel
def log_mixture(s: float, v: float, rho: float) -> float:
    """Return the logarithm of the gamma-exponential mixture for S = `s`, V = `v` and `rho` > 0.

    Under the null the mixture is a supermartingale with initial value 1.
    """


@kernel
def log_mean_mixture(s: float, v: float, rhos: Floats) -> tuple[float, float]:
    """Return the logarithm of the mean of several mixtures, and its derivative by s."""


@kernel
def boundary_of_mean(v: float, wanted: float, rhos: Floats) -> float:
    """Return the sum at which the mean of several mixtures has the logarithm `wanted`, > 0."""


POINTS_PER_OCTAVE = 16  # of the grid of variances: intervals are at most 2 % too wide
FIRST_GROUP_SIZE = 128  # number of starts with a larger share of the level: the first 8,192 rows
N_START_GROUPS = 48

# Ratio of adjacent grid points, by square roots, which are bit-identical on all machines.
_STEP = math.sqrt(math.sqrt(math.sqrt(math.sqrt(2.0))))
_OCTAVE = list(accumulate([1.0] + [_STEP] * (POINTS_PER_OCTAVE - 1), mul))
_RHO = np.array([RHO])

USUAL_LEVEL = 0.05  # one minus the confidence of the intervals in the file

TABLE_FILE = Path(__file__).with_name("interval_reach.npy")
"""Half widths times count, by group and point; written by `scripts/make_interval_reach.py`."""

TABLE_SHAPE = 12, 22 * POINTS_PER_OCTAVE + 1
"""Groups and points in the file: starts up to 8 million rows, variances up to 4 million."""


class IntervalReach:
    """Half widths of intervals, times the count, for each start and variance.

    `level` is one minus the joint confidence of all starts; `logs`, shape (N_START_GROUPS,), is
    ln(1 / level) of one side, by the group of a start.
    """

    def __init__(self, level: float) -> None:
        self.logs = _logs(level)
        self._found: dict[tuple[int, int], float] = {}
        self._table = table() if level == USUAL_LEVEL else []

    def __deepcopy__(self, memo: object) -> Self:
        """Return self: the values depend on the level only, so copies share them."""
        return self

    def of(self, squares: float, number: int) -> float:
        """Return the half width times count, for a sum of squares and the number of a start."""
        group, point = group_of(number), point_of(squares)
        if group < len(self._table) and point < len(self._table[group]):
            return self._table[group][point]
        key = group, point
        if key not in self._found:
            self._found[key] = _find(point, float(self.logs[group]))
        return self._found[key]


@cache
def table() -> list[list[float]]:
    """Return the values in the file, by group and point."""
    found: list[list[float]] = np.load(TABLE_FILE, allow_pickle=False).tolist()
    return found


def make_table() -> Floats:
    """Compute the contents of the file."""
    groups, points = TABLE_SHAPE
    logs = _logs(USUAL_LEVEL)[:groups].tolist()
    return np.array([[_find(point, log) for point in range(points)] for log in logs])


@cache
def _logs(level: float) -> Floats:
    return -logs(np.array([0.5 * level * share_of_group(group) for group in range(N_START_GROUPS)]))


def _find(point: int, log: float) -> float:
    """Return the half width times count at a grid point, for ln(1 / level) of one side."""
    return boundary_of_mean(variance_at(point), log, _RHO)


def point_of(variance: float) -> int:
    """Return the first grid point whose variance is at least `variance`."""
    mantissa, exponent = math.frexp(max(variance, 1.0))
    return POINTS_PER_OCTAVE * (exponent - 1) + bisect_left(_OCTAVE, 2.0 * mantissa)


def variance_at(point: int) -> float:
    """Return the variance at a grid point, 2^(point / POINTS_PER_OCTAVE)."""
    return math.ldexp(_OCTAVE[point % POINTS_PER_OCTAVE], point // POINTS_PER_OCTAVE)


@kernel
def group_of(number: int) -> int:
    """Return the group of a start: 0; 1 ... 127; 128 ... 255; 256 ... 511; and so on."""


def share_of_group(group: int) -> float:
    """Return the share of the level of one start in a group; the shares of all starts sum to 1.

    The first start gets a quarter, the next 127 starts together a quarter, and the groups of 128,
    256, 512, ... starts after them together half.
    """
    if group == 0:
        return 0.25
    if group == 1:
        return 0.25 / (FIRST_GROUP_SIZE - 1)
    starts = FIRST_GROUP_SIZE << (group - 2)
    return 0.5 / ((group - 1) * group * starts)


ROWS_BETWEEN_STARTS = 64
N_SUMS = 4
N_SPACINGS = 24  # 64 * 2^23 rows: more than 500 million


@dataclass(frozen=True, slots=True)
class MeanDeviation:
    """Mean of y - p since a start, with its confidence sequence.

    The intervals of all starts, at all times, jointly cover the mean of the conditional
    expectations.
    """

    since: int  # examples learned before the first row
    rows: int  # number of rows in the mean
    estimate: float
    lower: float
    upper: float
    announced: float  # mean of p


class DeviationSums(StoredArrays):
    """Sums of `m` series of y - p, with y = 0 or 1.

    `level` is one minus the confidence of the intervals of each series.
    """

    _stored = StateSchema(
        ints("_rows"), floats("_expected"), floats("_sums"), ints("_starts"), floats("_before")
    )

    def __init__(self, m: int, level: float = 0.05) -> None:
        self._reach = IntervalReach(level)
        self._rows = np.zeros(1, dtype=np.int64)
        # Count, sum, sum of squares about `_expected`, sum of p
        self._sums = np.zeros((m, N_SUMS))
        self._expected = np.zeros(m)  # exponentially weighted mean of the earlier rows
        self._starts = np.zeros((2 * N_SPACINGS, 2), dtype=np.int64)  # number and n of each start
        self._before = np.zeros((2 * N_SPACINGS, m, N_SUMS))  # the sums at each start

    def add(self) -> None:
        """Add a series that starts with the next row."""
        self._sums = np.concatenate([self._sums, np.zeros((1, N_SUMS))])
        self._expected = np.append(self._expected, 0.0)
        zeros = np.zeros((len(self._before), 1, N_SUMS))
        self._before = np.concatenate([self._before, zeros], axis=1)

    def update(
        self, cells: Ints, happened: Floats, announced: Floats, n: Ints, sizes: Floats
    ) -> None:
        """Add rows of events, y = 1 or 0, with announced probabilities.

        `cells`, shape (m, c), are the series that each row belongs to; -1 for none. `n`, shape
        (m,), is the number of examples learned before each row. `sizes`, shape (m,), in (0, 1], are
        the weights of the rows in the means; without any, shape (0,), all are 1.
        """
        if not self._rows[0] and len(n):
            self._starts[:, 1] = n[0]
        held = (self._rows, self._expected, self._sums, self._starts, self._before)
        _add(cells, happened, announced, n, sizes, held)

    def strongest(self, series: int, upto: int | None = None) -> MeanDeviation | None:
        """Return the mean whose interval is farthest from 0; None before the first row.

        If all intervals contain 0, return the mean with the largest ratio to its standard error.
        `upto`: examples learned before the first row, at most, where there is such a mean.
        """
        known, distances = (self._sums, self._before, self._starts), np.empty(len(self._starts))
        most, chosen = _outlook(series, *known, self._reach.logs, distances)
        if chosen < 0:
            return None
        if upto is not None:
            allowed = (distances > -1.0) & (self._starts[:, 1] <= upto)
            if allowed.any():
                distances[~allowed] = -1.0
                chosen = self._surest(series, allowed)
        if most > 0.0:
            chosen = self._farthest(series, distances, chosen)
        return self._since(chosen, series)

    def _surest(self, series: int, allowed: Bools) -> int:
        """Return the allowed start with the largest ratio to its standard error."""
        totals, squares = (self._sums[series] - self._before[:, series]).T[1:3]
        ratios = np.abs(totals) / np.sqrt(np.maximum(squares, 0.0) + 1.0)
        return int(np.argmax(np.where(allowed, ratios, -1.0)))

    def _farthest(self, series: int, distances: Floats, usual: int) -> int:
        """Return the start whose interval is farthest from 0; `usual` if all contain 0."""
        best, chosen = 0.0, usual
        for at in np.argsort(-distances, kind="stable").tolist():
            if distances[at] <= best:  # upper bounds are sorted: no later start is better
                break
            count, total, squares, _ = (self._sums[series] - self._before[at, series]).tolist()
            distance = (abs(total) - self._reach.of(squares, int(self._starts[at, 0]))) / count
            if distance > best:
                best, chosen = distance, at
        return chosen

    def _since(self, at: int, series: int) -> MeanDeviation:
        number, since = self._starts[at].tolist()
        count, total, squares, p = (self._sums[series] - self._before[at, series]).tolist()
        reach = self._reach.of(squares, number)
        lower, upper = max(-1.0, (total - reach) / count), min(1.0, (total + reach) / count)
        return MeanDeviation(since, int(count), total / count, lower, upper, p / count)


@kernel
def _outlook(
    series: int, sums: Floats, before: Floats, starts: Ints, logs: Floats, distances: Floats
) -> tuple[float, int]:
    """Write an upper bound of each interval's distance from 0, shape (n_starts,); -1 without rows.

    Returns the largest bound and the start with the largest z (-1 before the first row).
    """


@kernel
def _add(
    cells: Ints, happened: Floats, announced: Floats, n: Ints, sizes: Floats,
    held: tuple[Ints, Floats, Floats, Ints, Floats],
) -> None:  # fmt: skip
    """Add each row, in order, multiplied by its size; at a start row, keep the sums first.

    `held` contains the number of rows, the expected values, the sums, the starts and the kept sums.
    """


@kernel
def squares_about_mean(values: Floats, squares: Floats) -> None:
    """Write squares about an exponentially weighted mean of earlier values, shape (m,)."""
