"""Families of sequential tests under one level: tolerant bets that a mean stays near zero.

The null is |E[e_t | past]| <= d_t for each t, with a tolerance d_t known before e_t. A bet of size
l > 0 that e is larger multiplies its stake by 1 + l (e_t - d_t); a bet that e is smaller multiplies
it by 1 - l (e_t + d_t). Under the null neither grows on average, under any dependence between
examples (Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by betting").

Size and start of a deviation are unknown. So the stake is split in advance over both directions,
over `BET_SIZES`, and over the example at which a bet starts. The wealth is the sum of all stakes,
including stakes not yet started. It is a non-negative supermartingale with initial value 1, so it
ever reaches 1 / level with probability at most `level` (Ville's inequality).

Half of the stake is spread evenly over the first 2,047 examples. Group g = 1, 2, ... of later
examples gets the share 1 / ((g + 1) (g + 2)); each group is as long as all examples before it. So
detecting a deviation with an unknown start t costs about ln(t) more log-wealth than with a known
start.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from online_svm.compiled.elementary import logs
from online_svm.compiled.kernel import kernel
from online_svm.errors import InvalidInput
from online_svm.storage.state import as_array, require
from online_svm.storage.state_schema import (
    StateSchema,
    StoredArrays,
    bytes_of,
    floats,
    ints,
    part,
)
from online_svm.stream.alarm import AlarmKind, AlarmScope
from online_svm.types import Bools, Bytes, Floats, Ints

BET_SIZES = np.array([0.12, 0.3, 0.6, 0.95])
"""Bet sizes, each divided by 1 + d_t; below 1, so that every factor is positive."""


class Bets(NamedTuple):
    """The stakes of several processes and their parameters."""

    tolerances: Floats
    limits: Floats
    stakes: Floats  # shape (n_processes, 2, n_bets); all others (n_processes,)
    waiting: Floats  # stake not yet started
    ages: Ints  # rows seen; negative during a cooldown
    wealth: Floats  # sum of all stakes


@kernel
def bet_until(
    values: Floats, begin: int, variance_factors: Floats, sizes: Floats, bets: Bets
) -> tuple[int, bool]:
    """Advance the processes row by row from `begin`, until one reaches its limit.

    `values`, shape (m, n_processes), lie in [-1, 1]; NaN counts as 0, for rows outside the scope of
    the process. For a value y - p with y = 0 or 1, the tolerance is at least sqrt(f p (1 - p)),
    with f of the row in `variance_factors`, shape (m,). `sizes`, shape (m,), in [0, 1], multiply
    the sizes of the bets on each row. Returns the row after the last one used, and whether a
    process reached its limit there.
    """


MAX_COOLDOWN_ROWS = 100_000


class BetProcesses(StoredArrays):
    """Several wealth processes in parallel, each with its own tolerance (>= 0) and level.

    The level is the probability that a process ever rejects under its null. `restart` starts the
    next test of a process that rejected, `restart_all` of all processes. Test k of a process has
    the level `level` / (k (k + 1)), so that all tests of the process together have `level`.
    """

    _stored = StateSchema(
        floats("_stakes"), floats("_waiting"), floats("_wealth"),
        ints("ages", least=-MAX_COOLDOWN_ROWS), ints("tests", below=1 << 31),
        ints("found", below=1 << 31),
    )  # fmt: skip

    def __init__(self, tolerances: Sequence[float], levels: Sequence[float]) -> None:
        self._tolerances = np.array(tolerances, dtype=np.float64)
        self._levels = np.array(levels, dtype=np.float64)
        m = len(self._tolerances)
        self._stakes = np.zeros((m, 2, len(BET_SIZES)))
        self._waiting, self._wealth = np.ones(m), np.ones(m)
        self.ages: Ints = np.zeros(m, dtype=np.int64)  # rows of this test; negative in a cooldown
        self.tests: Ints = np.ones(m, dtype=np.int64)  # started
        self.found: Ints = np.zeros(m, dtype=np.int64)  # tests that rejected
        self.has_rejected = False  # at the last added row
        self._set_limits()

    def _set_limits(self) -> None:
        self._limits = np.asarray(self.tests * (self.tests + 1) / self._levels)
        self._thresholds = logs(self._limits)

    def add(self, tolerance: float, level: float) -> None:
        """Add a process that starts with the next row."""
        self._tolerances = np.append(self._tolerances, tolerance)
        self._levels = np.append(self._levels, level)
        self._stakes = np.concatenate([self._stakes, np.zeros((1, 2, len(BET_SIZES)))])
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
        """Natural logarithm of an e-value of each process: its wealth times the share of its test.

        The shares 1 / (k (k + 1)) sum to 1. So this is an e-value however often tests are
        restarted.
        """
        return self.log_wealth - logs(self.tests * (self.tests + 1.0))

    @property
    def rejected(self) -> Bools:
        """Whether each process has reached its threshold."""
        return np.asarray(self._wealth >= self._limits)

    def update(
        self,
        values: Floats,
        begin: int = 0,
        variance_factors: Floats | None = None,
        sizes: Floats | None = None,
    ) -> int:
        """Add rows from `begin` until a process reaches its threshold; see `bet_until`.

        Returns the row after the last one added. Processes `rejected` at it must `restart`.
        """
        factors = np.zeros(len(values)) if variance_factors is None else variance_factors
        sizes = np.ones(len(values)) if sizes is None else sizes
        own = (self._stakes, self._waiting, self.ages, self._wealth)
        bets = Bets(self._tolerances, self._limits, *own)
        stop, self.has_rejected = bet_until(values, begin, factors, sizes, bets)
        return stop

    def restart(self, process: int, cooldown: int = 0) -> None:
        """Start the next test of a process that rejected, after `cooldown` rows."""
        self.found[process] += 1
        self._begin_next(np.arange(len(self)) == process, cooldown)

    def restart_all(self, cooldown: int = 0) -> None:
        """Discard all evidence: start the next test of each process, after `cooldown` rows.

        A test that has seen no rows is kept: it has no evidence and needs no new level.
        """
        self.ages[self.ages <= 0] = -cooldown
        self._begin_next(self.ages > 0, cooldown)

    def _begin_next(self, chosen: Bools, cooldown: int) -> None:
        self._stakes[chosen] = 0.0
        self._waiting[chosen] = self._wealth[chosen] = 1.0
        self.ages[chosen] = -cooldown
        self.tests[chosen] += 1
        self._set_limits()

    def _on_restored(self) -> None:
        self._set_limits()


@dataclass(frozen=True, slots=True)
class Finding:
    """A sequential test whose wealth reached its threshold."""

    row: int  # row, in the call of `update`, at which the threshold was reached
    # The rejected null: the announced probability is within the tolerance; the examples are
    # exchangeable; two calibrators are equally good
    kind: AlarmKind
    scope: AlarmScope  # kind of part that the test covers
    name: str | None  # name of the class, category, bin or slice
    monitor: str  # name of the test
    # log_wealth, threshold: natural logarithms; under the null the wealth is a supermartingale with
    # initial value 1
    log_wealth: float
    threshold: float
    since: int  # examples learned before the first row of the test
    # estimate, lower, upper: mean of y - p since the start with the strongest interval, with its
    # confidence sequence; None for tests without one
    estimate: float | None = None
    lower: float | None = None
    upper: float | None = None
    # For exchangeability tests: the features that moved most, by index, each with its recent mean
    # minus its usual mean, in standard deviations
    moved: tuple[tuple[int, float], ...] = ()


MAX_TESTS_PER_SCOPE = 64
"""Maximum number of watched classes, categories or slices, so that memory is bounded."""

_HARMONIC = sum(1.0 / k for k in range(1, MAX_TESTS_PER_SCOPE + 1))


_SUM_OF_SQUARES = math.pi * math.pi / 6.0  # the sum of 1 / k^2 over k = 1, 2,


class Subject(NamedTuple):
    """The part of the examples that a test covers."""

    scope: AlarmScope
    name: str | None


class Family(StoredArrays):
    """The tests of a family, in the order in which they started, under one level.

    Each scope has a share of the level. The number of classes, categories or slices is unknown when
    the first test starts. So test k of a scope gets the share 1 / k of the scope's level, divided
    by the sum of all such shares. In the scope "labels" the share is 1 / k^2: most feeds have two
    classes, and one test there.
    """

    _stored = StateSchema(
        bytes_of("_names", "n", stored_as="parts"), ints("since", "m", least=-1), part("bets")
    )

    def __init__(
        self, kind: AlarmKind, shares: Mapping[AlarmScope, float], level: float, tolerance: float
    ) -> None:
        self.kind: AlarmKind = kind
        self._levels = {scope: share * level for scope, share in shares.items()}
        self._tolerance = tolerance
        self.parts: list[Subject] = []
        self.bets = BetProcesses([], [])
        self.since: list[int] = []  # examples learned before a test's first row; -1: not started

    def add(self, part: Subject) -> bool:
        """Start a test with the next row; return False if its scope is full or unwatched."""
        if not self.accepts(part):
            return False
        self.parts.append(part)
        self.bets.add(self._tolerance, self.levels[-1])
        self.since.append(-1)
        return True

    def accepts(self, part: Subject) -> bool:
        """Return whether `add` would start a test."""
        same = sum(other.scope == part.scope for other in self.parts)
        return part.scope in self._levels and same < MAX_TESTS_PER_SCOPE and part not in self.parts

    @property
    def levels(self) -> list[float]:
        """Levels of all tests."""
        found, places = [], Counter[str]()
        for scope, _ in self.parts:
            places[scope] += 1
            found.append(self._levels[scope] / _divisor(scope, places[scope]))
        return found

    def numbers(self, scope: AlarmScope, names: Iterable[str | None]) -> Ints:
        """Return the numbers of the tests of these parts; -1 for a part without one."""
        known = {part: j for j, part in enumerate(self.parts)}
        found = [known.get(Subject(scope, name), -1) for name in names]
        return np.array(found, dtype=np.int64)

    def start(self, n: int) -> None:
        """Record that the next row, answered after `n` examples, is the first of new tests."""
        if -1 in self.since:
            self.since = [n if since < 0 else since for since in self.since]

    def take_rejections(
        self, row: int, monitor: str, cooldown: int = 0
    ) -> list[tuple[int, Finding]]:
        """Return the numbers and findings of the tests that rejected; start their next tests."""
        found = []
        for j in np.flatnonzero(self.bets.rejected).tolist():
            levels = float(self.bets.log_wealth[j]), float(self.bets.thresholds[j])
            finding = Finding(row, self.kind, *self.parts[j], monitor, *levels, self.since[j])
            found.append((j, finding))
            self.bets.restart(j, cooldown)
            self.since[j] = -1
        return found

    def restart(self, cooldown: int = 0) -> None:
        """Discard past evidence: each test continues at its next level."""
        self.bets.restart_all(cooldown)
        self.since = [-1] * len(self.since)

    def report(self, j: int) -> dict[str, Any]:
        """Return how test `j` stands, ready for JSON."""
        return {
            "kind": self.kind,
            "scope": self.parts[j].scope,
            "name": self.parts[j].name,
            "log_wealth": float(self.bets.log_wealth[j]),
            "threshold": float(self.bets.thresholds[j]),
            "alarms": int(self.bets.found[j]),
            "since": None if self.since[j] < 0 else self.since[j],
        }

    @property
    def _names(self) -> Bytes:
        return as_array(json.dumps(self.parts).encode())

    @_names.setter
    def _names(self, stored: Bytes) -> None:
        self.parts, self.since, self.bets = [], [], BetProcesses([], [])
        named = [Subject(*one) for one in json.loads(stored.tobytes())]
        require(all(self.add(part) for part in named), "names of the tests")

    def _on_restored(self) -> None:
        require(len(self.since) == len(self.parts), "since")


def _divisor(scope: AlarmScope, place: int) -> float:
    """Return the divisor of the level of a scope for its test number `place`, from 1."""
    if scope == "overall":
        return 1.0
    return place * (place * _SUM_OF_SQUARES if scope == "labels" else _HARMONIC)


def e_benjamini_hochberg(log_wealth: ArrayLike, level: float) -> list[int]:
    """Return the nulls to reject, with a false discovery rate of at most `level`, in (0, 1).

    e-BH (Wang & Ramdas 2022, "False discovery rate control with e-values") rejects the k largest
    e-values, for the largest k such that the k-th is at least m / (k level). The e-values, given as
    natural logarithms, may be dependent. Raises InvalidInput if the level is out of range, or a
    logarithm is NaN.
    """
    if not 0.0 < level < 1.0:
        raise InvalidInput(f"level: must lie in (0, 1), got {level}")
    values = _checked(log_wealth)
    order = np.argsort(-values, kind="stable")
    k = np.arange(1, len(values) + 1)
    enough = np.flatnonzero(values[order] >= logs(len(values) / (k * level)))
    return sorted(order[: enough[-1] + 1].tolist()) if len(enough) else []


def _checked(log_wealth: ArrayLike) -> Floats:
    values = np.array(log_wealth, dtype=np.float64)
    if values.ndim != 1 or np.isnan(values).any():
        raise InvalidInput("log_wealth: expected one number a test, none of them NaN")
    return values
