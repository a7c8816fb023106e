"""The interval of the headline of two classes: how often each comes at scores like this one.

The scores are cut into bins of about equal count by those of the proper training set, so the bins
do not depend on the labels that are counted in them. In a bin with k hits among n calibration
examples the interval is that of Clopper and Pearson: for i.i.d. examples it holds the frequency of
the class in the bin with at least the stated probability, whatever the frequency is. It is widened
to hold the headline's own probability.
"""

from typing import NamedTuple

import numpy as np

from online_svm.calibration.binning import equal_count_bins
from online_svm.calibration.diagram import midpoints, pool_ties
from online_svm.compiled.jit import inner, jit
from online_svm.metrics.binomial_interval import BinomialIntervals, binomial_intervals, interval
from online_svm.stream.tail import Tail
from online_svm.types import Floats, Ints

COLUMNS = 3
"""Of the counts: the two classes, and the labels that have no machine."""


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
    """Intervals of two classes from the counts of a calibration set, which grows as answers do.

    Labels that have no machine share the last slot, if there is one; its interval is of their
    frequency at any score.

    Parameters
    ----------
    level : float
        Stated coverage, in (0, 1).
    training_scores : ndarray of shape (n_training, 1)
        Scores of the proper training set, from which the bins are taken.
    scores : ndarray of shape (n, 1)
        Scores of the calibration set in order of arrival.
    columns : ndarray of shape (n,)
        Their class columns; 2 is the slot of unseen labels.
    limit : int or None
        The newest calibration examples that are kept.

    Examples
    --------
    >>> scores, columns = np.array([[-1.0], [-1.0], [1.0]]), np.array([0, 0, 1])
    >>> held = FrequencyIntervals(0.9, scores, scores, columns, None)
    >>> lower, upper = held.answer(np.array([[1.0]]), np.array([-1]), np.array([[0.4, 0.6]]))
    >>> lower.round(2).tolist(), upper.round(2).tolist()
    ([[0.14, 0.02]], [[0.98, 0.86]])
    """

    def __init__(
        self,
        level: float,
        training_scores: Floats,
        scores: Floats,
        columns: Ints,
        limit: int | None,
    ) -> None:
        first = 0 if limit is None else max(0, len(columns) - limit)
        self._intervals = binomial_intervals(level)
        self._limit = limit
        self._edges = bin_edges(training_scores[:, 0])
        bins = np.searchsorted(self._edges, scores[first:, 0])
        self._bins, self._columns = Tail(bins), Tail(columns[first:])
        self._counts = np.zeros((len(self._edges) + 1, COLUMNS), dtype=np.int64)
        np.add.at(self._counts, (bins, columns[first:]), 1)

    def answer(self, scores: Floats, columns: Ints, point: Floats) -> tuple[Floats, Floats]:
        """Return the interval of every class in turn; each labelled row joins after its answer.

        Parameters
        ----------
        scores : ndarray of shape (m, 1)
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
        rows = IntervalRows(scores[:, 0], columns, np.ascontiguousarray(point), lower, upper)
        limit = -1 if self._limit is None else self._limit
        held = HeldBins(self._bins.held, self._columns.held, size, limit)
        gone = _answer(self._intervals, self._edges, rows, held, self._counts)
        self._bins.drop_before(self._bins.first + gone)
        self._columns.drop_before(self._columns.first + gone)
        return lower, upper


def bin_edges(training_scores: Floats) -> Floats:
    """Return the edges between the bins of scores, ascending.

    There are about n^(1/3) bins, the usual balance of width and noise, of about equal count.

    Examples
    --------
    >>> bin_edges(np.arange(27.0))
    array([ 8.5, 17.5])
    """
    n = len(training_scores)
    if not n:
        return np.empty(0)
    ties = pool_ties(training_scores, np.zeros(n, dtype=np.bool_))
    blocks = equal_count_bins(ties, _cube_root(n))
    return midpoints(blocks.upper[:-1], blocks.lower[1:])


def _cube_root(n: int) -> int:
    """Return the integer next to the cube root of n, but at least 1."""
    root = 1
    while (2 * root + 1) * (2 * root + 1) * (2 * root + 1) <= 8 * n:
        root += 1
    return root


@jit
def _answer(
    intervals: BinomialIntervals, edges: Floats, rows: IntervalRows, held: HeldBins, counts: Ints
) -> int:
    """Write the intervals of rows and join them in turn; return how many examples left.

    The rows that join are written behind those that are held.
    """
    scores, columns, point, lower, upper = rows
    gone, stop = 0, held.size
    n_unseen = counts[:, COLUMNS - 1].sum()
    for i in range(len(columns)):
        # 1. The interval of the second class in its bin; that of the first is its mirror image.
        b = bin_of(edges, scores[i])
        low, high = interval(intervals, counts[b, 1], counts[b].sum())
        lower[i, 1], upper[i, 1] = min(low, point[i, 1]), max(high, point[i, 1])
        lower[i, 0], upper[i, 0] = min(1.0 - high, point[i, 0]), max(1.0 - low, point[i, 0])
        # 2. That of the labels without a machine, at any score.
        if point.shape[1] == COLUMNS:
            low, high = interval(intervals, n_unseen, stop - gone)
            lower[i, 2], upper[i, 2] = min(low, point[i, 2]), max(high, point[i, 2])
        if columns[i] < 0:
            continue
        # 3. Join the calibration set.
        held.bins[stop], held.columns[stop] = b, columns[i]
        counts[b, columns[i]] += 1
        n_unseen += columns[i] == COLUMNS - 1
        stop += 1
        # 4. The oldest leaves where the window is full.
        if held.limit >= 0 and stop - gone > held.limit:
            counts[held.bins[gone], held.columns[gone]] -= 1
            n_unseen -= held.columns[gone] == COLUMNS - 1
            gone += 1
    return gone


@inner
def bin_of(edges: Floats, value: float) -> int:
    """Return how many edges lie below a value."""
    low, high = 0, len(edges)
    while low < high:
        middle = (low + high) // 2
        if edges[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
