"""Several processes of bets side by side, each with its threshold."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from online_svm.compiled.elementary import logs
from online_svm.errors import InvalidSnapshot
from online_svm.metrics.sequential.bets import BETS, bet_until
from online_svm.storage.arrays import check_floats, check_indices
from online_svm.types import Arrays, Bools, Floats, Ints

LONGEST_REST = 100_000


class BetProcesses:
    """Several wealth processes of `bets`, each with its own tolerance and level.

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
        stop, self.has_rejected = bet_until(
            values,
            begin,
            np.zeros(len(values)) if doubts is None else doubts,
            self._tolerances,
            self._limits,
            self._stakes,
            self._waiting,
            self.ages,
            self._wealth,
        )
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
        return {
            "stakes": self._stakes.copy(),
            "waiting": self._waiting.copy(),
            "wealth": self._wealth.copy(),
            "ages": self.ages.copy(),
            "tests": self.tests.copy(),
            "found": self.found.copy(),
        }

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
        m = len(restored)
        try:
            check_floats(state, "stakes", (m, 2, len(BETS)))
            for name in ("waiting", "wealth"):
                check_floats(state, name, (m,))
            for name in ("tests", "found"):
                check_indices(state, name, (m,), 1 << 31)
            check_indices({"ages": state["ages"] + LONGEST_REST}, "ages", (m,), 1 << 62)
        except (KeyError, ValueError) as error:
            raise InvalidSnapshot(f"bets: {error}") from error
        restored._stakes = state["stakes"].copy()
        restored._waiting, restored._wealth = state["waiting"].copy(), state["wealth"].copy()
        restored.ages, restored.tests = state["ages"].copy(), state["tests"].copy()
        restored.found = state["found"].copy()
        restored._set_limits()
        return restored
