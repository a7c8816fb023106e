"""Maps constant on blocks of scores: histogram binning, and isotonic regression."""

import numpy as np

from online_svm.calibration.diagram import (
    TiedCounts,
    check_n_bins,
    equal_count_bins,
    isotonic_blocks,
    midpoints,
)
from online_svm.calibration.score_map import WeightedCountsMap
from online_svm.compiled.kernel import kernel
from online_svm.errors import InvalidSnapshot
from online_svm.storage.state_schema import StateSchema, floats, one, weights
from online_svm.types import Arrays, Floats, Weights


class ScoreBinning(WeightedCountsMap):
    """Histogram binning: P(positive) is the share of positives in the score's bin.

    The sorted examples are split into `n_bins` bins whose sizes differ by at most one. Tied
    examples share the bin of the middle one; bins left empty by ties are dropped. A score outside
    all bins gets the nearest bin; at equal distance, the lower one. Fitted on no examples, the map
    returns 1/2.

    Parameters
    ----------
    n_bins : int, default=10

    Attributes
    ----------
    edges_ : ndarray of shape (bins - 1,)
        Inclusive upper edge of each bin except the last: the midpoint to the next bin's lowest
        score.
    totals_, positives_ : ndarray of shape (bins,)
        Number (or summed weight) of examples, and of positive examples, in each bin.

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
    _fields = StateSchema(
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


class IsotonicMap(WeightedCountsMap):
    """Isotonic regression: the non-decreasing map to P(positive) closest to the labels.

    Tied scores are pooled, then adjacent violators. The map is constant within a block and linear
    between two blocks. The lowest block extends to minus infinity, the highest to infinity (Lambrou
    et al. 2012, section 2.3, where the gaps between blocks are left undefined). The values equal
    scikit-learn's ``IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")``, but the counts
    are integers, so the blocks are exact. Fitted on no examples, the map returns 1/2.

    Attributes
    ----------
    lower_, upper_ : ndarray of shape (n_blocks,)
        Lowest and highest score of each block.
    values_ : ndarray of shape (n_blocks,)
        Frequency of positives in each block, strictly increasing.

    References
    ----------
    B. Zadrozny, C. Elkan (2002), Transforming classifier scores into accurate multiclass
    probability estimates.

    Examples
    --------
    >>> fitted = IsotonicMap().fit([0.0, 1.0, 2.0, 3.0], [0, 1, 0, 1])
    >>> fitted.predict([-9.0, 0.5, 1.5, 9.0])
    array([0.  , 0.25, 0.5 , 1.  ])
    """

    _learned = "values_"
    _fields = StateSchema(
        floats("values_"), floats("lower_", beside="values_"), floats("upper_", beside="values_")
    )
    lower_: Floats
    upper_: Floats
    values_: Floats

    def _fit_counts(self, counts: TiedCounts) -> None:
        blocks = isotonic_blocks(counts)
        self.lower_, self.upper_ = blocks.lower, blocks.upper
        # Sums of weights are rounded: two equal means may come out in the wrong order.
        self.values_ = np.maximum.accumulate(blocks.positives / blocks.totals)

    def _predict(self, scores: Floats) -> Floats:
        if not len(self.values_):
            return np.full(len(scores), 0.5)
        found = np.empty(len(scores))
        _interpolate(self.lower_, self.upper_, self.values_, scores, found)
        return found

    def _load(self, state: Arrays) -> None:
        super()._load(state)
        if (self.lower_ > self.upper_).any():
            raise InvalidSnapshot("the state of IsotonicMap: a block ends before it begins")


@kernel
def _interpolate(
    lower: Floats, upper: Floats, values: Floats, scores: Floats, found: Floats
) -> None:
    """Write the value at each score: constant within blocks, linear between them.

    Blocks have shape (n_blocks,), at least one; `scores` and `found` have shape (n_samples,).
    """
