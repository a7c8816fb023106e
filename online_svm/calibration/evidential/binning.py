"""Belief functions from the counts of equal-count bins (Xu et al. 2016, section 4.1)."""

from typing import Self

import numpy as np

from online_svm.calibration.argument_checks import check_n_bins
from online_svm.calibration.binning import equal_count_bins
from online_svm.calibration.diagram import TiedCounts
from online_svm.calibration.evidential.binomial import BinomialModel
from online_svm.calibration.evidential.blocks import BlockMap
from online_svm.errors import InvalidSnapshot
from online_svm.storage.arrays import read_ints
from online_svm.types import Arrays, Floats


class EvidentialBinningCalibrator(BlockMap):
    """What `EvidentialBinning` does, which documents it; this one needs no scikit-learn."""

    def __init__(
        self, model: BinomialModel = "likelihood", n_bins: int = 10, alpha: float = 0.05
    ) -> None:
        self.n_bins = n_bins
        super().__init__(model, alpha)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_n_bins(self.n_bins)

    def _fit_counts(self, counts: TiedCounts) -> None:
        self._set_blocks(equal_count_bins(counts, self.n_bins))

    def _state(self) -> Arrays:
        return super()._state() | {"n_bins": np.array([self.n_bins], dtype=np.int64)}

    @classmethod
    def _from_state(cls, state: Arrays) -> Self:
        n_bins = int(read_ints(state, "n_bins", 1)[0])
        if n_bins < 1:
            raise InvalidSnapshot(f"map state: {n_bins} is no number of bins")
        restored = super()._from_state(state)
        restored.n_bins = n_bins
        return restored

    def _shape(self, masses: Floats) -> Floats:
        return masses
