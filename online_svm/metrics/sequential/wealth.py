"""Wealth of bets on the parts of a stream: one factor a row, and two ways to add up.

A part is a set of rows: all, those of a class, a category, a bin, a slice. Each bet multiplies its
stake by a factor whose mean is at most 1 under the null, on the rows of its part alone.

- `bet_on_probabilities`: an event with announced probability p happens with a probability within
  [low, high]. The factor is a likelihood ratio against the nearest edge e: q / e if it happened,
  (1 - q) / (1 - e) if not, with q outside the interval. Its mean is at most 1 for every probability
  inside, so no size must be capped, also for rare events. Bets of all rows: shifts of the odds up
  and down, noise (towards 1/2), and outwards; of other parts: the shifts. The edges are p plus and
  minus `tolerance`, but no more than a factor 1.5 of the odds, and at least 1.5 standard errors of
  a frequency over the examples behind p.
- `bet_on_means`: a height h in [0, 1] has the mean m. The factors are likelihood ratios, too:
  (1 + (a - 1) h) / (1 + (a - 1) m) for the odds of m times a, and the mirrored one.

Two accumulators add the bets that start at each row. For *alarms* M becomes f (M + s_t), where the
stakes s_t sum to 1 over all rows: a supermartingale, which ever reaches 1 / level with probability
at most `level` (Ville's inequality). For *notices* M becomes f (M + 1): the e-detector of Shiryaev
and Roberts (Shin, Ramdas & Rinaldo 2022, "E-detectors"), which reaches L after L rows on average or
later. It does not age: a late change is found as soon as an early one.

Parts of one partition, such as the values of a slice, do not split a level. Each row starts one
stake in all of them together, so the sum over all parts within the tolerance is one accumulator.

Half of the stakes is spread evenly over the first 2,047 rows of the partition. Group g = 1, 2, ...
of later rows gets the share 1 / ((g + 1) (g + 2)); each group is as long as all rows before it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from online_svm.compiled.elementary import logs
from online_svm.compiled.kernel import kernel
from online_svm.storage.state import as_array, require
from online_svm.storage.state_schema import StateSchema, StoredArrays, bytes_of, floats, ints
from online_svm.stream.alarm import AlarmKind, AlarmScope
from online_svm.stream.notice import NoticeDirection
from online_svm.types import Bools, Bytes, Floats, Ints

N_BETS = 12
NO_SIZES: Floats = np.empty(0)  # all bets have the size 1
MAX_PARTS = 64
"""Maximum number of classes or categories that are watched, so that memory is bounded."""

TESTS, RESTS, FOUND, SINCE, OPEN, OPENED, N_COUNTS = range(7)
"""Counts of a part: number of its test; rows to rest; alarms; examples learned before the first row
of the test (-1: none yet); gentlest bet of the open notice's direction (-1: none is open); examples
learned when it opened."""

ALARM, NOTICE = 1, 2  # what a part reached: an alarm; a notice opened or closed

DIRECTIONS: dict[int, NoticeDirection] = {0: "low", 1: "high", 8: "extreme", 11: "cautious"}
"""What the probabilities are, by the gentlest bet that found it."""


class Held(NamedTuple):
    """State of p parts in q partitions."""

    partition: Ints  # of each part
    ages: Ints  # rows of each partition; negative while it rests
    waiting: Floats  # stake that has not started, by partition
    limits: Floats  # wealth at which each part alarms
    notice_limits: Floats  # sum at which a notice opens; infinity: no notices
    counts: Ints  # shape (p, N_COUNTS)
    stakes: Floats  # for alarms, shape (p, N_BETS)
    sums: Floats  # for notices, shape (p, N_BETS)
    closing: Floats  # evidence that an open notice is over
    wealth: Floats  # for alarms, of each part


@kernel
def bet_on_means(
    cells: Ints, heights: Floats, means: Floats, sizes: Floats, widths: Floats, n: Ints,
    begin: int, held: Held,
) -> tuple[int, int]:  # fmt: skip
    """Bet on rows of heights in [0, 1] from `begin` on, until a part reaches something.

    `heights`, shape (m, n_parts), are NaN for rows outside a part; `means`, shape (n_parts,), are
    theirs. `cells`, shape (c,), are the parts in the order of their partitions. `sizes`, shape (m,)
    or (0,), multiply the bets. `widths`, shape (c,), are the parts of the same partition that a row
    has. `n`, shape (m,), are the examples learned before each row. Returns the row after the last
    one used and the sum of what was reached.
    """


@kernel
def bet_on_probabilities(
    cells: Ints, happened: Floats, announced: Floats, doubts: Floats, tolerance: float,
    sizes: Floats, widths: Floats, n: Ints, begin: int, held: Held,
) -> tuple[int, int]:  # fmt: skip
    """Bet on events (1 or 0) with announced probabilities; see `bet_on_means`.

    `cells`, shape (m, c), are the parts of each row; -1 for none.
    `doubts`: the squared standard errors that are tolerated, divided by p (1 - p).
    """


@dataclass(frozen=True, slots=True)
class Finding:
    """A part whose wealth reached its threshold."""

    row: int  # row, in the call of `update`, at which the threshold was reached
    # The rejected null: the announced probability is within the tolerance; the examples are
    # exchangeable
    kind: AlarmKind
    scope: AlarmScope  # kind of part
    name: str | None  # name of the class, category, bin or slice
    monitor: str  # name of the test
    log_wealth: float  # natural logarithms
    threshold: float
    since: int  # examples learned before the first row of the test
    # estimate, lower, upper: mean of y - p since the start with the strongest interval, with its
    # confidence sequence; announced, examples: mean of p and rows since then; None for tests
    # without one
    estimate: float | None = None
    lower: float | None = None
    upper: float | None = None
    announced: float | None = None
    examples: int | None = None
    # For exchangeability tests: the features that moved most, by index, each with its recent mean
    # minus its usual mean, in standard deviations
    moved: tuple[tuple[int, float], ...] = ()


class Part(NamedTuple):
    """A part of the examples, and the number of its partition."""

    scope: AlarmScope
    name: str | None
    partition: int


class Wealth(StoredArrays):
    """Bets on parts, in the order in which these came.

    `levels`: for each partition, the probability that any of its parts ever alarms falsely.
    `run_lengths`: for each partition, rows to a false notice, at least and on average.

    Test k of a part has the level `level` / (k (k + 1)), so that all its tests have `level`.
    """

    _stored = StateSchema(
        bytes_of("_names", "n", stored_as="parts"), ints("_ages", least=-(1 << 20)),
        floats("_waiting"), ints("_first_tests", below=1 << 31),
        ints("_counts", f"p {N_COUNTS}", least=-1), floats("_stakes", f"p {N_BETS}"),
        floats("_sums", f"p {N_BETS}"), floats("_closing", "p"), floats("_wealth", "p"),
    )  # fmt: skip

    def __init__(
        self, kind: AlarmKind, levels: Sequence[float], run_lengths: Sequence[float]
    ) -> None:
        self.kind: AlarmKind = kind
        self._levels, self._run_lengths = np.array(levels), np.array(run_lengths, dtype=float)
        q = len(self._levels)
        self._ages, self._waiting = np.zeros(q, dtype=np.int64), np.ones(q)
        self._first_tests = np.ones(q, dtype=np.int64)  # number of the tests of new parts
        self._clear()

    def _clear(self) -> None:
        self.parts: list[Part] = []
        self._counts = np.empty((0, N_COUNTS), dtype=np.int64)
        self._stakes, self._sums = np.empty((0, N_BETS)), np.empty((0, N_BETS))
        self._closing, self._wealth = np.empty(0), np.empty(0)
        self._set_limits()

    def add(self, scope: AlarmScope, name: str | None, partition: int) -> int:
        """Add a part that starts with the next row; return its number."""
        self.parts.append(Part(scope, name, partition))
        counts = [self._first_tests[partition], 0, 0, -1, -1, 0]
        self._counts = np.concatenate([self._counts, np.array([counts], dtype=np.int64)])
        self._stakes, self._sums = (
            np.concatenate([held, np.zeros((1, N_BETS))]) for held in (self._stakes, self._sums)
        )
        self._closing, self._wealth = np.append(self._closing, 1.0), np.append(self._wealth, 1.0)
        self._set_limits()
        return len(self.parts) - 1

    def _set_limits(self) -> None:
        tests = self._counts[:, TESTS]
        self._partition = np.array([part.partition for part in self.parts], dtype=np.int64)
        self._limits = tests * (tests + 1) / self._levels[self._partition]
        self._notice_limits = self._run_lengths[self._partition]
        self.held = Held(
            self._partition, self._ages, self._waiting, self._limits, self._notice_limits,
            self._counts, self._stakes, self._sums, self._closing, self._wealth,
        )  # fmt: skip

    @property
    def log_wealth(self) -> Floats:
        """Natural logarithm of the wealth of each part."""
        return logs(self._wealth)

    @property
    def thresholds(self) -> Floats:
        """Natural logarithm of the wealth at which each part alarms."""
        return logs(self._limits)

    def take_findings(self, row: int, monitor: str, cooldown: int = 0) -> list[tuple[int, Finding]]:
        """Return the numbers and findings of the parts that alarm; start their next tests."""
        found = []
        for j in np.flatnonzero(self._wealth >= self._limits).tolist():
            scope, name, partition = self.parts[j]
            levels = float(self.log_wealth[j]), float(self.thresholds[j])
            since = int(self._counts[j, SINCE])
            found.append((j, Finding(row, self.kind, scope, name, monitor, *levels, since)))
            self._counts[j, [TESTS, FOUND]] += 1
            self._counts[j, [RESTS, SINCE]] = cooldown, -1
            self._stakes[j], self._wealth[j] = 0.0, max(self._waiting[partition], 0.0)
        if found:
            self._set_limits()
        return found

    def restart(self, cooldown: int = 0) -> None:
        """Discard all evidence, and rest for `cooldown` rows; open notices stay open.

        The tests of a partition go on to a number that none of its tests had, so that the stakes
        of all tests with one number sum to 1. A partition without rows keeps its tests.
        """
        for q in np.flatnonzero(self._ages > 0).tolist():
            own = self._partition == q
            self._first_tests[q] = self._counts[own, TESTS].max(initial=0) + 1
            self._counts[own, TESTS], self._waiting[q] = self._first_tests[q], 1.0
        self._ages[:] = -cooldown
        self._counts[:, [RESTS, SINCE]] = 0, -1
        self._stakes[:], self._sums[:], self._wealth[:] = 0.0, 0.0, 1.0
        self._set_limits()

    def open_notices(self) -> list[tuple[int, int, NoticeDirection]]:
        """Return part, examples learned at its opening, and direction of each open notice."""
        return [
            (j, int(self._counts[j, OPENED]), DIRECTIONS[int(self._counts[j, OPEN])])
            for j in np.flatnonzero(self._counts[:, OPEN] >= 0).tolist()
        ]

    def close_notices(self, chosen: Bools) -> None:
        """Close the notices of the chosen parts, and discard the evidence for later ones."""
        self._counts[chosen, OPEN], self._sums[chosen] = -1, 0.0

    def report(self, j: int) -> dict[str, Any]:
        """Return how the test of part `j` stands, ready for JSON."""
        since = int(self._counts[j, SINCE])
        return {
            "kind": self.kind,
            "scope": self.parts[j].scope,
            "name": self.parts[j].name,
            "log_wealth": float(self.log_wealth[j]),
            "threshold": float(self.thresholds[j]),
            "alarms": int(self._counts[j, FOUND]),
            "since": None if since < 0 else since,
        }

    @property
    def _names(self) -> Bytes:
        return as_array(json.dumps(self.parts).encode())

    @_names.setter
    def _names(self, stored: Bytes) -> None:
        self._clear()
        for scope, name, partition in json.loads(stored.tobytes()):
            require(0 <= partition < len(self._levels), "partitions of the parts")
            require(all((scope, name) != part[:2] for part in self.parts), "names of the parts")
            self.add(scope, name, partition)

    def _on_restored(self) -> None:
        require(len(self._counts) == len(self.parts), "counts")
        require(bool(np.isin(self._counts[:, OPEN], [-1, *DIRECTIONS]).all()), "counts")
        self._set_limits()
