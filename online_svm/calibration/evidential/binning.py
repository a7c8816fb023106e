"""Belief functions from the counts of equal-count bins (Xu et al. 2016, section 4.1)."""

from collections.abc import Mapping
from typing import Self

import numpy as np

from online_svm.calibration.base import Floats, Ints, State, read_ints
from online_svm.calibration.binning import equal_count_bins
from online_svm.calibration.diagram import TiedCounts
from online_svm.calibration.evidential.binomial import BinomialModel
from online_svm.calibration.evidential.blocks import BlockMap
from online_svm.errors import InvalidInput, InvalidSnapshot


class EvidentialBinning(BlockMap):
    """Masses of the bin that holds the score; the bins are those of `ScoreBinning`.

    Parameters
    ----------
    model : {"likelihood", "confidence", "dempster"}, default="likelihood"
        How counts become belief: the relative likelihood as contour (eqs 29-31), the
        Clopper-Pearson interval (eqs 26-28), or Dempster's model (eq. 24).
    n_bins : int, default=10
        At most so many bins of equal count. There are no empty bins; with fewer distinct scores
        than bins there are fewer bins.
    alpha : float, default=0.05
        One minus the confidence level, for "confidence".

    Attributes
    ----------
    edges_ : ndarray of shape (n_blocks - 1,)
        Upper edge of each bin but the last, inclusive.
    totals_, positives_ : ndarray of shape (n_blocks,)
        Examples, and positive examples, in each bin.
    masses_ : ndarray of shape (n_blocks, 3)
        m({1}), m({0}), m({0, 1}) of each bin.

    References
    ----------
    P. Xu, F. Davoine, H. Zha, T. Denoeux (2016), Evidential calibration of binary SVM classifiers.

    Examples
    --------
    >>> fitted = EvidentialBinning("dempster", n_bins=2).fit([0.0, 1.0, 2.0, 3.0], [0, 0, 1, 1])
    >>> fitted.predict_interval([0.5, 2.5]).round(3).tolist()
    [[0.0, 0.333], [0.667, 1.0]]
    """

    def __init__(
        self, model: BinomialModel = "likelihood", n_bins: int = 10, alpha: float = 0.05
    ) -> None:
        super().__init__(model, alpha)
        if n_bins < 1:
            raise InvalidInput(f"n_bins: must be at least 1, not {n_bins}")
        self.n_bins = n_bins

    def _fit_counts(self, counts: TiedCounts) -> None:
        self._set_blocks(equal_count_bins(counts, self.n_bins))

    def _state(self) -> State:
        return super()._state() | {"n_bins": np.array([self.n_bins], dtype=np.int64)}

    @classmethod
    def _restore(cls, state: Mapping[str, Floats | Ints]) -> Self:
        n_bins = int(read_ints(state, "n_bins", 1)[0])
        if n_bins < 1:
            raise InvalidSnapshot(f"map state: {n_bins} is no number of bins")
        restored = super()._restore(state)
        restored.n_bins = n_bins
        return restored

    def _shape(self, masses: Floats) -> Floats:
        return masses
