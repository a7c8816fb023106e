"""Bets on the announced probabilities: overall, by class, category, bin and slice."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.metrics.sequential.confidence_sequence import DeviationSums, MeanDeviation
from online_svm.metrics.sequential.wealth import (
    ALARM,
    MAX_PARTS,
    NO_SIZES,
    NOTICE,
    Finding,
    Wealth,
    bet_on_probabilities,
)
from online_svm.storage.state_schema import StateSchema, StoredArrays, part
from online_svm.stream.alarm import AlarmScope
from online_svm.stream.notice import NOTICE_SCOPES, Notice, NoticeDirection
from online_svm.stream.prediction import ScoredRows
from online_svm.types import Floats, Ints

N_PROBABILITY_BINS = 5  # number of equal-width bins of [0, 1], by probability

SHARES = (0.25, 0.1, 0.15, 0.3, 0.2)
"""Share of the level, and of the notices, for each of `NOTICE_SCOPES` but the labels.

Each is a partition of the rows; each slice is one of its own. Without slices the others share it.
"""

INTERVAL_LEVEL = 0.05
"""One minus the confidence of the reported intervals; they do not affect alarms."""

COOLDOWN_ROWS = 250  # rows without bets after a finding; by default the feed is refitted meanwhile
N_REPORTED_TESTS = 4  # few, because by default a report is made every hundred examples
MAX_NAMED_NOTICES = 20  # in a report or an answer, the oldest first


class Cells(NamedTuple):
    """The parts of m rows, each of shape (m, c); -1 for no part."""

    cells: Ints
    happened: Floats  # 1 or 0: whether the event of the part happened
    announced: Floats  # its probability
    doubts: Floats  # squared standard errors that are tolerated, divided by p (1 - p)

    def part(self, begin: int, stop: int) -> "Cells":
        """Return rows begin ... stop - 1 as views."""
        return Cells._make(column[begin:stop] for column in self)


class AnsweredRows(NamedTuple):
    """Probabilities, the SVM's class, the true class, the category and slice codes of each row."""

    point: Floats
    own: Ints
    truth: Ints
    category: Ints
    examples: Ints  # calibration examples in the category; -1 if no count is behind p
    slices: Ints


class Columns(NamedTuple):
    """Part of each category, bin, class and slice value; -1 for none yet."""

    of_category: Ints  # shape (MAX_PARTS,); the last one is for all later categories
    of_bin: Ints
    watched: Ints  # index of each class that has a part
    of_class: Ints  # of these classes
    of_slice: Ints  # shape (n_slices, MAX_PARTS); the last one is for all later values


@kernel
def _fill(
    cells: Ints, happened: Floats, announced: Floats, doubts: Floats, rows: AnsweredRows,
    columns: Columns, is_binary: bool,
) -> None:  # fmt: skip
    """Fill the parts of m rows, each in a column; see `CalibrationMonitor`.

    `is_binary` selects the second of two classes for categories, bins and slices.
    """


@dataclass(frozen=True, slots=True)
class NoticeChange:
    """The open notices after a row of a call, at which one opened or closed.

    `of_labels`: they are those of the shares of the labels, else those of the probabilities.
    """

    row: int
    notices: tuple[Notice, ...]
    of_labels: bool = False


class CalibrationMonitor(StoredArrays):
    """Tests whether announced probabilities are right within the tolerance, in each part.

    - Overall: the probability of the SVM's class. (The most probable label is selected by the
      counts that estimate its probability; with small counts that probability is too high even on
      i.i.d. examples.)
    - Class: the probability of that class, in every row; of two classes the second.
    - Category, bin, slice: of the second of two classes; with more, of the SVM's class.

    A category beyond the 63rd, and a slice value beyond the 63rd, share a part. The doubt about a
    probability comes from the calibration examples in its category. `level` covers the alarms of
    all parts, over an unlimited run; `notice_every` is the least mean number of rows to a false
    notice. If each label arrives before the next answer, both hold under any dependence between
    examples, and across refits. With delayed labels, "past" means all examples answered and
    labelled before the label; see docs/explanation/monitors.md.

    With a label budget the rows are the wanted labels. `most` is the largest number of examples for
    which a label may stand; a factor f of a label that stands for k counts as 1 + (f - 1) k /
    `most`. The label is wanted with probability 1 / k, for any label. So, over examples wanted or
    not, the mean factor is 1 + (E f - 1) / `most`: at most 1 if E f is.
    """

    _stored = StateSchema(part("_bets"), part("_sums", of="_new_sums"))

    def __init__(
        self,
        tolerance: float,
        level: float,
        notice_every: float = np.inf,
        *,
        most: int = 1,
        n_slices: int = 0,
    ) -> None:
        self._tolerance, self._most = tolerance, most
        shares = [*SHARES[:-1], *[SHARES[-1] / max(n_slices, 1)] * n_slices]
        shares = [share / math.fsum(shares) for share in shares]
        run_lengths = [notice_every / share for share in shares]
        self._bets = Wealth("calibration", [share * level for share in shares], run_lengths)
        self._sums = DeviationSums(0, INTERVAL_LEVEL)
        self._n_slices = n_slices
        self._classes: tuple[str | None, ...] | None = None
        self._seen: set[int] = set()  # categories
        no_class = np.empty(0, dtype=np.int64)
        self._columns = Columns(
            np.full(MAX_PARTS, -1), np.arange(1, N_PROBABILITY_BINS + 1), no_class, no_class,
            np.full((n_slices, MAX_PARTS), -1),
        )  # fmt: skip
        for name in [None, *map(_of_bin, range(N_PROBABILITY_BINS))]:
            self._add("overall" if name is None else "bin", name)

    def _add(self, scope: AlarmScope, name: str | None, more: int = 0) -> int:
        self._sums.add()
        return self._bets.add(scope, name, NOTICE_SCOPES.index(scope) + more)

    def update(self, rows: ScoredRows) -> list[Finding | NoticeChange]:
        """Add rows, in order; return findings and changes of the open notices, in order."""
        self._know(rows)
        cells = self._cells(rows)
        sizes = NO_SIZES if rows.weights is None else rows.weights / self._most
        found: list[Finding | NoticeChange] = []
        begin = 0
        while begin < len(rows):
            stop, reached = bet_on_probabilities(
                *cells, self._tolerance, sizes, self._widths, rows.n, begin, self._bets.held
            )
            new = cells.part(begin, stop)
            self._sums.update(*new[:3], rows.n[begin:stop], sizes[begin:stop])
            if reached & ALARM:
                found += self._findings(stop - 1)
            if reached & NOTICE:
                found.append(NoticeChange(stop - 1, self.notices()))
            begin = stop
        return found

    def _know(self, rows: ScoredRows) -> None:
        """Add a part for each new class, category and slice value, in the order of the rows."""
        if rows.classes != self._classes:
            self._classes = rows.classes
            known = {part.name: j for j, part in enumerate(self._bets.parts) if part[0] == "class"}
            watched = list(enumerate(rows.classes))[1 if len(rows.classes) == 2 else 0 :]
            for _, label in watched:
                if label is not None and label not in known and len(known) < MAX_PARTS:
                    known[label] = self._add("class", label)
            both = [(k, known[label]) for k, label in watched if label in known]
            self._columns = self._columns._replace(
                watched=np.array([k for k, _ in both], dtype=np.int64),
                of_class=np.array([j for _, j in both], dtype=np.int64),
            )
            widths = [1.0] * 3 + [float(len(both))] * len(both) + [1.0] * self._n_slices
            self._widths = np.array(widths)
        if not self._n_slices and self._seen.issuperset(rows.category.tolist()):
            return
        for row, category in enumerate(rows.category.tolist()):
            codes = [category] if rows.slices is None else [category, *rows.slices[row].tolist()]
            for column, code in enumerate(codes):
                self._know_code(column, min(code, MAX_PARTS - 1))
        self._seen.update(rows.category.tolist())

    def _know_code(self, column: int, code: int) -> None:
        """Add a part for a new category (column 0), or for a new value of slice `column` - 1."""
        table = self._columns.of_slice[column - 1] if column else self._columns.of_category
        if code >= 0 and table[code] < 0:
            name = f"{column - 1}={code}" if column else _of_category(code)
            table[code] = self._add("slice" if column else "category", name, max(column - 1, 0))

    def _cells(self, rows: ScoredRows) -> Cells:
        m, shape = len(rows), (len(rows), len(self._widths))
        found = Cells(np.empty(shape, dtype=np.int64), *(np.empty(shape) for _ in range(3)))
        size, slices = rows.category_size, rows.slices
        answered = AnsweredRows(
            np.ascontiguousarray(rows.point), rows.own, rows.columns, rows.category,
            np.full(m, -1) if size is None else size,
            np.empty((m, 0), dtype=np.int64) if slices is None else np.ascontiguousarray(slices),
        )  # fmt: skip
        _fill(*found, answered, self._columns, len(rows.classes) == 2)
        return found

    def _findings(self, row: int) -> list[Finding]:
        found = []
        for j, finding in self._bets.take_findings(row, "likelihood-ratio", COOLDOWN_ROWS):
            mean = self._deviation(j)
            assert mean is not None
            found.append(replace(
                finding, since=mean.since, estimate=mean.estimate, lower=mean.lower,
                upper=mean.upper, announced=mean.announced, examples=mean.rows,
            ))  # fmt: skip
        return found

    def notices(self) -> tuple[Notice, ...]:
        """Return the open notices, the oldest first."""
        found = [self._notice(*one) for one in self._bets.open_notices()]
        found.sort(key=lambda notice: notice.n)
        return tuple(found[:MAX_NAMED_NOTICES])

    def close_notices(self) -> None:
        """Close notices of bins, categories and slices; later rows alone count for their next ones.

        Overall and by class the rows are so many that a notice ends soon after it is right.
        """
        is_small = [part.scope not in ("overall", "class") for part in self._bets.parts]
        self._bets.close_notices(np.array(is_small))

    def _notice(self, j: int, opened: int, direction: NoticeDirection) -> Notice:
        scope, name, _ = self._bets.parts[j]
        mean = self._deviation(j, opened)
        since, rows, p, off = opened, 0, 0.0, (0.0, 0.0, 0.0)
        if mean is not None:  # no row since the evidence was discarded
            since, rows, p = mean.since, mean.rows, mean.announced
            off = mean.estimate, mean.lower, mean.upper
        shares = (min(max(p + part, 0.0), 1.0) for part in off)
        return Notice(opened, scope, name, direction, since, rows, min(p, 1.0), *shares)

    def _deviation(self, test: int, upto: int | None = None) -> MeanDeviation | None:
        """Return the strongest deviation; its rows are the examples for which labels stand."""
        mean = self._sums.strongest(test, upto)
        return None if mean is None else replace(mean, rows=mean.rows * self._most)

    def restart(self) -> None:
        """Discard past evidence, because a new model takes over and is judged alone.

        Each test continues at its next level after a cooldown, because the first answers of a new
        model rest on few calibration examples. The means restart with new confidence sequences.
        """
        self._bets.restart(COOLDOWN_ROWS)
        self._sums = self._new_sums()

    def report(self) -> list[dict[str, Any]]:
        """Return the tests closest to a finding, each with its strongest interval."""
        margins = self._bets.log_wealth - self._bets.thresholds
        others = np.argsort(-margins[1:], kind="stable")[: N_REPORTED_TESTS - 1] + 1
        return [
            self._bets.report(j)
            | {"deviation": None if (mean := self._deviation(j)) is None else asdict(mean)}
            for j in [0, *others.tolist()]
        ]

    def _new_sums(self) -> DeviationSums:
        return DeviationSums(len(self._bets.parts), INTERVAL_LEVEL)

    def _on_restored(self) -> None:
        for j, (scope, name, _) in enumerate(self._bets.parts):
            if scope == "category":
                self._columns.of_category[int(str(name).partition(" ")[0])] = j
            elif scope == "slice":
                number, code = map(int, str(name).split("="))
                self._columns.of_slice[number, code] = j


def _of_bin(number: int) -> str:
    return f"{number / N_PROBABILITY_BINS:g}-{(number + 1) / N_PROBABILITY_BINS:g}"


def _of_category(code: int) -> str:
    return f"{code} and later" if code == MAX_PARTS - 1 else str(code)
