"""Wealth of bets that a bounded quantity keeps a mean near zero, whenever it may begin not to.

The null is |E[e_t | past]| <= d_t, for each t, with a tolerance d_t that is known before e_t. A bet
of size l > 0 that e is larger multiplies a stake by 1 + l (e_t - d_t), a bet that it is smaller by
1 - l (e_t + d_t). Under the null neither grows on average, whatever the dependence between the
examples (Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by betting").

Nobody knows the size of the deviation or where it begins. So the stake is spread beforehand: over
both directions, over `BETS`, and over the example at which a bet begins. The wealth is the sum of
all stakes, those that wait included. It is a nonnegative supermartingale that begins at 1, so that
it ever reaches 1 / level with probability at most `level` (Ville's inequality). Half
of the stake is on the first 2,047 examples, alike; then 1 / ((g + 1) (g + 2)) of it on each g-th
group, which is as long as all before it together. So a deviation that begins at example t has to
earn about ln(t) more than one of which it is known when it begins.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from online_svm.compiled.elementary import logs
from online_svm.compiled.jit import inner, jit
from online_svm.storage.fields import Fields, floats, ints
from online_svm.types import Arrays, Bools, Floats, Ints

BETS = np.array([0.12, 0.3, 0.6, 0.95])
"""Sizes of the bets, each over 1 + d_t: below 1, so that every factor is positive."""

FIRST_GROUP = 2048
"""Where the second group of starts begins: a feed that just began has little to deviate from."""

MOST = 1e200  # wealth is cut here: it remains a supermartingale, and cannot overflow


@inner
def share_of_start(t: int) -> float:
    """Return the share of the stake on bets that begin with example t = 1, 2, ..."""
    if t < FIRST_GROUP:
        return 0.5 / (FIRST_GROUP - 1)
    group, first = 1, FIRST_GROUP
    while 2 * first <= t:
        first *= 2
        group += 1
    return 1.0 / ((group + 1) * (group + 2) * first)


@inner
def bet_on(value: float, tolerance: float, each: float, stakes: Floats) -> float:
    """Advance the stakes of one process, shape (2, n_bets), by one value; return their sum.

    `each` is the stake with which a bet of each direction and size begins at this value.
    """
    scale = 1.0 / (1.0 + tolerance)
    above, below = scale * (value - tolerance), scale * (value + tolerance)
    total = 0.0
    for k in range(len(BETS)):
        up = (stakes[0, k] + each) * (1.0 + BETS[k] * above)
        down = (stakes[1, k] + each) * (1.0 - BETS[k] * below)
        stakes[0, k], stakes[1, k] = up, down
        total += up + down
    if total > MOST:
        for k in range(len(BETS)):
            stakes[0, k], stakes[1, k] = min(stakes[0, k], MOST), min(stakes[1, k], MOST)
    return total


class Bets(NamedTuple):
    """The stakes of processes, and what they are bet by.

    Attributes
    ----------
    tolerances, limits : ndarray of shape (n_processes,)
    stakes : ndarray of shape (n_processes, 2, n_bets)
    waiting, ages, wealth : ndarray of shape (n_processes,)
        Stake not yet begun, rows seen (less than 0 while the process rests), and the sum of all
        stakes.
    """

    tolerances: Floats
    limits: Floats
    stakes: Floats
    waiting: Floats
    ages: Ints
    wealth: Floats


@jit
def bet_until(values: Floats, begin: int, doubts: Floats, bets: Bets) -> tuple[int, bool]:
    """Advance processes by rows from `begin` on, up to the first at which one reaches its limit.

    Parameters
    ----------
    values : ndarray of shape (m, n_processes)
        Each in [-1, 1]; NaN counts as 0: a row that the process is not about.
    doubts : ndarray of shape (m,)
        Of a value y - p, with y either 0 or 1, the tolerance is at least sqrt(doubt * p (1 - p)).
        That is known when p is.
    bets : Bets
        Stakes, ages and wealth are changed in place.

    Returns
    -------
    int
        The row after the last one used.
    bool
        Whether a process reached its limit at it.
    """
    tolerances, limits, stakes, waiting, ages, wealth = bets
    shares = np.empty(len(ages))
    for j in range(len(ages)):
        shares[j] = share_of_start(max(ages[j], 0) + 1)
    for i in range(begin, len(values)):
        is_reached = False
        for j in range(values.shape[1]):
            ages[j] += 1
            if ages[j] <= 0:  # it rests
                continue
            if ages[j] & (ages[j] - 1) == 0:  # the share changes at powers of two alone
                shares[j] = share_of_start(ages[j])
            waiting[j] -= shares[j]
            value = 0.0 if np.isnan(values[i, j]) else values[i, j]
            spread = abs(value) * (1.0 - abs(value))  # p (1 - p), whether y is 0 or 1
            tolerance = max(tolerances[j], math.sqrt(doubts[i] * spread))
            each = shares[j] / (2 * len(BETS))
            wealth[j] = max(waiting[j], 0.0) + bet_on(value, tolerance, each, stakes[j])
            is_reached |= wealth[j] >= limits[j]
        if is_reached:
            return i + 1, True
    return len(values), False


LONGEST_REST = 100_000

_FIELDS = Fields(
    floats("_stakes"),
    floats("_waiting"),
    floats("_wealth"),
    ints("ages", least=-LONGEST_REST),
    ints("tests", below=1 << 31),
    ints("found", below=1 << 31),
)


class BetProcesses:
    """Several wealth processes side by side, each with its own tolerance and level.

    A process that reached its threshold begins anew with `restart`, and all of them do with
    `begin_anew`; the k-th test of each has the level `level` / (k (k + 1)), so that all of its
    tests together have `level`.

    Parameters
    ----------
    tolerances : sequence of float
        Of each process, >= 0.
    levels : sequence of float
        Probability that the process ever reaches its threshold while its null holds.

    Examples
    --------
    >>> bets = BetProcesses([0.02], [0.01])
    >>> bets.update(np.full((60, 1), 0.5))
    40
    >>> bets.rejected, bool(bets.log_wealth[0] >= bets.thresholds[0])
    (array([ True]), True)

    Attributes
    ----------
    ages : ndarray of int of shape (n_processes,)
        Rows that each test has seen; less than 0 while it rests.
    tests : ndarray of int of shape (n_processes,)
        Tests begun, of each process.
    found : ndarray of int of shape (n_processes,)
        Those of them that rejected.
    has_rejected : bool
        Whether a process rejected at the last row that was added.
    """

    def __init__(self, tolerances: Sequence[float], levels: Sequence[float]) -> None:
        self._tolerances = np.array(tolerances, dtype=np.float64)
        self._levels = np.array(levels, dtype=np.float64)
        m = len(self._tolerances)
        self._stakes = np.zeros((m, 2, len(BETS)))
        self._waiting, self._wealth = np.ones(m), np.ones(m)
        self.ages: Ints = np.zeros(m, dtype=np.int64)
        self.tests: Ints = np.ones(m, dtype=np.int64)
        self.found: Ints = np.zeros(m, dtype=np.int64)
        self.has_rejected = False
        self._set_limits()

    def _set_limits(self) -> None:
        self._limits = np.asarray(self.tests * (self.tests + 1) / self._levels)
        self._thresholds = logs(self._limits)

    def add(self, tolerance: float, level: float) -> None:
        """Begin one more process, from the next row on."""
        self._tolerances = np.append(self._tolerances, tolerance)
        self._levels = np.append(self._levels, level)
        self._stakes = np.concatenate([self._stakes, np.zeros((1, 2, len(BETS)))])
        self._waiting, self._wealth = np.append(self._waiting, 1.0), np.append(self._wealth, 1.0)
        self.ages, self.tests = np.append(self.ages, 0), np.append(self.tests, 1)
        self.found = np.append(self.found, 0)
        self._set_limits()

    def __len__(self) -> int:
        return len(self._tolerances)

    @property
    def log_wealth(self) -> Floats:
        """Natural logarithm of the wealth of each process."""
        return logs(self._wealth)

    @property
    def thresholds(self) -> Floats:
        """Natural logarithm of the wealth at which each process rejects its null."""
        return self._thresholds

    @property
    def log_e_values(self) -> Floats:
        """Natural logarithm of an e-value of each process: wealth, by the share of its test.

        The shares 1 / (k (k + 1)) of all tests of a process sum to 1. So this is one however often,
        and whenever, tests begin anew.
        """
        return self.log_wealth - logs(self.tests * (self.tests + 1.0))

    @property
    def rejected(self) -> Bools:
        """Whether each process has reached its threshold."""
        return np.asarray(self._wealth >= self._limits)

    def update(self, values: Floats, begin: int = 0, doubts: Floats | None = None) -> int:
        """Add rows from `begin` on, up to the first at which a process reaches its threshold.

        Parameters
        ----------
        values : ndarray of shape (m, n_processes)
            Each in [-1, 1]; NaN in a row that the process is not about.
        begin : int
        doubts : ndarray of shape (m,), optional
            Widen the tolerance of values y - p to at least sqrt(doubt * p (1 - p)). Each is known
            when p is.

        Returns
        -------
        int
            The row after the last one that was added. What was `rejected` at it has to `restart`.
        """
        doubted = np.zeros(len(values)) if doubts is None else doubts
        own = (self._stakes, self._waiting, self.ages, self._wealth)
        bets = Bets(self._tolerances, self._limits, *own)
        stop, self.has_rejected = bet_until(values, begin, doubted, bets)
        return stop

    def restart(self, process: int, rest: int = 0) -> None:
        """Begin the next test of a process that rejected, after it rested for some rows."""
        self.found[process] += 1
        self._begin_next(np.arange(len(self)) == process, rest)

    def begin_anew(self, rest: int = 0) -> None:
        """Give up all evidence so far: begin the next test of each, after some rows of rest.

        A test that has seen no row has no evidence: it is not counted as one more.
        """
        self.ages[self.ages <= 0] = -rest
        self._begin_next(self.ages > 0, rest)

    def _begin_next(self, chosen: Bools, rest: int) -> None:
        self._stakes[chosen] = 0.0
        self._waiting[chosen] = self._wealth[chosen] = 1.0
        self.ages[chosen] = -rest
        self.tests[chosen] += 1
        self._set_limits()

    def state(self) -> Arrays:
        """Return the stakes of all processes."""
        return _FIELDS.arrays_of(self)

    @classmethod
    def from_state(
        cls, state: Arrays, tolerances: Sequence[float], levels: Sequence[float]
    ) -> Self:
        """Return the processes that `state` describes.

        Raises
        ------
        InvalidSnapshot
            If an array is absent or does not fit.
        """
        restored = cls(tolerances, levels)
        _FIELDS.fill(restored, None, state)
        restored._set_limits()
        return restored
