"""Tolerant bets on every announced probability: overall, by class, category, bin and slice."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from online_svm.metrics.sequential.bet_processes import BetProcesses
from online_svm.metrics.sequential.calibration_values import BINS, Columns, calibration_values
from online_svm.metrics.sequential.deviation_sums import Deviation, DeviationSums
from online_svm.metrics.sequential.families import Family, Finding, Subject, e_benjamini_hochberg
from online_svm.storage.arrays import nest, under
from online_svm.storage.fields import Fields, ints, one
from online_svm.stream.alarm import AlarmScope
from online_svm.stream.scored_rows import ScoredRows
from online_svm.types import Arrays, Floats, Ints

SHARES: dict[AlarmScope, float] = {
    "overall": 0.25,
    "class": 0.35,
    "category": 0.2,
    "bin": 0.1,
    "slice": 0.1,
}
"""Shares of the level."""

DOUBT = 1.5
"""Standard errors, of a frequency among the examples learned so far, that a p may be off by.

Of 120 i.i.d. streams of four classes 4 alarm at 0, 3 at 1 and none at 1.5; at 1.6 the alarm after
the first steps of 2cht comes 140 examples later.
"""

INTERVAL_LEVEL = 0.05
"""One minus the confidence of the intervals, which decide nothing."""

REST = 250
"""Rows for which a test rests after a finding: the feed is refitted meanwhile, by default."""

SLICE_RATE = 0.05
"""False discovery rate of the slices that a report calls off."""

REPORTED = 4  # tests in a report: one is made every hundred examples, by default


_FIELDS = Fields(one("_begun", least=-1))


class CalibrationMonitor:
    """Tests |E[y - p | past]| <= d_n of the probability, and of each part of the examples.

    d_n is the larger of `tolerance` and `DOUBT` sqrt(p (1 - p) / n), with n the examples that were
    learned, since the feed or its model began, when p was announced: a probability that was learned
    from few is off by more through no fault of its own.

    A part's y - p counts as 0 in rows that are not of it: a finding means that the rows of the part
    alone put the mean over all rows off by more than the tolerance. The level holds whatever the
    dependence between examples, and across refits, where each label is known before the next
    answer. Where labels come late, "past" is all that was answered and labelled before the label:
    see docs/monitoring.md.

    Parameters
    ----------
    tolerance, level : float
        `level` is of all tests together, for ever.

    Examples
    --------
    >>> monitor = CalibrationMonitor(tolerance=0.02, level=0.01)
    >>> label, said = np.ones(100, dtype=np.int64), np.tile([0.6, 0.4], (100, 1))
    >>> rows = ScoredRows(np.arange(9900, 10000), ("a", "b"), label, said, said, said, said,
    ...                   np.zeros((100, 1)), label, model=1)
    >>> [(found.row, found.scope) for found in monitor.update(rows)][:1]
    [(37, 'overall')]
    """

    def __init__(self, tolerance: float, level: float) -> None:
        self._tolerance = tolerance
        self._family = Family({scope: share * level for scope, share in SHARES.items()})
        for part in (
            Subject("overall", None),
            *(Subject("bin", _of_bin(b)) for b in range(BINS)),
        ):
            self._family.add(part)
        m = len(self._family.parts)
        self._bets = BetProcesses([tolerance] * m, self._family.levels)
        self._sums = DeviationSums(m, INTERVAL_LEVEL)
        self._since = [-1] * m
        self._classes: tuple[str | None, ...] = ()
        self._categories = 0
        self._begun = 0  # examples learned when the feed, or its model, began; -1: at the next row
        self._met: set[int] = set()  # categories; after a restart they are met again
        self._columns: Columns | None = None  # of the present parts and classes

    def _add(self, part: Subject) -> None:
        level = self._family.add(part)
        if level is not None:
            self._bets.add(self._tolerance, level)
            self._sums.add()
            self._since.append(-1)
            self._columns = None

    def update(self, rows: ScoredRows) -> list[Finding]:
        """Add rows, in order; return what was found, in order."""
        found: list[Finding] = []
        count = len(rows)
        for begin, stop in self._with_known_parts(rows):
            part = rows if stop - begin == count else rows.part(begin, stop)
            values, at = self._values(part), 0
            doubts = self._doubts(part.n)
            while at < stop - begin:
                if -1 in self._since:
                    self._since = [int(part.n[at]) if n < 0 else n for n in self._since]
                next_at = self._bets.update(values, at, doubts)
                self._sums.update(values[at:next_at], part.n[at:next_at])
                if self._bets.has_rejected:
                    found += self._found(begin + next_at - 1)
                at = next_at
        return found

    def _doubts(self, n: Ints) -> Floats:
        """Return the square of the tolerance that each announced p adds, over p (1 - p)."""
        if self._begun < 0:
            self._begun = int(n[0])
        return DOUBT * DOUBT / np.maximum(n - self._begun, 1.0)

    def _with_known_parts(self, rows: ScoredRows) -> Iterator[tuple[int, int]]:
        """Yield runs of rows; the tests of what appears in a row begin with that row."""
        if rows.classes != self._classes:
            self._classes, self._columns = rows.classes, None
            watched = rows.classes[1:] if len(rows.classes) == 2 else rows.classes
            for label in watched:
                if label is not None:
                    self._add(Subject("class", label))
        begin = 0
        for row in [] if self._has_met_all(rows) else _first_rows(rows):
            new = self._new_parts(rows, row)
            if new and row > begin:
                yield begin, row
                begin = row
            for part in new:
                self._add(part)
            category = int(rows.category[row])
            self._met.add(category)
            if category >= self._categories:
                self._categories, self._columns = category + 1, None
        if begin < len(rows):
            yield begin, len(rows)

    def _has_met_all(self, rows: ScoredRows) -> bool:
        """Return whether rows without slices are all of categories that were met before."""
        has_slices = rows.slices is not None and rows.slices.shape[1]
        return not has_slices and self._met.issuperset(rows.category.tolist())

    def _new_parts(self, rows: ScoredRows, row: int) -> list[Subject]:
        parts = [Subject("category", str(rows.category[row]))]
        if rows.slices is not None:
            codes = enumerate(rows.slices[row].tolist())
            parts += [Subject("slice", f"{number}={code}") for number, code in codes if code >= 0]
        return [part for part in parts if self._family.takes(part)]

    def _values(self, rows: ScoredRows) -> Floats:
        if self._columns is None:
            self._columns = self._columns_of(rows.classes)
        values = calibration_values(rows, self._columns, len(self._family.parts))
        if rows.slices is None or not rows.slices.shape[1]:
            return values
        for column, part in enumerate(self._family.parts):
            if part.scope == "slice" and part.name is not None:
                number, code = map(int, part.name.split("="))
                inside = rows.slices[:, number] == code
                values[inside, column] = values[inside, 0]
        return values

    def _columns_of(self, labels: tuple[str | None, ...]) -> Columns:
        def of(scope: AlarmScope, names: list[str | None]) -> Any:
            found = (self._family.index(Subject(scope, name)) for name in names)
            return np.array([-1 if j is None else j for j in found], dtype=np.int64)

        classes = of("class", list(labels))
        categories = of("category", [str(k) for k in range(self._categories)])
        return Columns(0, classes, categories, of("bin", [_of_bin(b) for b in range(BINS)]))

    def _found(self, row: int) -> list[Finding]:
        found = []
        for j in np.flatnonzero(self._bets.rejected).tolist():
            part, mean = self._family.parts[j], self._sums.strongest(j)
            assert mean is not None
            found.append(
                Finding(
                    row,
                    "calibration",
                    *part,
                    "tolerant-bets",
                    float(self._bets.log_wealth[j]),
                    float(self._bets.thresholds[j]),
                    mean.since,
                    mean.estimate,
                    mean.lower,
                    mean.upper,
                )
            )
            self._bets.restart(j, REST)
            self._since[j] = -1
        return found

    def begin_anew(self) -> None:
        """Give up what was seen so far: a new model answers, and what it announces is judged alone.

        Each test goes on to its next level, after a rest: the first answers of a new model are of a
        few calibration examples. The means begin anew with their confidence.
        """
        self._bets.begin_anew(REST)
        self._sums = DeviationSums(len(self._since), INTERVAL_LEVEL)
        self._since = [-1] * len(self._since)
        self._begun = -1

    def report(self) -> list[dict[str, Any]]:
        """Return the tests nearest to a finding, each with the strongest of its intervals.

        With slices, also those of all slices that are `off`: of these at most one in twenty is
        named wrongly, on average.
        """
        logs, limits = self._bets.log_wealth, self._bets.thresholds
        off = self._slices_off()
        shown = self._nearest(logs - limits)
        shown += [j for j in off if j not in shown]
        return [
            {
                "kind": "calibration",
                "scope": part.scope,
                "name": part.name,
                "log_wealth": float(logs[j]),
                "threshold": float(limits[j]),
                "alarms": int(self._bets.found[j]),
                "since": None if self._since[j] < 0 else self._since[j],
                "deviation": _plain(self._sums.strongest(j)),
            }
            | ({"off": j in off} if part.scope == "slice" else {})
            for j, part in ((j, self._family.parts[j]) for j in shown)
        ]

    def _nearest(self, logs: Floats) -> list[int]:
        """Return the tests to report: overall, then those nearest to their thresholds."""
        others = np.argsort(-logs[1:], kind="stable")[: REPORTED - 1] + 1
        return [0, *others.tolist()]

    def _slices_off(self) -> list[int]:
        """Return the tests of the slices that are off, with a bounded false discovery rate.

        By e-BH over the slices (Wang & Ramdas 2022). The rate holds at any one report, also one
        that what came before it chose.
        """
        of_slices = [j for j, part in enumerate(self._family.parts) if part.scope == "slice"]
        if not of_slices:
            return []
        logs = self._bets.log_e_values[of_slices]
        return [of_slices[i] for i in e_benjamini_hochberg(logs, SLICE_RATE)]

    def state(self) -> Arrays:
        """Return the tests, their wealth and the sums."""
        arrays = nest("bets", self._bets.state()) | nest("sums", self._sums.state())
        arrays["since"] = np.array(self._since, dtype=np.int64)
        return arrays | self._family.state() | _FIELDS.arrays_of(self)

    @classmethod
    def from_state(cls, state: Arrays, tolerance: float, level: float) -> Self:
        """Return the monitor that `state` describes.

        Raises
        ------
        InvalidSnapshot, LookupError
            If an array is absent or does not fit.
        """
        restored = cls(tolerance, level)
        levels = {scope: share * level for scope, share in SHARES.items()}
        family = restored._family = Family.from_state(state, levels)
        m = len(family.parts)
        restored._bets = BetProcesses.from_state(
            under("bets", state), [tolerance] * m, family.levels
        )
        restored._sums = DeviationSums.from_state(under("sums", state), m, INTERVAL_LEVEL)
        since = Fields(ints("since", f"{m}", least=-1)).values(cls, None, state)["since"]
        restored._since = since.tolist()
        _FIELDS.fill(restored, None, state)
        of_categories = (int(str(p.name)) + 1 for p in family.parts if p.scope == "category")
        restored._categories = max(of_categories, default=0)
        return restored


def _of_bin(number: int) -> str:
    return f"{number / BINS:g}-{(number + 1) / BINS:g}"


def _first_rows(rows: ScoredRows) -> list[int]:
    """Return the rows in which a category, or the code of a slice, stands first, ascending."""
    if len(rows) == 1:
        return [0]
    columns = [rows.category] if rows.slices is None else [rows.category, *rows.slices.T]
    first = [np.unique(column, return_index=True)[1] for column in columns]
    return sorted(set(np.concatenate(first).tolist()))


def _plain(mean: Deviation | None) -> dict[str, Any] | None:
    if mean is None:
        return None
    return {
        "since": mean.since,
        "rows": mean.rows,
        "estimate": mean.estimate,
        "lower": mean.lower,
        "upper": mean.upper,
    }
