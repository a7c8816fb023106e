"""The interval of the headline: how often a class comes at scores like this one, at a stated level.

The scores are cut into bins of about equal count by those of the proper training set, so the bins
do not depend on the labels that are counted in them. In a bin with k hits among n calibration
examples the interval is that of Clopper and Pearson: for i.i.d. examples it holds the frequency of
the class in the bin with at least the stated probability, whatever the frequency is. It is widened
to hold the headline's own probability.
"""

import math
from typing import NamedTuple

import numpy as np

from online_svm.calibration.binning import equal_count_bins
from online_svm.calibration.diagram import midpoints, pool_ties
from online_svm.compiled.jit import inner, jit
from online_svm.metrics.binomial_interval import BinomialIntervals, binomial_intervals, interval
from online_svm.stream.labels import ClassView
from online_svm.stream.tail import Tail
from online_svm.types import Floats, Ints


class BinCounts(NamedTuple):
    """Calibration examples by bin; one list of bins a score, and one of a single bin.

    Attributes
    ----------
    first_hits : ndarray of shape (n_lists,)
        Class column that each list counts; the last counts it and all after it.
    totals, hits : ndarray of shape (n_lists, most)
        Examples in each bin, and those of the class.
    """

    first_hits: Ints
    totals: Ints
    hits: Ints


class HeldBins(NamedTuple):
    """Calibration examples in order of arrival, with room for those that join."""

    bins: Ints
    columns: Ints
    size: int
    limit: int


class IntervalRows(NamedTuple):
    """Rows to answer, and their intervals, which are written."""

    scores: Floats
    columns: Ints
    point: Floats
    lower: Floats
    upper: Floats


class FrequencyIntervals:
    """Intervals of the classes from the counts of a calibration set, which grows as answers do.

    Two classes share one score. More have one each: the interval of a class is then of its
    frequency against the rest at its own score. Labels that have no machine share the last slot,
    if there is one; its interval is of their frequency at any score.

    Parameters
    ----------
    level : float
        Stated coverage, in (0, 1).
    view : ClassView
        The classes that have a machine, and the slot of unseen labels, if there is one.
    training_scores : ndarray of shape (n_training, n_scores)
        Scores of the proper training set, from which the bins are taken.
    scores : ndarray of shape (n, n_scores)
        Scores of the calibration set in order of arrival.
    columns : ndarray of shape (n,)
        Their class columns.
    limit : int or None
        The newest calibration examples that are kept.

    Examples
    --------
    >>> scores, columns = np.array([[-1.0], [-1.0], [1.0]]), np.array([0, 0, 1])
    >>> held = FrequencyIntervals(0.9, ClassView("ab", True), scores, scores, columns, None)
    >>> lower, upper = held.answer(np.array([[1.0]]), np.array([-1]), np.array([[0.4, 0.6]]))
    >>> lower.round(2).tolist(), upper.round(2).tolist()
    ([[0.14, 0.02]], [[0.98, 0.86]])
    """

    def __init__(
        self,
        level: float,
        view: ClassView,
        training_scores: Floats,
        scores: Floats,
        columns: Ints,
        limit: int | None,
    ) -> None:
        first = 0 if limit is None else max(0, len(columns) - limit)
        self._intervals = binomial_intervals(level)
        self._limit = limit
        self._edges = bin_edges(training_scores)
        # Of the last list, with one bin, the unseen labels are the hits.
        first_hits = np.append(
            [1] if scores.shape[1] == 1 else np.arange(scores.shape[1]), view.n_known
        )
        self._bins = Tail(_bins(self._edges, scores[first:]))
        self._columns = Tail(columns[first:])
        shape = (scores.shape[1] + 1, self._edges.shape[1] + 1)
        totals, hits = (np.zeros(shape, dtype=np.int64) for _ in range(2))
        self._counts = BinCounts(first_hits, totals, hits)
        _count_all(self._bins.held, self._columns.held, self._counts)

    def answer(self, scores: Floats, columns: Ints, point: Floats) -> tuple[Floats, Floats]:
        """Return the interval of every class in turn; each labelled row joins after its answer.

        Parameters
        ----------
        scores : ndarray of shape (m, n_scores)
        columns : ndarray of shape (m,)
            Class columns of the labels; -1 where there is none.
        point : ndarray of shape (m, n_classes)
            Probabilities of the headline, which the intervals hold.

        Returns
        -------
        lower, upper : ndarray of shape (m, n_classes)
        """
        size, joining = len(self._columns), int(np.count_nonzero(columns >= 0))
        self._bins.extend(joining)
        self._columns.extend(joining)
        lower, upper = np.empty(point.shape), np.empty(point.shape)
        rows = IntervalRows(scores, columns, np.ascontiguousarray(point), lower, upper)
        limit = -1 if self._limit is None else self._limit
        held = HeldBins(self._bins.held, self._columns.held, size, limit)
        gone = _answer(self._intervals, self._edges, rows, held, self._counts)
        self._bins.drop_before(self._bins.first + gone)
        self._columns.drop_before(self._columns.first + gone)
        return lower, upper


def bin_edges(training_scores: Floats) -> Floats:
    """Return the edges between the bins of each score, shape (n_scores, most); inf where fewer.

    There are about n^(1/3) bins, the usual balance of width and noise, of about equal count.

    Examples
    --------
    >>> bin_edges(np.arange(27.0)[:, None])
    array([[ 8.5, 17.5]])
    """
    n_bins = _cube_root(len(training_scores))
    none = np.zeros(len(training_scores), dtype=np.bool_)
    found = []
    for scores in training_scores.T:
        blocks = equal_count_bins(pool_ties(scores, none), n_bins) if len(scores) else None
        found.append(
            np.empty(0) if blocks is None else midpoints(blocks.upper[:-1], blocks.lower[1:])
        )
    edges = np.full((len(found), max(map(len, found))), math.inf)
    for row, values in zip(edges, found, strict=True):
        row[: len(values)] = values
    return edges


def _cube_root(n: int) -> int:
    """Return the integer next to the cube root of n, but at least 1."""
    root = 1
    while (2 * root + 1) * (2 * root + 1) * (2 * root + 1) <= 8 * n:
        root += 1
    return root


def _bins(edges: Floats, scores: Floats) -> Ints:
    """Return the bin of each score, shape (m, n_scores + 1); the last list has one bin."""
    bins = np.empty((len(scores), scores.shape[1] + 1), dtype=np.int64)
    _fill(edges, scores, bins)
    return bins


@jit
def _fill(edges: Floats, scores: Floats, bins: Ints) -> None:
    for i in range(len(scores)):
        _find_bins(edges, scores[i], bins[i])


@inner
def _find_bins(edges: Floats, scores: Floats, bins: Ints) -> None:
    """Write the bin of each score; the last list has one bin."""
    bins[len(scores)] = 0
    for g in range(len(scores)):
        low, high = 0, edges.shape[1]
        while low < high:  # how many edges lie below the score
            middle = (low + high) // 2
            if edges[g, middle] < scores[g]:
                low = middle + 1
            else:
                high = middle
        bins[g] = low


@inner
def _count(bins: Ints, column: int, counts: BinCounts, change: int) -> None:
    """Add an example to the counts, or take it out where `change` is -1."""
    first_hits, totals, hits = counts
    last = len(first_hits) - 1
    for g in range(len(first_hits)):
        totals[g, bins[g]] += change
        if column == first_hits[g] or (g == last and column > first_hits[g]):
            hits[g, bins[g]] += change


@jit
def _count_all(bins: Ints, columns: Ints, counts: BinCounts) -> None:
    for i in range(len(columns)):
        _count(bins[i], columns[i], counts, 1)


@jit
def _answer(
    intervals: BinomialIntervals,
    edges: Floats,
    rows: IntervalRows,
    held: HeldBins,
    counts: BinCounts,
) -> int:
    """Write the intervals of rows and join them in turn; return how many examples left.

    The rows that join are written behind those that are held.
    """
    scores, columns, point, lower, upper = rows
    gone, stop = 0, held.size
    last = len(counts.first_hits) - 1
    bins, bounds = np.empty(last + 1, dtype=np.int64), np.empty((last + 1, 2))
    for i in range(len(columns)):
        # 1. The interval of each list, then of each class, widened to hold the probability.
        _find_bins(edges, scores[i], bins)
        for g in range(last + 1):
            b = bins[g]
            bounds[g, 0], bounds[g, 1] = interval(intervals, counts.hits[g, b], counts.totals[g, b])
        for y in range(point.shape[1]):
            low, high = _of_class(bounds, y)
            lower[i, y], upper[i, y] = min(low, point[i, y]), max(high, point[i, y])
        if columns[i] < 0:
            continue
        # 2. Join the calibration set.
        held.bins[stop], held.columns[stop] = bins, columns[i]
        _count(bins, columns[i], counts, 1)
        stop += 1
        # 3. The oldest leaves where the window is full.
        if held.limit >= 0 and stop - gone > held.limit:
            _count(held.bins[gone], held.columns[gone], counts, -1)
            gone += 1
    return gone


@inner
def _of_class(bounds: Floats, y: int) -> tuple[float, float]:
    """Return the interval of class y from those of the lists, of which the last is for the rest."""
    if len(bounds) == 2 and y < 2:
        low, high = bounds[0]
        return (low, high) if y == 1 else (1.0 - high, 1.0 - low)
    return bounds[min(y, len(bounds) - 1), 0], bounds[min(y, len(bounds) - 1), 1]
