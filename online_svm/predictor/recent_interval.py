"""Interval of the primary prediction from its recent probabilities, for any number of classes.

One score does not determine the probability of a class, so the bins contain recent primary
predictions, each made before its label by the model of its time. The Clopper-Pearson interval of
the frequency in a bin is applied as a shift of the log-odds from the mean probability of the bin.
"""

from typing import NamedTuple, Self

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.metrics.binomial_interval import BinomialIntervals, binomial_intervals
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, floats, ints, one
from online_svm.stream.available_examples import SlidingArray
from online_svm.stream.labels import ClassView
from online_svm.types import Arrays, Floats, Ints

MAX_COUNTED_EXAMPLES = 500
"""Largest number of newest labelled examples that are counted."""

EARLY_DIVISOR = 3
"""The earliest 1 / EARLY_DIVISOR of the examples is left out while fewer others fill the count.

The first models are much worse than later ones. Using all of the first 500 answers, intervals at a
nominal 90 % covered 86 % for three, four and seven classes; without the first third 90 to 93 %, at
1.3 times the width. Without the first half the width was 1.5 times, for no more coverage.
"""

COUNT_EVERY = 50
"""Labels between two counts; a quarter of the stored labels if that is less."""


MAX_ODDS = 1e9
"""More than any odds: the odds of the kernel end at a million."""


class IntervalRule(NamedTuple):
    """How wide the intervals are."""

    bins: int  # of each class
    # Each end is moved outwards by this number over the number of counted examples: the resolution
    # of the count.
    moved: float
    # Whether the shift grows outside the means of the first and the last bin, by the distance in
    # log-odds: the true log-odds may stay where they are at the mean, or be twice as far from it.
    widens_outside: bool
    # Part of 1 - level that the Clopper-Pearson interval may miss.
    missed: float = 1.0


RULE_BEFORE_6 = IntervalRule(10, 0.0, widens_outside=False)
"""Of semantics 4 and 5. Near 0 and 1, the true probability is often outside, by little."""

RULE = IntervalRule(8, 2.0, widens_outside=True)
"""Of semantics 6. On ten kinds of simulated streams these intervals hold P(y | p) in at least 87 %
of every range of p, and are as wide as before: see docs/measured.md. With nine
bins they are 5 % wider, with seven they hold less. Half of the distance outside, or one counted
example in place of two, holds less than 87 % in one to four ranges of 59."""

DELAYED_RULE = RULE._replace(missed=0.6)
"""With delayed labels: the counted answers are of more models, whose errors differ."""


class Shifts(NamedTuple):
    """The bins of each class, and their shifts as ratios of the odds p / (1 - p)."""

    # Shape (n_classes, bins - 1); ascending; a probability is in the bin of as many edges as lie
    # below it.
    edges: Floats
    # Shape (n_classes, bins); odds of the lower end over odds of p, and odds of p over odds of the
    # upper end. Both are 0 for an empty bin.
    low: Floats
    high: Floats
    # Shape (n_classes, 2); the mean odds of the first and the last bin, outside which the shift
    # grows; 0 and `MAX_ODDS` if it does not.
    outer: Floats
    moved: Floats  # shape (1,); how far each end is moved outwards

    @classmethod
    def none(cls, n_classes: int, bins: int) -> Self:
        """Return the shifts without examples: every interval is [0, 1]."""
        return cls(
            np.zeros((n_classes, bins - 1)),
            np.zeros((n_classes, bins)),
            np.zeros((n_classes, bins)),
            np.tile([0.0, MAX_ODDS], (n_classes, 1)),
            np.zeros(1),
        )


class RecentPoints(NamedTuple):
    """Probabilities and labels in order of arrival, with room for new rows."""

    points: Floats
    columns: Ints


class RowsToAnswer(NamedTuple):
    """Rows to answer, and the arrays for their intervals."""

    columns: Ints
    point: Floats
    lower: Floats
    upper: Floats


class RecentIntervals:
    """Class intervals from recent primary predictions; they span models.

    Recent probabilities of each class are cut into bins with about equal sums of sqrt(p (1 - p)),
    so that bins are as narrow for improbable classes as for others. In a bin with k hits among n
    and mean m, the Clopper-Pearson ends L and U become sigmoid(logit p + logit L - logit m), and
    the same with U, for each p of the bin. Within a bin the error of the primary prediction is
    nearly constant on the logit scale, unlike its frequency. The rule then widens the interval. Of
    two classes, the first has the complement of the interval of the second.

    No theorem covers these intervals: several models made the probabilities, and the next one may
    differ. Unseen labels share the last column, if there is one, and count as one class.

    `level`: stated coverage, in (0, 1).
    `view`: the classes of the answers.
    `rule`: how wide the intervals are.
    """

    def __init__(self, level: float, view: ClassView, rule: IntervalRule = RULE) -> None:
        self.level, self._classes, self.rule = level, view.classes, rule
        n_classes = len(view.classes)
        self._points = SlidingArray(np.empty((0, n_classes)))
        self._columns = SlidingArray(np.empty(0, dtype=np.int64))
        self._since = 0  # labels since the last count
        self._shifts = Shifts.none(n_classes, rule.bins)

    @property
    def n_labels(self) -> int:
        """Labels that joined, counted or not."""
        return self._points.stop

    def follow(self, before: "RecentIntervals") -> None:
        """Carry over the recent probabilities from the previous model, and count them again.

        A class that the previous model did not know has probability 0 and no hits. A class that is
        unknown now joins the unseen labels.
        """
        index = {label: i for i, label in enumerate(self._classes)}
        places = np.array([index.get(label, len(index) - 1) for label in before._classes])
        points = np.zeros((len(before._points), len(self._classes)))
        for place, values in zip(places, before._points.held.T, strict=True):
            points[:, place] += values
        self._points = SlidingArray(points, before._points.first)
        self._columns = SlidingArray(places[before._columns.held], before._points.first)
        self._count(self._points.held, self._columns.held)

    def answer(self, _scores: Floats, columns: Ints, point: Floats) -> tuple[Floats, Floats]:
        """Return class intervals row by row; a labelled row joins the counts after its answer.

        `columns`, shape (m,): class columns of the labels; -1 for a row without a label.
        `point`, shape (m, n_classes): primary prediction, which the intervals contain.
        Returns `lower`, `upper`, shape (m, n_classes).
        """
        size, joining = len(self._columns), int(np.count_nonzero(columns >= 0))
        self._points.extend(joining)
        self._columns.extend(joining)
        recent = RecentPoints(self._points.held, self._columns.held)
        lower, upper = np.empty(point.shape), np.empty(point.shape)
        rows = RowsToAnswer(columns, np.ascontiguousarray(point), lower, upper)
        row = 0
        while row < len(columns):
            until = size + _gap(size - self._since) - self._since
            row, stop = _answer(self._shifts, rows, row, recent, (size, until))
            self._since += stop - size
            size = stop
            if size == until:
                self._count(recent.points[:size], recent.columns[:size])
        self._points.drop_before(self._points.stop - MAX_COUNTED_EXAMPLES)
        self._columns.drop_before(self._columns.stop - MAX_COUNTED_EXAMPLES)
        if len(self._classes) == 2:
            lower[:, 0] = np.minimum(1.0 - upper[:, 1], point[:, 0])
            upper[:, 0] = np.maximum(1.0 - lower[:, 1], point[:, 0])
        return lower, upper

    def _count(self, points: Floats, columns: Ints) -> None:
        """Recompute edges and shifts from the stored rows, in order of arrival."""
        self._since = 0
        if not len(columns):
            return
        answered = self._points.first + len(columns)
        first = len(columns) - min(MAX_COUNTED_EXAMPLES, answered - answered // EARLY_DIVISOR)
        points, columns = points[first:], columns[first:]
        ascending = np.sort(np.ascontiguousarray(points.T), axis=1)
        self._shifts.moved[:] = self.rule.moved / len(columns)
        _count(
            binomial_intervals(1.0 - (1.0 - self.level) * self.rule.missed),
            RecentPoints(points, columns),
            ascending,
            self._shifts,
            self.rule.widens_outside,
        )

    def state(self) -> Arrays:
        """Return probabilities, labels and shifts."""
        arrays = {"said": self._points.held.copy(), "columns": self._columns.held.copy()}
        arrays |= {name: getattr(self._shifts, name).copy() for name in self._stored_shifts}
        numbers = {"since": self._since, "first": self._points.first}
        return arrays | {name: np.array([k], dtype=np.int64) for name, k in numbers.items()}

    @property
    def _stored_shifts(self) -> tuple[str, ...]:
        """Names of the shifts in a state: before semantics 6, the last two have their defaults."""
        return Shifts._fields if self.rule.widens_outside else Shifts._fields[:3]

    def restore(self, state: Arrays) -> None:
        """Continue from a state."""
        k, bins = len(self._classes), self.rule.bins
        of_rule = (floats("outer", f"{k} 2"), floats("moved", "1"))
        found = StateSchema(
            floats("said", f"n {k}"), ints("columns", "n", below=k),
            one("since", below=COUNT_EVERY), one("first"),
            floats("edges", f"{k} {bins - 1}"), floats("low", f"{k} {bins}"),
            floats("high", f"{k} {bins}"), *(of_rule if self.rule.widens_outside else ()),
        ).values(type(self), None, state)  # fmt: skip
        size, since = len(found["columns"]), int(found["since"])
        require(
            size <= MAX_COUNTED_EXAMPLES and since <= size and since < _gap(size - since), "since"
        )
        first = int(found["first"])
        require(first == 0 or size == MAX_COUNTED_EXAMPLES, "first")
        self._points = SlidingArray(found["said"], first)
        self._columns = SlidingArray(found["columns"], first)
        for name in self._stored_shifts:
            require(bool((found[name] >= 0.0).all()), name)
        self._since = since
        self._shifts = self._shifts._replace(**{name: found[name] for name in self._stored_shifts})


def _gap(counted: int) -> int:
    """Return the number of labels from a count of `counted` rows to the next count."""
    return min(COUNT_EVERY, max(1, counted // 4))


@kernel
def _answer(
    shifts: Shifts, rows: RowsToAnswer, row: int, recent: RecentPoints, room: tuple[int, int]
) -> tuple[int, int]:
    """Write the intervals of rows and store labelled rows until a count is due.

    `room` is (stored rows, stored rows at which the next count is due). Return the next row to
    answer, and the new length.
    """


@kernel
def _count(
    intervals: BinomialIntervals,
    recent: RecentPoints,
    ascending: Floats,
    shifts: Shifts,
    widens_outside: bool,
) -> None:
    """Write the edges and shifts of each class.

    `ascending`, shape (n_classes, n), are the probabilities of each class in ascending order.
    """
