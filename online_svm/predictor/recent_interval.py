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
from online_svm.storage.state_schema import StateSchema, StoredArrays, floats, ints, one
from online_svm.stream.available_examples import SlidingArray
from online_svm.stream.labels import ClassView
from online_svm.types import Floats, Ints

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


N_BINS = 8
"""Bins of each class. On ten kinds of simulated streams these intervals hold P(y | p) in at least
87 % of every range of p: see docs/measured.md. With nine bins they are 5 % wider, with seven they
hold less."""

MOVED_EXAMPLES = 2.0
"""Each end is moved outwards by this number over the number of counted examples: the resolution of
the count. One in place of two holds less than 87 % in one to four ranges of 59."""

MISS_SHARE = 0.7
"""The part of 1 - level that the Clopper-Pearson interval may miss.

The next model's errors differ from those that are counted. With 1 the intervals held 85 % in a
range of two classes."""

DELAYED_MISS_SHARE = 0.6
"""With delayed labels, the part of 1 - level that the Clopper-Pearson interval may miss.

The counted answers are of more models, whose errors differ."""


class Shifts(NamedTuple):
    """The bins of each class, and their shifts as ratios of the odds p / (1 - p)."""

    # Shape (n_classes, bins - 1); ascending; a probability is in the bin of as many edges as lie
    # below it.
    edges: Floats
    # Shape (n_classes, bins); odds of the lower end over odds of p, and odds of p over odds of the
    # upper end. Both are 0 for an empty bin.
    low: Floats
    high: Floats
    # Shape (n_classes, 2); the mean odds of the first and the last bin, 0 and `MAX_ODDS` if empty.
    # Outside them the shift grows by the distance in log-odds: the true log-odds may stay where
    # they are at the mean, or be twice as far from it.
    outer: Floats
    moved: Floats  # shape (1,); how far each end is moved outwards

    @classmethod
    def none(cls, n_classes: int) -> Self:
        """Return the shifts without examples: every interval is [0, 1]."""
        return cls(
            np.zeros((n_classes, N_BINS - 1)),
            np.zeros((n_classes, N_BINS)),
            np.zeros((n_classes, N_BINS)),
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


class RecentIntervals(StoredArrays):
    """Class intervals from recent primary predictions; they span models.

    Recent probabilities of each class are cut into bins with about equal sums of sqrt(p (1 - p)),
    so that bins are as narrow for improbable classes as for others. In a bin with k hits among n
    and mean m, the Clopper-Pearson ends L and U become sigmoid(logit p + logit L - logit m), and
    the same with U, for each p of the bin. Within a bin the error of the primary prediction is
    nearly constant on the logit scale, unlike its frequency. Of two classes, the first has the
    complement of the interval of the second.
    No theorem covers these intervals: several models made the probabilities, and the next one may
    differ. Unseen labels share the last column, if there is one, and count as one class.

    `level`: stated coverage, in (0, 1).
    `view`: the classes of the answers.
    `is_delayed`: whether labels come after their examples, which widens the intervals.
    """

    _stored = StateSchema(
        floats("_recent.points", "n ._n_classes"),
        ints("_recent.columns", "n", below="._n_classes"),
        floats("_shifts.edges", least=0.0), floats("_shifts.low", least=0.0),
        floats("_shifts.high", least=0.0), floats("_shifts.outer", least=0.0),
        floats("_shifts.moved", least=0.0), one("_since", below=COUNT_EVERY), one("_first"),
    )  # fmt: skip

    def __init__(self, level: float, view: ClassView, *, is_delayed: bool = False) -> None:
        self.level, self._classes = level, view.classes
        self._missed = (1.0 - level) * (DELAYED_MISS_SHARE if is_delayed else MISS_SHARE)
        n_classes = self._n_classes = len(view.classes)
        self._points = SlidingArray(np.empty((0, n_classes)))
        self._columns = SlidingArray(np.empty(0, dtype=np.int64))
        self._since = 0  # labels since the last count
        self._shifts = Shifts.none(n_classes)

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

    def answer(self, columns: Ints, point: Floats) -> tuple[Floats, Floats]:
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
        self._shifts.moved[:] = MOVED_EXAMPLES / len(columns)
        counted = RecentPoints(points, columns)
        _count(binomial_intervals(1.0 - self._missed), counted, ascending, self._shifts)

    @property
    def _recent(self) -> RecentPoints:
        return RecentPoints(self._points.held, self._columns.held)

    @_recent.setter
    def _recent(self, recent: RecentPoints) -> None:
        first = self._first
        self._points, self._columns = (SlidingArray(part, first) for part in recent)

    @property
    def _first(self) -> int:
        return self._points.first

    @_first.setter
    def _first(self, first: int) -> None:
        self._points.first = self._columns.first = first

    def _on_restored(self) -> None:
        size, since = len(self._columns), self._since
        require(size <= MAX_COUNTED_EXAMPLES, "columns")
        require(since <= size and since < _gap(size - since), "since")
        require(self._first == 0 or size == MAX_COUNTED_EXAMPLES, "first")


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
) -> None:
    """Write the edges and shifts of each class.

    `ascending`, shape (n_classes, n), are the probabilities of each class in ascending order.
    """
