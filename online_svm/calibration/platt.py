"""Platt scaling: a sigmoid of the score, fitted by maximum likelihood."""

from online_svm.calibration.calibrators.platt import PlattCalibrator
from online_svm.calibration.estimator import MapEstimator


class PlattScaling(MapEstimator, PlattCalibrator):
    """P(positive | f) = 1 / (1 + exp(A f + B)), by maximum likelihood (Platt 1999).

    Parameters
    ----------
    method : {"newton", "model-trust"}, default="newton"
        Newton's method with backtracking (Lin, Lin & Weng 2007), or the model-trust iteration of
        Platt's appendix. They reach the same loss within 1e-6 relative.
    targets : {"platt", "raw"}, default="platt"
        Platt's targets (N+ + 1)/(N+ + 2) and 1/(N- + 2), or the labels themselves.

    Attributes
    ----------
    A_, B_ : float
        Slope and offset; A_ <= 0, so that a larger score never means a smaller probability.
    loss_ : float
        Cross-entropy between the targets and the fitted probabilities, summed, in nats.
    wrong_sign_ : bool
        Whether the best slope was positive: the scores point the wrong way. The loss is convex, so
        its minimum over A <= 0 is then at A = 0, and the map is the best constant.

    Notes
    -----
    With one class only, or without two different scores, the best constant is returned: by
    Platt's targets (N+ + 1)/(N+ + 2) when all are positive, 1/(N- + 2) when all are negative, and
    1/2 without any example. Separable scores have a finite optimum by Platt's targets. By raw
    targets they have none, nor has a single class; then `fit` raises InvalidInput.

    The fit runs on scores moved and scaled to [-1, 1], so that scores of any finite size neither
    overflow nor make the Hessian singular.

    References
    ----------
    J. Platt (1999), Probabilistic outputs for support vector machines. H.-T. Lin, C.-J. Lin,
    R. C. Weng (2007), A note on Platt's probabilistic outputs for support vector machines.

    Examples
    --------
    >>> fitted = PlattScaling().fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    >>> fitted.predict([-1.0, 0.0, 1.0]).round(3)
    array([0.338, 0.5  , 0.662])
    """
