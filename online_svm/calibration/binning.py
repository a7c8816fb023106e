"""Histogram binning of scores into bins of equal count (Drish 1998; Zadrozny & Elkan 2001)."""

from collections.abc import Mapping
from typing import Self

import numpy as np

from online_svm.calibration.base import (
    Floats,
    Ints,
    State,
    read_floats,
    read_ints,
)
from online_svm.calibration.diagram import Blocks, TiedCounts, midpoints
from online_svm.calibration.fitted import CountsMap, PointMap
from online_svm.errors import InvalidInput


class ScoreBinning(CountsMap, PointMap):
    """P(positive) is the frequency of positives in the bin that holds the score.

    The sorted examples are cut into `n_bins` bins whose sizes differ by at most one. Tied examples
    stay together: all go to the bin of the middle one. A bin that this leaves empty does not
    exist, nor do more bins than distinct scores. A score outside every bin, below, above or
    between two, takes the nearest; half way between two, the lower. Fitted on no example it
    answers 1/2.

    Parameters
    ----------
    n_bins : int, default=10

    Attributes
    ----------
    edges_ : ndarray of shape (bins - 1,)
        Upper edge of each bin but the last, inclusive: half way to the next bin's lowest score.
    totals_, positives_ : ndarray of shape (bins,)
        Examples, and positive examples, in each bin.

    References
    ----------
    J. Drish (1998), Obtaining calibrated probability estimates from support vector machines.

    Examples
    --------
    >>> fitted = ScoreBinning(n_bins=2).fit([0.0, 1.0, 2.0, 3.0], [0, 0, 0, 1])
    >>> fitted.predict([-9.0, 1.4, 1.6, 9.0])
    array([0. , 0. , 0.5, 0.5])
    """

    _learned = "totals_"
    edges_: Floats
    totals_: Ints
    positives_: Ints

    def __init__(self, n_bins: int = 10) -> None:
        if n_bins < 1:
            raise InvalidInput(f"n_bins: must be at least 1, not {n_bins}")
        self.n_bins = n_bins

    def _fit_counts(self, counts: TiedCounts) -> None:
        bins = equal_count_bins(counts, self.n_bins)
        self.edges_ = midpoints(bins.upper[:-1], bins.lower[1:])
        self.totals_, self.positives_ = bins.totals, bins.positives

    def _predict(self, scores: Floats) -> Floats:
        if not len(self.totals_):
            return np.full(len(scores), 0.5)
        inside = np.searchsorted(self.edges_, scores, side="left")
        return np.asarray((self.positives_ / self.totals_)[inside], dtype=np.float64)

    def _state(self) -> State:
        return {
            "n_bins": np.array([self.n_bins], dtype=np.int64),
            "edges": self.edges_,
            "totals": self.totals_,
            "positives": self.positives_,
        }

    @classmethod
    def _restore(cls, state: Mapping[str, Floats | Ints]) -> Self:
        restored = cls(int(read_ints(state, "n_bins", 1)[0]))
        restored.totals_ = read_ints(state, "totals")
        restored.positives_ = read_ints(state, "positives", len(restored.totals_))
        restored.edges_ = read_floats(state, "edges", max(len(restored.totals_) - 1, 0))
        return restored


def equal_count_bins(counts: TiedCounts, n_bins: int) -> Blocks:
    """Group distinct scores into at most `n_bins` bins of about equal count, none of them empty.

    Example r of n (from 0) belongs to bin floor(n_bins r / n); a group of ties to the bin of its
    middle rank. The frequencies of the returned blocks need not increase.

    Examples
    --------
    >>> from online_svm.calibration.diagram import pool_ties
    >>> counts = pool_ties(np.array([1.0, 2.0, 2.0, 2.0]), np.array([True, False, True, True]))
    >>> equal_count_bins(counts, 2).totals
    array([1, 3])
    """
    ends = np.cumsum(counts.totals)
    n_samples = int(ends[-1]) if len(ends) else 0
    twice_middle = 2 * ends - counts.totals - 1
    bins = twice_middle * n_bins // (2 * n_samples) if n_samples else twice_middle
    is_first = np.ones(len(bins), dtype=np.bool_)
    np.not_equal(bins[1:], bins[:-1], out=is_first[1:])
    first = np.flatnonzero(is_first)
    last = np.empty_like(first)
    last[:-1], last[-1:] = first[1:] - 1, len(bins) - 1
    return Blocks(
        lower=counts.scores[first],
        upper=counts.scores[last],
        totals=_sums(counts.totals, first),
        positives=_sums(counts.positives, first),
    )


def _sums(counts: Ints, first: Ints) -> Ints:
    return np.add.reduceat(counts, first) if len(first) else counts
