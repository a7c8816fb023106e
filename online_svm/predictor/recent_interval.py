"""Interval of the primary prediction from its recent probabilities, for any number of classes.

The interval says how often a class comes at such a probability of the present state. Its centre is
the probability itself. A state is wrong in log-odds by an error with some variance, of which the
last 500 labelled answers know little, because they were given by other states: after 200 labels
nothing of the error is left. So the interval is that of a posterior. Its prior is the variance by
which states are usually wrong, at least what the frequencies of its bin and the newest labels show;
the frequency of the bin moves the centre by a fixed part of their distance.
"""

from typing import NamedTuple, Self

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, StoredArrays, floats, ints, one
from online_svm.stream.available_examples import SlidingArray
from online_svm.stream.labels import ClassView
from online_svm.types import Floats, Ints

MAX_COUNTED_EXAMPLES = 500
"""Largest number of newest labelled examples that are counted."""

EARLY_DIVISOR = 3
"""The earliest 1 / EARLY_DIVISOR of the examples is left out while fewer others fill the count.

The first models are much worse than later ones. Without this, intervals with labels 2,000 late held
84 % in a range of one kind of stream, in place of 88 %.
"""

COUNT_EVERY = 50
"""Labels between two counts; a quarter of the stored labels if that is less."""

N_BINS = 8
"""Bins of each class; as in recent_interval.c."""

YOUNG = 900.0
"""The usual error is 1 + YOUNG / n times as large after n labels: young models change more.

This and the other constants were chosen on twelve streams of each of eleven simulated kinds, and
hold on fresh ones: see docs/measured.md.
"""

DELAYED_ERROR = 1.3
"""Factor of the usual error with delayed labels, which say less about a state."""

MOVED_EXAMPLES = 3.0
"""Each end is moved outwards by this number over the number of counted examples: the resolution of
the count."""


class Shifts(NamedTuple):
    """Ascending probabilities of each class, and ratios of odds there; shape (n_classes, N_BINS).

    The ratios are interpolated between them. Outside them the shift grows by the distance in
    log-odds: the true log-odds may stay where they are at the nearest one, or be twice as far from
    it.
    """

    means: Floats  # mean of each bin; the last bin again in the places of empty bins
    low: Floats  # odds of the lower end over odds of the mean
    high: Floats  # odds of the mean over odds of the upper end
    moved: Floats  # shape (1,); how far each end is moved outwards

    @classmethod
    def none(cls, n_classes: int) -> Self:
        """Return the shifts without examples: every interval is [0, 1]."""
        shape = (n_classes, N_BINS)
        return cls(np.full(shape, 0.5), np.zeros(shape), np.zeros(shape), np.zeros(1))


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
    so that bins are as narrow for improbable classes as for others. In a bin with n answers, k hits
    of the class, mean probability m and v the sum of p (1 - p):

    1. e, the squared error of a state in log-odds, is usually 1 / sqrt(V + 5), V being the sum of
       p (1 - p) of counted answers whose odds are within a factor of e of those of m. It is at
       least the square of logit((k + .5) / (n + 1)) - logit(m) less 1 / v, and at least what the
       residuals of the newest 125 labels show in four bins.
    2. w = .87 e / (e + 1 / v) is how far the frequency is believed. The posterior has the mean
       m + w (k - sum of p) / n and, in log-odds, the variance e (1 - .87 w).
    3. L and U are the ends of the interval of a beta distribution of this mean and variance, as
       Clopper and Pearson take them, and contain m.

    Each p becomes sigmoid(logit p + logit L - logit m), and the same with U. Of two classes, the
    first has the complement of the interval of the second.
    No theorem covers these intervals. Unseen labels share the last column, if there is one, and
    count as one class.

    `level`: stated coverage, in (0, 1).
    `view`: the classes of the answers.
    `is_delayed`: whether labels come after their examples, which widens the intervals.
    """

    _stored = StateSchema(
        floats("_recent.points", "n ._n_classes"),
        ints("_recent.columns", "n", below="._n_classes"),
        floats("_shifts.means", least=0.0), floats("_shifts.low", least=0.0),
        floats("_shifts.high", least=0.0), floats("_shifts.moved", least=0.0),
        one("_since", below=COUNT_EVERY), one("_first"),
    )  # fmt: skip

    def __init__(self, level: float, view: ClassView, *, is_delayed: bool = False) -> None:
        self.level, self._classes = level, view.classes
        self._error = DELAYED_ERROR if is_delayed else 1.0
        n_classes = self._n_classes = len(view.classes)
        self._points = SlidingArray(np.empty((0, n_classes)))
        self._columns = SlidingArray(np.empty(0, dtype=np.int64))
        self._since = 0  # labels since the last count
        self._shifts = Shifts.none(n_classes)

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
        """Recompute the shifts from the stored rows, in order of arrival."""
        self._since = 0
        if not len(columns):
            return
        answered = self._points.first + len(columns)
        first = len(columns) - min(MAX_COUNTED_EXAMPLES, answered - answered // EARLY_DIVISOR)
        points, columns = points[first:], columns[first:]
        ascending = np.sort(np.ascontiguousarray(points.T), axis=1)
        self._shifts.moved[:] = MOVED_EXAMPLES / len(columns)
        spread, tail = self._error * (1.0 + YOUNG / answered), 0.5 * (1.0 - self.level)
        _count(spread, tail, RecentPoints(points, columns), ascending, self._shifts)

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
    spread: float, tail: float, recent: RecentPoints, ascending: Floats, shifts: Shifts
) -> None:
    """Write the means and shifts of each class.

    `spread`: how many times as large as usual an error is.
    `tail`: the part that may lie beyond each end.
    `ascending`, shape (n_classes, n), are the probabilities of each class in ascending order.
    """
