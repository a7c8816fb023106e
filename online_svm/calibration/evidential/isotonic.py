"""Belief functions from the blocks of isotonic regression (Xu et al. 2016, section 4.2)."""

import numpy as np

from online_svm.calibration.base import Floats
from online_svm.calibration.diagram import TiedCounts, isotonic_blocks
from online_svm.calibration.evidential.blocks import BlockMap
from online_svm.calibration.evidential.masses import stack


class EvidentialIsotonic(BlockMap):
    """Masses of isotonic regression: Bel and Pl never fall with the score.

    Tied scores are pooled, then adjacent violators; neighbours with equal means are merged, since
    the masses depend on how many examples share a mean. The blocks' own bounds need not be
    monotone: Pl becomes the highest so far from below, Bel the lowest so far from above. Between
    two blocks the map switches half way.

    Parameters
    ----------
    model : {"likelihood", "confidence", "dempster"}, default="likelihood"
        How counts become belief: the relative likelihood as contour (eqs 29-31), the
        Clopper-Pearson interval (eqs 26-28), or Dempster's model (eq. 24).
    alpha : float, default=0.05
        One minus the confidence level, for "confidence".

    Attributes
    ----------
    edges_ : ndarray of shape (n_blocks - 1,)
        Upper edge of each block but the last, inclusive.
    totals_, positives_ : ndarray of shape (n_blocks,)
        Examples, and positive examples, in each block; positives_ / totals_ increases strictly.
    masses_ : ndarray of shape (n_blocks, 3)
        m({1}), m({0}), m({0, 1}) of each block, after the envelopes.

    References
    ----------
    P. Xu, F. Davoine, H. Zha, T. Denoeux (2016), Evidential calibration of binary SVM classifiers.

    Examples
    --------
    >>> fitted = EvidentialIsotonic("dempster").fit([0.0, 1.0, 2.0, 3.0], [0, 1, 0, 1])
    >>> fitted.predict_interval([0.0, 1.5, 9.0]).round(3).tolist()
    [[0.0, 0.5], [0.333, 0.667], [0.5, 1.0]]
    """

    def _fit_counts(self, counts: TiedCounts) -> None:
        self._set_blocks(isotonic_blocks(counts))

    def _shape(self, masses: Floats) -> Floats:
        """Draw the envelopes; the least m({0}) so far is the highest plausibility so far."""
        belief = np.minimum.accumulate(masses[::-1, 0])[::-1]
        return stack(belief, np.minimum.accumulate(masses[:, 1]))
