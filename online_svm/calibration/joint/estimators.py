"""Temperature, vector and matrix scaling as estimators of scikit-learn."""

from typing import ClassVar

from sklearn.utils import Tags

from online_svm.calibration.estimators import MapEstimator
from online_svm.calibration.joint.maps import (
    MatrixCalibrator,
    TemperatureCalibrator,
    VectorCalibrator,
)


class JointMapEstimator(MapEstimator):
    """Parameters, copies, text and tags of a joint map; scores are two-dimensional.

    Examples
    --------
    >>> from sklearn.base import clone
    >>> from online_svm import MatrixScaling
    >>> clone(MatrixScaling(ridge=1.0))
    MatrixScaling(ridge=1.0)
    """

    _learned: ClassVar[str] = "inverse_temperature_"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = False, True
        return tags


class TemperatureScaling(JointMapEstimator, TemperatureCalibrator):
    """softmax(S / T): one number for all classes (Guo et al. 2017).

    The order of the classes stays that of the scores. T is positive or infinite, so a larger score
    never means a smaller probability.

    Attributes
    ----------
    inverse_temperature_ : float
        1 / T; 0 where the scores say nothing, and all classes get the same.
    n_classes_ : int
        K; 2 for a single column of scores.

    Notes
    -----
    The loss is the cross-entropy against targets that are not quite certain: an example of a class
    with N examples has the target (N + 1) / (N + 2) for it, as Platt's, and the other classes share
    the rest evenly. So separable scores have a finite optimum, and a class without examples keeps a
    probability. Fitted on no example, or on scores that are all alike, it answers 1 / K.

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun, K. Weinberger (2017), On calibration of modern neural networks.

    Examples
    --------
    >>> scores = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    >>> fitted = TemperatureScaling().fit(scores, [0, 1, 2, 1])
    >>> fitted.predict([[1.0, 0.0, 0.0]]).round(2)
    array([[0.55, 0.22, 0.22]])
    """


class VectorScaling(JointMapEstimator, VectorCalibrator):
    """softmax(a * S + b): a slope and an offset for each class (Guo et al. 2017).

    It starts from temperature scaling and minimises the same loss, by L-BFGS.

    Attributes
    ----------
    inverse_temperature_, n_classes_
        As those of `TemperatureScaling`.

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun, K. Weinberger (2017), On calibration of modern neural networks.

    Examples
    --------
    >>> fitted = VectorScaling().fit([[1.0, 0.0], [0.0, 1.0]] * 5, [0, 1] * 4 + [1, 1])
    >>> fitted.predict([[0.5, 0.5]]).round(2)
    array([[0.36, 0.64]])
    """


class MatrixScaling(JointMapEstimator, MatrixCalibrator):
    """softmax(S W' + b), with a ridge on W (Guo et al. 2017; Kull et al. 2019).

    It starts from temperature scaling: S is divided by its temperature T first, so that the ridge
    holds W to the map that temperature scaling is, whatever the unit of the scores. The loss is the
    same, plus ridge / 2 times the squared distance of W from the identity; minimised by L-BFGS.

    Parameters
    ----------
    ridge : float, default=10.0
        In the unit of examples: with many more of them it matters little.

    Attributes
    ----------
    inverse_temperature_, n_classes_
        As those of `TemperatureScaling`.

    References
    ----------
    M. Kull, M. Perello Nieto, M. Kangsepp, T. Silva Filho, H. Song, P. Flach (2019), Beyond
    temperature scaling.

    Examples
    --------
    >>> scores = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] * 9
    >>> fitted = MatrixScaling().fit(scores, [0, 1, 2] * 9)
    >>> bool(fitted.predict([[1.0, 0.0, 0.0]])[0, 0] > 0.8)
    True
    """
