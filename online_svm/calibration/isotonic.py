"""Isotonic regression of the labels on the scores (Zadrozny & Elkan 2002)."""

import numpy as np

from online_svm.calibration.diagram import TiedCounts, isotonic_blocks
from online_svm.calibration.score_map import WeightedCountsMap
from online_svm.compiled.jit import inner, jit
from online_svm.errors import InvalidSnapshot
from online_svm.storage.fields import Fields, floats
from online_svm.types import Arrays, Floats


class IsotonicMap(WeightedCountsMap):
    """The non-decreasing map from scores to P(positive) that is closest to the labels.

    Tied scores are pooled, then adjacent violators. Inside a block of scores the map is constant,
    the lowest block reaches down to minus infinity and the highest up to infinity (Lambrou et al.
    2012, section 2.3, which leaves the gap between two blocks open); across a gap it is linear.
    These are the values of scikit-learn's ``IsotonicRegression(y_min=0, y_max=1,
    out_of_bounds="clip")``; the counts here are integers, so that the blocks are exact. Fitted on
    no example it answers 1/2.

    Attributes
    ----------
    lower_, upper_ : ndarray of shape (n_blocks,)
        Lowest and highest score of each block.
    values_ : ndarray of shape (n_blocks,)
        Its frequency of positives, strictly increasing.

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
    _fields = Fields(
        floats("values_"), floats("lower_", beside="values_"), floats("upper_", beside="values_")
    )
    lower_: Floats
    upper_: Floats
    values_: Floats

    def _fit_counts(self, counts: TiedCounts) -> None:
        blocks = isotonic_blocks(counts)
        self.lower_, self.upper_ = blocks.lower, blocks.upper
        # Sums of weights are rounded: two means that are one may come out in the wrong order.
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


@jit
def _interpolate(
    lower: Floats, upper: Floats, values: Floats, scores: Floats, found: Floats
) -> None:
    """Write the value of each score: that of its block, or in the gap after it a share of both."""
    for i in range(len(scores)):
        block = max(_count_up_to(lower, scores[i]) - 1, 0)
        after = min(block + 1, len(values) - 1)
        # Quarters keep the differences of huge scores finite; they are exact for all others.
        into = max(0.25 * scores[i] - 0.25 * upper[block], 0.0)
        width = 0.25 * lower[after] - 0.25 * upper[block]
        share = min(into / width, 1.0) if width > 0.0 else 0.0
        # Rounding could lift the far end of a gap an ulp above the next block.
        value = values[block] + share * (values[after] - values[block])
        found[i] = min(value, values[after])


@inner
def _count_up_to(ascending: Floats, score: float) -> int:
    """Return how many values are at most the score."""
    low, high = 0, len(ascending)
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] <= score:
            low = middle + 1
        else:
            high = middle
    return low
