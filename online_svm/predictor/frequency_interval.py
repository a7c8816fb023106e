"""Interval of the primary prediction of two classes until semantics 5: class frequencies at scores.

Scores are binned by quantiles of the proper training scores, so the bins are independent of the
labels counted in them. A bin with k hits among n calibration examples gets the Clopper-Pearson
interval: for i.i.d. examples it covers the class frequency in the bin with at least the stated
probability. The interval is widened to contain the primary prediction.
"""

from typing import NamedTuple

import numpy as np

from online_svm.calibration.diagram import equal_count_bins, midpoints, pool_ties
from online_svm.compiled.kernel import kernel
from online_svm.metrics.binomial_interval import BinomialIntervals, binomial_intervals
from online_svm.stream.available_examples import SlidingArray
from online_svm.types import Floats, Ints

N_COUNTED_COLUMNS = 3
"""Columns of the counts: the two classes and unseen labels."""


class HeldBins(NamedTuple):
    """Calibration examples in order of arrival, with room for new ones."""

    bins: Ints
    columns: Ints
    size: int
    limit: int


class IntervalRows(NamedTuple):
    """Rows to answer, and the arrays for their intervals."""

    scores: Floats
    columns: Ints
    point: Floats
    lower: Floats
    upper: Floats


class FrequencyIntervals:
    """Intervals of two classes from the counts of a growing calibration set.

    Unseen labels share the last column, if there is one. Its interval covers their frequency over
    all scores.

    `level`: stated coverage, in (0, 1).
    `training_scores`, shape (n_training, 1): scores of the proper training set; they determine the
        bins.
    `scores`, shape (n, 1): scores of the calibration set in order of arrival.
    `columns`, shape (n,): class columns of the calibration set; 2 for unseen labels.
    `limit`: number of newest calibration examples to keep.
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
        self._bins, self._columns = SlidingArray(bins), SlidingArray(columns[first:])
        self._counts = np.zeros((len(self._edges) + 1, N_COUNTED_COLUMNS), dtype=np.int64)
        np.add.at(self._counts, (bins, columns[first:]), 1)

    def answer(self, scores: Floats, columns: Ints, point: Floats) -> tuple[Floats, Floats]:
        """Return class intervals row by row; a labelled row joins the counts after its answer.

        `scores`, shape (m, 1).
        `columns`, shape (m,): class columns of the labels; -1 for a row without a label.
        `point`, shape (m, n_classes): primary prediction, which the intervals contain.
        Returns `lower`, `upper`, shape (m, n_classes).
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
    """Return the ascending edges of about n^(1/3) bins with about equal counts."""
    n = len(training_scores)
    if not n:
        return np.empty(0)
    ties = pool_ties(training_scores, np.zeros(n, dtype=np.bool_))
    blocks = equal_count_bins(ties, _cube_root(n))
    return midpoints(blocks.upper[:-1], blocks.lower[1:])


def _cube_root(n: int) -> int:
    """Return the integer nearest to the cube root of n, at least 1."""
    root = 1
    while (2 * root + 1) * (2 * root + 1) * (2 * root + 1) <= 8 * n:
        root += 1
    return root


@kernel
def _answer(
    intervals: BinomialIntervals, edges: Floats, rows: IntervalRows, held: HeldBins, counts: Ints
) -> int:
    """Write the intervals of rows and add labelled rows in turn; return how many examples left.

    Labelled rows are appended to `held`. `counts`, shape (len(edges) + 1, N_COUNTED_COLUMNS), are
    the labels in each bin.
    """
