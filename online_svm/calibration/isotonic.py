"""Isotonic regression of the labels on the scores (Zadrozny & Elkan 2002)."""

from typing import Self

import numpy as np

from online_svm.calibration.diagram import TiedCounts, isotonic_blocks
from online_svm.calibration.fitted_map import PointMap, WeightedCountsMap
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
        block = np.maximum(np.searchsorted(self.lower_, scores, side="right") - 1, 0)
        after = np.minimum(block + 1, len(self.values_) - 1)
        low, high = self.values_[block], self.values_[after]
        share = _share(scores, self.upper_[block], self.lower_[after])
        # Rounding could lift the far end of a gap an ulp above the next block.
        return np.asarray(np.minimum(low + share * (high - low), high), dtype=np.float64)

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


def _share(scores: Floats, start: Floats, end: Floats) -> Floats:
    """Return how far into the gap from `start` to `end` each score lies, within [0, 1].

    Quarters keep the differences of huge scores finite; they are exact for all others.
    """
    into = np.maximum(scores * 0.25 - start * 0.25, 0.0)
    width = end * 0.25 - start * 0.25
    return np.minimum(into / np.where(width > 0.0, width, np.inf), 1.0)
