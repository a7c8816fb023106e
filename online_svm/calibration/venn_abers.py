"""Venn-Abers prediction: an interval from two isotonic fits (Vovk, Petej & Fedorova 2015)."""

from online_svm.calibration.calibrators.venn_abers import (
    VennAbersCalibrator,
    brier_point,
    log_loss_point,
)
from online_svm.calibration.estimator import MapEstimator

__all__ = ["VennAbers", "brier_point", "log_loss_point"]


class VennAbers(MapEstimator, VennAbersCalibrator):
    """P(positive) as an interval: isotonic fits with the example added as negative and positive.

    For a score s, p0 is the isotonic value at s when (s, negative) joins the calibration set, p1
    when (s, positive) joins it; tied scores are pooled. Fitting takes one sort of the k
    calibration scores and two linear passes, an answer one binary search. Fitted on no example,
    the interval is [0, 1].

    The pair is valid for i.i.d. examples: the member picked by the true label is calibrated. A
    point merged from it (`predict`, `log_loss_point`, `brier_point`) carries no guarantee. `fit`
    takes no weights: weighted examples are not exchangeable with the one that is asked about.

    Attributes
    ----------
    scores_ : ndarray of shape (k,)
        Distinct calibration scores, ascending.
    p0_, p1_ : ndarray of shape (k + 1,)
        p0 for each number of distinct scores at most s; p1 for each number of them below s.

    References
    ----------
    V. Vovk, I. Petej, V. Fedorova (2015), Large-scale probabilistic predictors with and without
    guarantees of validity.

    Examples
    --------
    >>> fitted = VennAbers().fit([0.0, 1.0, 2.0, 3.0], [0, 0, 1, 1])
    >>> fitted.predict_interval([-1.0, 1.5, 9.0])
    array([[0.        , 0.33333333],
           [0.        , 1.        ],
           [0.66666667, 1.        ]])
    """
