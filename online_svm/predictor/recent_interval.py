"""The interval of the headline of more than two classes: by what it said of the last examples.

The headline of more classes goes by all scores, so how often a class comes at one score says little
of it. Here the bins are of the headline's own probabilities: each was given before its label, by
the model of its time. In a bin the interval of the frequency is that of Clopper and Pearson; it is
applied as a shift, on the scale of the log-odds, from the mean probability of the bin.
"""

from typing import NamedTuple, Self

import numpy as np

from online_svm.compiled.jit import inner, jit
from online_svm.metrics.binomial_interval import BinomialIntervals, binomial_intervals, interval
from online_svm.predictor.frequency_interval import bin_of
from online_svm.storage.arrays import require
from online_svm.storage.fields import Fields, floats, ints, one
from online_svm.stream.labels import ClassView
from online_svm.stream.tail import Tail
from online_svm.types import Arrays, Floats, Ints

SIZE = 500
"""Labelled examples that are counted, at most: the last ones."""

EARLIEST = 3
"""One in so many is left out: the earliest, while fewer than `SIZE` others were answered.

The first models are much worse than the next one. With all of 500 answers intervals at a nominal
90 % held 86 % of what they should, of three, four and seven classes; without a third of them 90 to
93 %, at 1.3 times the width. Without half of them they were 1.5 times as wide and held no more.
"""

BINS = 10
"""Of each class. With 7 the shift holds too little of P(y | p), with 14 it is a fifth wider."""

EVERY = 50
"""Labels between two counts; a quarter of those that are held, while that is less."""

FLOOR = 1e-6  # as of the mixture: the odds are finite


class Shifts(NamedTuple):
    """The bins of each class, and how they shift the odds p / (1 - p).

    Attributes
    ----------
    edges : ndarray of shape (n_classes, BINS - 1)
        Ascending; a probability is in the bin of as many as lie below it.
    low, high : ndarray of shape (n_classes, BINS)
        The odds of the lower end over p's, and p's over those of the upper end. Both are 0 where
        nothing is known.
    """

    edges: Floats
    low: Floats
    high: Floats

    @classmethod
    def none(cls, n_classes: int) -> Self:
        """Return those of no example: every interval is [0, 1]."""
        edges = np.zeros((n_classes, BINS - 1))
        return cls(edges, np.zeros((n_classes, BINS)), np.zeros((n_classes, BINS)))


class Said(NamedTuple):
    """Labelled examples in order of arrival, with room for those that join."""

    points: Floats
    columns: Ints


class IntervalRows(NamedTuple):
    """Rows to answer, and their intervals, which are written."""

    columns: Ints
    point: Floats
    lower: Floats
    upper: Floats


class RecentIntervals:
    """Intervals of the classes from the last probabilities, which outlive a model.

    Of each class the last probabilities are cut into ten bins of about equal sum of
    sqrt(p (1 - p)), so that bins are as narrow where a class is improbable as where it is not. In a
    bin with k hits among n and mean m the ends L and U of Clopper and Pearson become
    sigmoid(logit p + logit L - logit m), and the same with U, for each p of the bin. A miss of the
    headline within a bin is nearly the same on that scale; its frequency is not.

    It is no theorem: several models gave the probabilities, and the next one may be another. Labels
    that have no machine share the last slot, if there is one; it is a class like the others.

    Parameters
    ----------
    level : float
        Stated coverage, in (0, 1).
    view : ClassView
        The classes of the answers.

    Examples
    --------
    >>> held = RecentIntervals(0.9, ClassView("abc", True))
    >>> point = np.tile([0.5, 0.3, 0.2], (300, 1))
    >>> lower, upper = held.answer(np.empty((300, 3)), np.arange(300) % 3, point)
    >>> lower[0].tolist(), upper[0].tolist()
    ([0.0, 0.0, 0.0], [1.0, 1.0, 1.0])
    >>> lower[299].round(2).tolist(), upper[299].round(2).tolist()
    ([0.28, 0.28, 0.2], [0.5, 0.39, 0.4])
    """

    def __init__(self, level: float, view: ClassView) -> None:
        self.level, self._classes = level, view.classes
        n_classes = len(view.classes)
        self._said = Tail(np.empty((0, n_classes)))
        self._columns = Tail(np.empty(0, dtype=np.int64))
        self._since = 0  # labels since the last count
        self._shifts = Shifts.none(n_classes)

    def follow(self, before: "RecentIntervals") -> None:
        """Begin with what the answers of the model before said; count it anew.

        A class that was not known then was never said, and never came.
        """
        places = np.array([self._classes.index(label) for label in before._classes])
        said = np.zeros((len(before._said), len(self._classes)))
        said[:, places] = before._said.held
        self._said = Tail(said, before._said.first)
        self._columns = Tail(places[before._columns.held], before._said.first)
        self._count(self._said.held, self._columns.held)

    def answer(self, _scores: Floats, columns: Ints, point: Floats) -> tuple[Floats, Floats]:
        """Return the interval of every class in turn; each labelled row joins after its answer.

        Parameters
        ----------
        columns : ndarray of shape (m,)
            Class columns of the labels; -1 where there is none.
        point : ndarray of shape (m, n_classes)
            Probabilities of the headline, which the intervals hold.

        Returns
        -------
        lower, upper : ndarray of shape (m, n_classes)
        """
        size, joining = len(self._columns), int(np.count_nonzero(columns >= 0))
        self._said.extend(joining)
        self._columns.extend(joining)
        said = Said(self._said.held, self._columns.held)
        lower, upper = np.empty(point.shape), np.empty(point.shape)
        rows = IntervalRows(columns, np.ascontiguousarray(point), lower, upper)
        row = 0
        while row < len(columns):
            until = size + _gap(size - self._since) - self._since
            row, stop = _answer(self._shifts, rows, row, said, (size, until))
            self._since += stop - size
            size = stop
            if size == until:
                self._count(said.points[:size], said.columns[:size])
        self._said.drop_before(self._said.stop - SIZE)
        self._columns.drop_before(self._columns.stop - SIZE)
        return lower, upper

    def _count(self, points: Floats, columns: Ints) -> None:
        """Count anew, of the held rows so far, in order of arrival."""
        self._since = 0
        if not len(columns):
            return
        answered = self._said.first + len(columns)
        first = len(columns) - min(SIZE, answered - answered // EARLIEST)
        points, columns = points[first:], columns[first:]
        ascending = np.sort(np.ascontiguousarray(points.T), axis=1)
        _count(binomial_intervals(self.level), Said(points, columns), ascending, self._shifts)

    def state(self) -> Arrays:
        """Return what was said and came, and the shifts."""
        arrays = {"said": self._said.held.copy(), "columns": self._columns.held.copy()}
        arrays |= {name: part.copy() for name, part in self._shifts._asdict().items()}
        numbers = {"since": self._since, "first": self._said.first}
        return arrays | {name: np.array([k], dtype=np.int64) for name, k in numbers.items()}

    @classmethod
    def from_state(cls, state: Arrays, level: float, view: ClassView) -> Self:
        """Return the intervals that `state` describes.

        Raises
        ------
        InvalidSnapshot, ValueError
            If an array is absent or has another type, length or range.
        """
        restored, k = cls(level, view), len(view.classes)
        found = Fields(
            floats("said", f"n {k}"), ints("columns", "n", below=k), one("since", below=EVERY),
            one("first"),
            floats("edges", f"{k} {BINS - 1}"), floats("low", f"{k} {BINS}"),
            floats("high", f"{k} {BINS}"),
        ).values(cls, None, state)  # fmt: skip
        size, since = len(found["columns"]), int(found["since"])
        require(size <= SIZE and since <= size and since < _gap(size - since), "since")
        first = int(found["first"])
        require(first == 0 or size == SIZE, "first")
        restored._said = Tail(found["said"], first)
        restored._columns = Tail(found["columns"], first)
        restored._since = since
        restored._shifts = Shifts(*(found[name] for name in Shifts._fields))
        return restored


def _gap(counted: int) -> int:
    """Return how many labels lie between a count of so many and the next."""
    return min(EVERY, max(1, counted // 4))


@jit
def _answer(
    shifts: Shifts, rows: IntervalRows, row: int, said: Said, room: tuple[int, int]
) -> tuple[int, int]:
    """Write the intervals of rows and join them, until `said` is as long as it should be.

    `room` are its length, and the length at which the next count is due. Return the row after the
    last that was answered, and the length.
    """
    columns, point, lower, upper = rows
    size, until = room
    while row < len(columns) and size < until:
        for y in range(point.shape[1]):
            p = point[row, y]
            b = bin_of(shifts.edges[y], p)
            q = min(max(p, FLOOR), 1.0 - FLOOR)
            raised = q * shifts.low[y, b]
            lower[row, y] = min(raised / (1.0 - q + raised), p)
            upper[row, y] = max(q / (q + (1.0 - q) * shifts.high[y, b]), p)
        if columns[row] >= 0:
            said.points[size], said.columns[size] = point[row], columns[row]
            size += 1
        row += 1
    return row, size


@jit
def _count(intervals: BinomialIntervals, said: Said, ascending: Floats, shifts: Shifts) -> None:
    """Write the edges and shifts of each class, given its probabilities in ascending order too."""
    points, columns = said
    totals, hits = np.empty(BINS, dtype=np.int64), np.empty(BINS, dtype=np.int64)
    together = np.empty(BINS)
    for y in range(points.shape[1]):
        # 1. The examples of each bin.
        _cut(ascending[y], shifts.edges[y])
        totals[:], hits[:], together[:] = 0, 0, 0.0
        for i in range(len(columns)):
            b = bin_of(shifts.edges[y], points[i, y])
            totals[b] += 1
            hits[b] += columns[i] == y
            together[b] += points[i, y]
        # 2. From the mean probability to the ends of the interval, as ratios of odds.
        for b in range(BINS):
            shifts.low[y, b] = shifts.high[y, b] = 0.0
            if totals[b] > 0:
                low, high = interval(intervals, hits[b], totals[b])
                mean = min(max(together[b] / totals[b], FLOOR), 1.0 - FLOOR)
                shifts.low[y, b] = low * (1.0 - mean) / ((1.0 - low) * mean)
                shifts.high[y, b] = (1.0 - high) * mean / (high * (1.0 - mean))


@inner
def _cut(ascending: Floats, edges: Floats) -> None:
    """Write the edges of bins of about equal sum of sqrt(p (1 - p)); equal values stay together."""
    total = 0.0
    for p in ascending:
        total += np.sqrt(p * (1.0 - p))
    so_far, b = 0.0, 0
    for p in ascending:
        so_far += np.sqrt(p * (1.0 - p))
        while b < len(edges) and so_far * (len(edges) + 1) >= total * (b + 1):
            edges[b] = p
            b += 1
