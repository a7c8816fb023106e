"""Isotonic regression of the labels on the scores (Zadrozny & Elkan 2002)."""

from typing import Self

import numpy as np

from online_svm.calibration.diagram import TiedCounts, isotonic_blocks
from online_svm.calibration.fitted_map import PointMap, WeightedCountsMap
from online_svm.compiled.jit import inner, jit
from online_svm.errors import InvalidSnapshot
from online_svm.storage.arrays import read_floats
from online_svm.types import Arrays, Floats


class IsotonicCalibrator(WeightedCountsMap, PointMap):
    """What `IsotonicMap` does, which documents it; this one needs no scikit-learn."""

    _learned = "values_"
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

    def _state(self) -> Arrays:
        return {"lower": self.lower_, "upper": self.upper_, "values": self.values_}

    @classmethod
    def _from_state(cls, state: Arrays) -> Self:
        restored = cls()
        restored.values_ = read_floats(state, "values")
        restored.lower_ = read_floats(state, "lower", len(restored.values_))
        restored.upper_ = read_floats(state, "upper", len(restored.values_))
        if (restored.lower_ > restored.upper_).any():
            raise InvalidSnapshot("map state: a block ends before it begins")
        return restored


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
