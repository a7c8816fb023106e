"""Belief functions from the blocks of isotonic regression (Xu et al. 2016, section 4.2)."""

import numpy as np

from online_svm.calibration.diagram import TiedCounts, isotonic_blocks
from online_svm.calibration.evidential.blocks import BlockMap
from online_svm.calibration.evidential.masses import stack
from online_svm.types import Floats


class EvidentialIsotonicCalibrator(BlockMap):
    """What `EvidentialIsotonic` does, which documents it; this one needs no scikit-learn."""

    def _fit_counts(self, counts: TiedCounts) -> None:
        self._set_blocks(isotonic_blocks(counts))

    def _shape(self, masses: Floats) -> Floats:
        """Draw the envelopes; the least m({0}) so far is the highest plausibility so far."""
        belief = np.minimum.accumulate(masses[::-1, 0])[::-1]
        return stack(belief, np.minimum.accumulate(masses[:, 1]))
