"""Tolerant bets on the announced probabilities: overall, by class, category, bin and slice."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.metrics.sequential.confidence_sequence import DeviationSums, MeanDeviation
from online_svm.metrics.sequential.families import Family, Finding, Subject, e_benjamini_hochberg
from online_svm.storage.state_schema import StateSchema, StoredArrays, one, part
from online_svm.stream.alarm import AlarmScope
from online_svm.stream.scored_rows import ScoredRows
from online_svm.types import Floats, Ints

N_PROBABILITY_BINS = 5  # number of equal-width bins of [0, 1], by probability


class Columns(NamedTuple):
    """Column of values for each test; -1 for unwatched parts."""

    overall: int
    of_class: Ints  # shape (K,)
    of_category: Ints  # shape (n_categories,)
    of_bin: Ints  # shape (N_PROBABILITY_BINS,)


class CalibrationRows(NamedTuple):
    """For each row: class probabilities, the SVM's class, the true class and the category."""

    point: Floats
    own: Ints
    truth: Ints
    category: Ints


def calibration_values(rows: ScoredRows, columns: Columns, width: int) -> Floats:
    """Return y - p for each row and test, shape (m, width); NaN for rows outside the part.

    - Overall: y - p of the SVM's class. (The most probable label is selected by the counts that
      estimate its probability; with small counts that probability is too high even on i.i.d.
      examples.)
    - Class: y - p of that class, in every row.
    - Category or bin: y - p of the second of two classes; with more, of the SVM's class.
    """
    values = np.empty((len(rows), width))
    answered = CalibrationRows(
        np.ascontiguousarray(rows.point), rows.own, rows.columns, rows.category
    )
    _fill(values, answered, len(rows.classes) == 2, columns)
    return values


@kernel
def _fill(values: Floats, answered: CalibrationRows, of_second: bool, columns: Columns) -> None:
    """Fill the values of m rows, shape (m, width).

    `of_second` selects the second of two classes for categories and bins.
    """


LEVEL_SHARES: dict[AlarmScope, float] = {
    "overall": 0.25, "class": 0.35, "category": 0.2, "bin": 0.1, "slice": 0.1,
}  # fmt: skip
"""Share of the level for the tests of each scope."""

TOLERATED_STANDARD_ERRORS = 1.5
"""Extra tolerance for p, in standard errors of a frequency over the examples learned so far.

Of 120 i.i.d. streams of four classes, 4 raise an alarm at 0, 3 at 1 and none at 1.5. At 1.6 the
alarm after the first steps of 2cht comes 140 examples later.
"""

INTERVAL_LEVEL = 0.05
"""One minus the confidence of the reported intervals; they do not affect alarms."""

COOLDOWN_ROWS = 250  # rows without bets after a finding; by default the feed is refitted meanwhile
SLICE_RATE = 0.05  # false discovery rate of the slices that a report marks as off
N_REPORTED_TESTS = 4  # few, because by default a report is made every hundred examples


class CalibrationMonitor(StoredArrays):
    """Tests |E[y - p | past]| <= d_n for all examples and for each part of them.

    d_n is the larger of `tolerance` and `TOLERATED_STANDARD_ERRORS` sqrt(p (1 - p) / n), where n is
    the number of examples learned at answer time since the feed or its model started. Probabilities
    learned from few examples are inaccurate without being miscalibrated. `level` covers all tests
    together, over an unlimited run.

    In rows outside a part, its y - p counts as 0: a finding means that the rows of the part alone
    move the mean over all rows by more than the tolerance. If each label arrives before the next
    answer, the level holds under any dependence between examples, and across refits. With
    delayed labels, "past" means all examples answered and labelled before the label; see
    docs/monitoring.md.

    With a label budget the rows are the wanted labels. `most` is the largest number of examples for
    which a label may stand; the bets on a label that stands for k are multiplied by k / `most`. The
    label is wanted with probability 1 / k, for any label. So, over examples wanted or not, the
    mean factor of a stake is 1 + l ((y - p) - d) / `most`: no more than 1 under the null above.
    """

    _stored = StateSchema(
        one("_begun", least=-1), part("_family", stored_as=""), part("_sums", of="_new_sums")
    )

    def __init__(self, tolerance: float, level: float, most: int = 1) -> None:
        self._most = most
        self._family = Family("calibration", LEVEL_SHARES, level, tolerance)
        self._sums = DeviationSums(0, INTERVAL_LEVEL)
        self._add(Subject("overall", None))
        for b in range(N_PROBABILITY_BINS):
            self._add(Subject("bin", _of_bin(b)))
        self._classes: tuple[str | None, ...] = ()
        self._categories = 0
        self._columns: Columns | None = None  # for the present parts and classes
        self._begun = 0  # examples learned when the feed or its model started; -1: set at next row
        self._seen_categories: set[int] = set()  # rebuilt after a restart

    def _add(self, part: Subject) -> None:
        if self._family.add(part):
            self._sums.add()
            self._columns = None

    def update(self, rows: ScoredRows) -> list[Finding]:
        """Add rows, in order; return the findings, in order."""
        found: list[Finding] = []
        count = len(rows)
        for begin, stop in self._with_known_parts(rows):
            part = rows if stop - begin == count else rows.part(begin, stop)
            values, at = self._values(part), 0
            factors = self._variance_factors(part.n)
            sizes = np.ones(len(part)) if part.weights is None else part.weights / self._most
            while at < stop - begin:
                self._family.start(int(part.n[at]))
                next_at = self._family.bets.update(values, at, factors, sizes)
                self._sums.update(values[at:next_at], part.n[at:next_at], sizes[at:next_at])
                if self._family.bets.has_rejected:
                    found += self._found(begin + next_at - 1)
                at = next_at
        return found

    def _variance_factors(self, n: Ints) -> Floats:
        """Return the squared extra tolerance of each row, divided by p (1 - p)."""
        if self._begun < 0:
            self._begun = int(n[0])
        squared = TOLERATED_STANDARD_ERRORS * TOLERATED_STANDARD_ERRORS
        return squared / np.maximum(n - self._begun, 1.0)

    def _with_known_parts(self, rows: ScoredRows) -> Iterator[tuple[int, int]]:
        """Yield runs of rows, split so that the tests of a new part start at its first row."""
        if rows.classes != self._classes:
            self._classes, self._columns = rows.classes, None
            watched = rows.classes[1:] if len(rows.classes) == 2 else rows.classes
            for label in watched:
                if label is not None:
                    self._add(Subject("class", label))
        begin = 0
        for row in [] if self._has_seen_all(rows) else _first_rows(rows):
            new = self._new_parts(rows, row)
            if new and row > begin:
                yield begin, row
                begin = row
            for subject in new:
                self._add(subject)
            category = int(rows.category[row])
            self._seen_categories.add(category)
            if category >= self._categories:
                self._categories, self._columns = category + 1, None
        if begin < len(rows):
            yield begin, len(rows)

    def _has_seen_all(self, rows: ScoredRows) -> bool:
        """Return True if the rows have no slices and only seen categories."""
        has_slices = rows.slices is not None and rows.slices.shape[1]
        return not has_slices and self._seen_categories.issuperset(rows.category.tolist())

    def _new_parts(self, rows: ScoredRows, row: int) -> list[Subject]:
        parts = [Subject("category", str(rows.category[row]))]
        if rows.slices is not None:
            codes = enumerate(rows.slices[row].tolist())
            parts += [Subject("slice", f"{number}={code}") for number, code in codes if code >= 0]
        return [part for part in parts if self._family.accepts(part)]

    def _values(self, rows: ScoredRows) -> Floats:
        if self._columns is None:
            self._columns = self._columns_of(rows.classes)
        values = calibration_values(rows, self._columns, len(self._family.parts))
        if rows.slices is None or not rows.slices.shape[1]:
            return values
        for column, subject in enumerate(self._family.parts):
            if subject.scope == "slice" and subject.name is not None:
                number, code = map(int, subject.name.split("="))
                inside = rows.slices[:, number] == code
                values[inside, column] = values[inside, 0]
        return values

    def _columns_of(self, labels: tuple[str | None, ...]) -> Columns:
        of = self._family.numbers
        categories, bins = range(self._categories), range(N_PROBABILITY_BINS)
        return Columns(
            0,
            of("class", labels),
            of("category", map(str, categories)),
            of("bin", map(_of_bin, bins)),
        )

    def _found(self, row: int) -> list[Finding]:
        found = []
        for j, finding in self._family.take_rejections(row, "tolerant-bets", COOLDOWN_ROWS):
            mean = self._deviation(j)
            assert mean is not None
            found.append(replace(
                finding, since=mean.since, estimate=mean.estimate, lower=mean.lower,
                upper=mean.upper,
            ))  # fmt: skip
        return found

    def _deviation(self, test: int) -> MeanDeviation | None:
        """Return the strongest deviation; its rows are the examples for which labels stand."""
        mean = self._sums.strongest(test)
        return None if mean is None else replace(mean, rows=mean.rows * self._most)

    def restart(self) -> None:
        """Discard past evidence, because a new model takes over and is judged alone.

        Each test continues at its next level after a cooldown, because the first answers of a new
        model rest on few calibration examples. The means restart with new confidence sequences.
        """
        self._family.restart(COOLDOWN_ROWS)
        self._sums = self._new_sums()
        self._begun = -1

    def report(self) -> list[dict[str, Any]]:
        """Return the tests closest to a finding, each with its strongest interval.

        With slices, also return all slices that are `off`; on average at most one in twenty of them
        is marked wrongly.
        """
        bets, parts = self._family.bets, self._family.parts
        off = self._slices_off()
        shown = self._nearest(bets.log_wealth - bets.thresholds)
        shown += [j for j in off if j not in shown]
        return [
            self._family.report(j)
            | {"deviation": None if (mean := self._deviation(j)) is None else asdict(mean)}
            | ({"off": j in off} if parts[j].scope == "slice" else {})
            for j in shown
        ]

    def _nearest(self, logs: Floats) -> list[int]:
        """Return the overall test, then the tests closest to their thresholds."""
        others = np.argsort(-logs[1:], kind="stable")[: N_REPORTED_TESTS - 1] + 1
        return [0, *others.tolist()]

    def _slices_off(self) -> list[int]:
        """Return the tests of slices that are off, by e-BH (Wang & Ramdas 2022).

        The false discovery rate holds at any single report, even if its time was chosen from past
        data.
        """
        of_slices = [j for j, part in enumerate(self._family.parts) if part.scope == "slice"]
        if not of_slices:
            return []
        logs = self._family.bets.log_e_values[of_slices]
        return [of_slices[i] for i in e_benjamini_hochberg(logs, SLICE_RATE)]

    def _new_sums(self) -> DeviationSums:
        return DeviationSums(len(self._family.parts), INTERVAL_LEVEL)

    def _on_restored(self) -> None:
        parts = self._family.parts
        of_categories = (int(str(p.name)) + 1 for p in parts if p.scope == "category")
        self._categories = max(of_categories, default=0)


def _of_bin(number: int) -> str:
    return f"{number / N_PROBABILITY_BINS:g}-{(number + 1) / N_PROBABILITY_BINS:g}"


def _first_rows(rows: ScoredRows) -> list[int]:
    """Return the rows, ascending, in which a category or slice code first occurs."""
    if len(rows) == 1:
        return [0]
    columns = [rows.category] if rows.slices is None else [rows.category, *rows.slices.T]
    first = [np.unique(column, return_index=True)[1] for column in columns]
    return sorted(set(np.concatenate(first).tolist()))
