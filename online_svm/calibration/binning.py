"""Histogram binning of scores into bins of equal count (Drish 1998; Zadrozny & Elkan 2001)."""

import numpy as np

from online_svm.calibration.argument_checks import check_n_bins
from online_svm.calibration.diagram import Blocks, TiedCounts, midpoints, sums
from online_svm.calibration.score_map import WeightedCountsMap
from online_svm.storage.fields import Fields, floats, one, weights
from online_svm.types import Floats, Ints, Weights


class ScoreBinning(WeightedCountsMap):
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
        Examples, and positive examples, in each bin; or the sums of their weights, where these are
        not whole. Then the bins are of equal weight.

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
    _fields = Fields(
        one("n_bins", least=1),
        weights("totals_"),
        weights("positives_", beside="totals_"),
        floats("edges_", beside="totals_", more=-1),
    )
    edges_: Floats
    totals_: Weights
    positives_: Weights

    def __init__(self, n_bins: int = 10) -> None:
        self.n_bins = n_bins
        self._check_parameters()

    def _check_parameters(self) -> None:
        check_n_bins(self.n_bins)

    def _fit_counts(self, counts: TiedCounts) -> None:
        bins = equal_count_bins(counts, self.n_bins)
        self.edges_ = midpoints(bins.upper[:-1], bins.lower[1:])
        self.totals_, self.positives_ = bins.totals, bins.positives

    def _predict(self, scores: Floats) -> Floats:
        if not len(self.totals_):
            return np.full(len(scores), 0.5)
        inside = self.edges_.searchsorted(scores, side="left")
        return np.asarray((self.positives_ / self.totals_)[inside], dtype=np.float64)


def equal_count_bins(counts: TiedCounts, n_bins: int) -> Blocks:
    """Group distinct scores into at most `n_bins` bins of about equal count, none of them empty.

    Example r of n (from 0) belongs to bin floor(n_bins r / n); a group of ties to the bin of its
    middle rank. Where weights take the place of counts, it is the bin that holds the middle of the
    group's share of the whole weight. The frequencies of the returned blocks need not increase.

    Examples
    --------
    >>> from online_svm.calibration.diagram import pool_ties
    >>> counts = pool_ties(np.array([1.0, 2.0, 2.0, 2.0]), np.array([True, False, True, True]))
    >>> equal_count_bins(counts, 2).totals
    array([1, 3])
    """
    bins = _bins(counts.totals, n_bins)
    is_first = np.ones(len(bins), dtype=np.bool_)
    np.not_equal(bins[1:], bins[:-1], out=is_first[1:])
    first = np.flatnonzero(is_first)
    last = np.empty_like(first)
    last[:-1], last[-1:] = first[1:] - 1, len(bins) - 1
    return Blocks(
        lower=counts.scores[first],
        upper=counts.scores[last],
        totals=sums(counts.totals, first),
        positives=sums(counts.positives, first),
    )


def _bins(totals: Weights, n_bins: int) -> Ints:
    """Return the bin of each distinct score."""
    ends = np.cumsum(totals)
    if not len(ends):
        return np.zeros(0, dtype=np.int64)
    if totals.dtype == np.float64:
        middle = (ends - 0.5 * totals) / ends[-1]
        return np.asarray(np.minimum(middle * n_bins, n_bins - 1), dtype=np.int64)
    twice_middle = 2 * ends - totals - 1
    return np.asarray(twice_middle * n_bins // (2 * int(ends[-1])), dtype=np.int64)
