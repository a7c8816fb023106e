"""Temperature, vector and matrix scaling: joint maps of K scores to K probabilities."""

import math
from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.argument_checks import check_codes, check_columns
from online_svm.calibration.joint.lbfgs import minimise
from online_svm.calibration.joint.softmax import Examples, inverse_temperature, probabilities_into
from online_svm.calibration.score_map import FittedMap
from online_svm.errors import InvalidInput
from online_svm.storage.fields import Fields, floats, one
from online_svm.types import Arrays, Floats, Ints

LARGEST_LOGIT = 100.0
"""Beyond it a scaled score says no more: its probability is 1 to the last bit."""

RIDGE = 10.0

MOST_CLASSES = 1_000_000
"""Beyond this many no state is read; far more than a matrix of them could be held of."""


class JointMap(FittedMap):
    """What the joint maps do alike: check, and scale by the temperature.

    A subclass says what follows the temperature: a function of the K scaled scores, given by the
    vector that `softmax.py` describes.
    """

    _diagonal: ClassVar[bool] = True
    _learned = "inverse_temperature_"
    _fields = Fields(one("n_classes_", least=2, below=MOST_CLASSES + 1))
    _dimensions = 2
    n_classes_: int
    inverse_temperature_: float
    _theta: Floats

    @abstractmethod
    def _fit_theta(self, examples: Examples) -> None:
        """Fit the function to scaled scores, or leave it."""

    def fit(self, scores: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to scores and classes.

        Parameters
        ----------
        scores : array-like of shape (n_samples, n_classes) or (n_samples, 1)
            One column a class. A single column s stands for the two columns 0 and s.
        labels : array-like of int of shape (n_samples,)
            Class of each example, from 0.

        Returns
        -------
        Self
            The map itself.

        Raises
        ------
        InvalidInput
            If a score is not finite, a class out of range, or the lengths differ.

        Examples
        --------
        >>> from online_svm import TemperatureScaling
        >>> fitted = TemperatureScaling().fit([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [0, 1])
        >>> fitted.n_classes_
        3
        """
        self._check_parameters()
        values = _both_columns(check_columns(scores))
        codes = check_codes(labels, *values.shape)
        self.n_classes_ = values.shape[1]
        highs = _targets(codes, self.n_classes_)
        self.inverse_temperature_ = _inverse_temperature(values, codes, highs)
        self._theta = _identity(self.n_classes_, self._diagonal)
        if len(codes):
            self._fit_centred(self._scaled(values), codes, highs)
        return self

    def predict(self, scores: ArrayLike) -> Floats:
        """Return the probability of every class for each row of scores.

        Parameters
        ----------
        scores : array-like of shape (n_samples, n_columns)
            As many columns as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to one; a row does not depend on the others in the call.

        Raises
        ------
        InvalidInput
            If a score is not finite, the number of columns differs from that of `fit`, or nothing
            is fitted.

        Examples
        --------
        >>> from online_svm import VectorScaling
        >>> VectorScaling().fit([[-1.0], [1.0]], [0, 1]).predict([[0.0]]).round(3)
        array([[0.5, 0.5]])
        """
        self._require_fit()
        values = _both_columns(check_columns(scores))
        if values.shape[1] != self.n_classes_:
            raise InvalidInput(
                f"scores: expected the columns of {self.n_classes_} classes, as in fit, got "
                f"{values.shape[1]}"
            )
        return self._probabilities(values)

    def predict_unchecked(self, scores: Floats) -> Floats:
        """Do what `predict` does for scores of as many columns that are known to be finite.

        Examples
        --------
        >>> import numpy as np
        >>> from online_svm import VectorScaling
        >>> fitted = VectorScaling().fit([[-1.0], [1.0]], [0, 1])
        >>> fitted.predict_unchecked(np.array([[0.0]])).round(3)
        array([[0.5, 0.5]])
        """
        return self._probabilities(_both_columns(scores))

    def _probabilities(self, values: Floats) -> Floats:
        found = np.empty(values.shape)
        probabilities_into(self._scaled(values), self._theta, self._diagonal, found)
        return found

    def _state(self) -> Arrays:
        parameters = np.append(self._theta, self.inverse_temperature_)
        return self._fields.arrays_of(self) | {"parameters": parameters}

    def _load(self, state: Arrays) -> None:
        super()._load(state)
        n_classes = self.n_classes_
        size = (n_classes if self._diagonal else n_classes * n_classes) + n_classes
        table = Fields(floats("parameters", f"{size + 1}"))
        parameters = table.values(type(self), None, state)["parameters"]
        self._theta = parameters[:-1].copy()
        self.inverse_temperature_ = float(parameters[-1])

    def _fit_centred(self, X: Floats, codes: Ints, highs: Floats) -> None:
        """Fit to rows less their mean, which takes fewer iterations, and move the offsets back."""
        n_classes, centre = self.n_classes_, np.array([math.fsum(column) for column in X.T])
        centre /= len(X)
        weights, offsets = self._theta[:-n_classes], self._theta[-n_classes:]
        shaped = weights if self._diagonal else weights.reshape(n_classes, n_classes)
        offsets += _applied(shaped, centre)
        self._fit_theta(Examples(X - centre, codes, highs))
        offsets -= _applied(shaped, centre)

    def _scaled(self, values: Floats) -> Floats:
        """Return the scores divided by the temperature."""
        with np.errstate(over="ignore"):
            logits = values * self.inverse_temperature_
        return np.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT)


class TemperatureScaling(JointMap):
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

    def _fit_theta(self, examples: Examples) -> None:
        """Leave the identity: the temperature is all there is."""


class VectorScaling(JointMap):
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

    def _fit_theta(self, examples: Examples) -> None:
        minimise(examples, self._theta, True, 0.0)


class MatrixScaling(JointMap):
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

    _diagonal = False

    def __init__(self, ridge: float = RIDGE) -> None:
        self.ridge = ridge
        self._check_parameters()

    def _check_parameters(self) -> None:
        if not (math.isfinite(self.ridge) and self.ridge >= 0.0):
            raise InvalidInput(f"ridge: must be finite and not negative, not {self.ridge!r}")

    def _fit_theta(self, examples: Examples) -> None:
        minimise(examples, self._theta, False, float(self.ridge))


def _applied(weights: Floats, x: Floats) -> Floats:
    """Return a * x, or W x with each sum rounded once."""
    if weights.ndim == 1:
        return weights * x
    return np.array([math.fsum(row * x) for row in weights])


def _both_columns(scores: Floats) -> Floats:
    """Return one column a class, each row on its own in memory."""
    if scores.shape[1] > 1:
        return np.ascontiguousarray(scores)
    return np.column_stack((np.zeros(len(scores)), scores))


def _targets(codes: Ints, n_classes: int) -> Floats:
    """Return the target of each class for its own examples: Platt's (N + 1) / (N + 2)."""
    counts = np.bincount(codes, minlength=n_classes)
    return np.asarray((counts + 1.0) / (counts + 2.0))


def _identity(n_classes: int, diagonal: bool) -> Floats:
    weights = np.ones(n_classes) if diagonal else np.eye(n_classes).ravel()
    return np.append(weights, np.zeros(n_classes))


def _inverse_temperature(values: Floats, codes: Ints, highs: Floats) -> float:
    """Return the best inverse temperature; 0 where there is no example, or no difference."""
    if not len(values):
        return 0.0
    # Halved first: the difference of two finite scores may be no finite number.
    framed = 0.5 * values - 0.5 * values.max(axis=1, keepdims=True)
    widest = float(-framed.min())
    if widest < 1e-300:
        return 0.0
    width = math.ldexp(1.0, math.frexp(widest)[1] - 1)  # division by it is exact
    beta = 0.5 * inverse_temperature(framed / width, codes, highs) / width
    return beta if math.isfinite(beta) else 0.0
