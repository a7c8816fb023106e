"""Histogram binning of scores into bins of equal count (Drish 1998; Zadrozny & Elkan 2001)."""

from online_svm.calibration.calibrators.binning import BinningCalibrator
from online_svm.calibration.estimator import MapEstimator


class ScoreBinning(MapEstimator, BinningCalibrator):
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
