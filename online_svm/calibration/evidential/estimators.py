"""The evidential maps as estimators (Xu, Davoine, Zha & Denoeux 2016).

Their `fit` takes no weights: the masses say how many independent examples there were, and a weight
is none.
"""

from online_svm.calibration.estimators import MapEstimator
from online_svm.calibration.evidential.binning import EvidentialBinningCalibrator
from online_svm.calibration.evidential.isotonic import EvidentialIsotonicCalibrator
from online_svm.calibration.evidential.logistic import EvidentialLogisticCalibrator


class EvidentialBinning(MapEstimator, EvidentialBinningCalibrator):
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


class EvidentialIsotonic(MapEstimator, EvidentialIsotonicCalibrator):
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


class EvidentialLogistic(MapEstimator, EvidentialLogisticCalibrator):
    """Masses of logistic regression: how far each log-odds at a score can be believed.

    Parameters
    ----------
    model : {"likelihood", "confidence"}, default="likelihood"
        "likelihood": the contour at s is, for each proportion, the highest relative likelihood of
        a line that passes through it at s (eqs 34-40); Bel and Pl are its integrals (eqs 22, 23),
        read off a table (see `IgnoranceTable`). "confidence": the Wald interval of the log-odds
        (eqs 26, 27); its Bel is not monotone in the score.
    alpha : float, default=0.05
        One minus the confidence level, for "confidence".
    targets : {"platt", "raw"}, default="platt"
        What the likelihood is of: Platt's targets, or the labels themselves. The paper leaves it
        open; the masses differ (20 examples: Bel .46 against .58).

    Attributes
    ----------
    line_ : Line or None
        The line of maximum likelihood; None without examples. `line_.slope < 0` says that the
        scores point the wrong way: the evidence is kept as it is, whereas `PlattScaling` then
        returns a constant.

    Notes
    -----
    With one distinct score the examples say nothing about any other: there the map is vacuous.
    With one class only Platt's targets make every target equal, the line is flat and the masses
    are those of that evidence. Raw targets have no optimum there, nor on separable scores.

    References
    ----------
    P. Xu, F. Davoine, H. Zha, T. Denoeux (2016), Evidential calibration of binary SVM classifiers.

    Examples
    --------
    >>> fitted = EvidentialLogistic().fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    >>> fitted.predict_interval([-2.0, 0.0, 2.0]).round(2)
    array([[0.03, 0.65],
           [0.2 , 0.8 ],
           [0.35, 0.97]])
    """
