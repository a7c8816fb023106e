"""Temperature, vector and matrix scaling: joint maps of K scores to K probabilities.

Each is the softmax of a linear function of the scores, given by a vector. Diagonal: a_1 ... a_K,
b_1 ... b_K with z_k = a_k x_k + b_k. Otherwise: the rows of W, then b_1 ... b_K, with z = W x + b.
The target of an example is `high` for its own class; the other classes share the rest evenly. Sums
are in fixed order.
"""

import math
from abc import abstractmethod
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.diagram import check_codes, check_columns
from online_svm.calibration.score_map import FittedMap
from online_svm.compiled.kernel import kernel
from online_svm.errors import InvalidInput
from online_svm.storage.state_schema import StateSchema, floats, one
from online_svm.types import Arrays, Floats, Ints

MAX_LOGIT = 100.0  # scaled scores are clipped here: the probability is already 1 to the last bit

RIDGE = 10.0

MAX_CLASSES_IN_STATE = 1_000_000
"""States with more classes are rejected; a weight matrix of this size exceeds any memory."""


class CodedScores(NamedTuple):
    """Training examples of a function."""

    X: Floats  # shape (n, K)
    codes: Ints  # shape (n,)
    highs: Floats  # shape (K,): target `high` of each class


@kernel
def probabilities_into(X: Floats, theta: Floats, diagonal: bool, found: Floats) -> None:
    """Write the softmax of the function at each row, shape (n, K); rows are independent."""


def inverse_temperature(scores: Floats, codes: Ints, highs: Floats) -> float:
    """Return the beta >= 0 that minimises the cross-entropy of softmax(beta s).

    Row maxima of `scores`, shape (n, K), must be 0, no score below -2 and at least one <= -1.
    `highs`, shape (K,), are the targets of an example's own class.
    """
    return _inverse_temperature(scores, codes, highs, np.empty(scores.shape[1]))


@kernel
def _inverse_temperature(scores: Floats, codes: Ints, highs: Floats, p: Floats) -> float:
    """Implement `inverse_temperature`; `p`, shape (K,), is scratch."""


def minimise(examples: CodedScores, theta: Floats, diagonal: bool, ridge: float) -> int:
    """Move `theta` to the minimum of the loss, in place; return the number of iterations of L-BFGS.

    The loss is the summed cross-entropy plus ridge / 2 times the squared distance of a from 1, or
    of W from the identity (Liu & Nocedal 1989).
    """
    size, n_classes = len(theta), examples.X.shape[1]
    pairs, vectors = np.empty((2, 10, size)), np.empty((5, size))
    work = pairs, vectors, np.empty((4, n_classes))
    return _minimise(examples, theta, diagonal, ridge, work)


@kernel
def _minimise(
    examples: CodedScores,
    theta: Floats,
    diagonal: bool,
    ridge: float,
    work: tuple[Floats, Floats, Floats],
) -> int:
    """Implement `minimise`; the shapes of `work` are (2, 10, size), (5, size) and (4, K)."""


class JointMap(FittedMap):
    """Base class of the joint maps: checks the input and divides by the temperature.

    A subclass fits a linear function of the K scaled scores, given by the vector described
    above.
    """

    _diagonal: ClassVar[bool] = True
    _learned = "inverse_temperature_"
    _fields = StateSchema(one("n_classes_", least=2, below=MAX_CLASSES_IN_STATE + 1))
    _dimensions = 2
    n_classes_: int
    inverse_temperature_: float
    _theta: Floats

    @abstractmethod
    def _fit_theta(self, examples: CodedScores) -> None:
        """Fit the function to scaled scores, in place."""

    def fit(self, scores: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to scores and classes.

        `scores` has shape (n_samples, n_classes), or (n_samples, 1): a single column s stands for
        the two columns 0 and s. `labels`, shape (n_samples,), holds the class of each example, from
        0. Raises InvalidInput if a score is not finite, a class is out of range, or the lengths
        differ.
        """
        self._check_parameters()
        values = _both_columns(check_columns(scores))
        codes = check_codes(labels, *values.shape)
        self.n_classes_ = values.shape[1]
        highs = _targets(codes, self.n_classes_)
        self.inverse_temperature_ = _fitted_inverse_temperature(values, codes, highs)
        self._theta = _identity(self.n_classes_, self._diagonal)
        if len(codes):
            self._fit_centred(self._scaled(values), codes, highs)
        return self

    def predict(self, scores: ArrayLike) -> Floats:
        """Return the probability of each class, shape (n_samples, n_classes).

        Each row sums to one and depends on its own scores only. Raises InvalidInput if a score is
        not finite, the number of columns differs from `fit`, or the map is not fitted.
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
        """Predict without checks; the scores must be finite and have the columns of `fit`."""
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
        table = StateSchema(floats("parameters", f"{size + 1}"))
        parameters = table.values(type(self), None, state)["parameters"]
        self._theta = parameters[:-1].copy()
        self.inverse_temperature_ = float(parameters[-1])

    def _fit_centred(self, X: Floats, codes: Ints, highs: Floats) -> None:
        """Fit to centred rows, which takes fewer iterations, then shift the offsets back."""
        n_classes, centre = self.n_classes_, np.array([math.fsum(column) for column in X.T])
        centre /= len(X)
        weights, offsets = self._theta[:-n_classes], self._theta[-n_classes:]
        shaped = weights if self._diagonal else weights.reshape(n_classes, n_classes)
        offsets += _applied(shaped, centre)
        self._fit_theta(CodedScores(X - centre, codes, highs))
        offsets -= _applied(shaped, centre)

    def _scaled(self, values: Floats) -> Floats:
        with np.errstate(over="ignore"):
            logits = values * self.inverse_temperature_
        return np.clip(logits, -MAX_LOGIT, MAX_LOGIT)


class TemperatureScaling(JointMap):
    """softmax(S / T): one temperature for all classes (Guo et al. 2017).

    T is positive or infinite, so the ranking of the classes by score is preserved. The loss is the
    cross-entropy against smoothed targets: as in Platt scaling, an example of a class with N
    examples has the target (N + 1) / (N + 2) for its own class, and the other classes share the
    rest evenly. So separable scores have a finite optimum, and a class without examples keeps a
    positive probability. Fitted on no examples, or on identical scores, the map returns 1 / K.

    Attributes
    ----------
    inverse_temperature_ : float
        1 / T; 0 if the scores carry no information, and all classes are equally likely.
    n_classes_ : int
        K; 2 for a single column of scores.

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

    def _fit_theta(self, examples: CodedScores) -> None:
        """Keep the identity: the temperature is the only parameter."""


class VectorScaling(JointMap):
    """softmax(a * S + b): a slope and an offset for each class (Guo et al. 2017).

    The fit starts from temperature scaling and minimises the same loss by L-BFGS. Attributes and
    references are as in `TemperatureScaling`.

    Examples
    --------
    >>> fitted = VectorScaling().fit([[1.0, 0.0], [0.0, 1.0]] * 5, [0, 1] * 4 + [1, 1])
    >>> fitted.predict([[0.5, 0.5]]).round(2)
    array([[0.36, 0.64]])
    """

    def _fit_theta(self, examples: CodedScores) -> None:
        minimise(examples, self._theta, True, 0.0)


class MatrixScaling(JointMap):
    """softmax(S W' + b), with a ridge on W (Guo et al. 2017; Kull et al. 2019).

    S is divided by the temperature of `TemperatureScaling` first, so that the ridge pulls W to
    temperature scaling for any unit of the scores. The loss adds ridge / 2 times the squared
    distance of W from the identity, and is minimised by L-BFGS. Attributes are as in
    `TemperatureScaling`.

    Parameters
    ----------
    ridge : float, default=10.0
        Strength in units of examples; with many more examples it has little effect.

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

    def _fit_theta(self, examples: CodedScores) -> None:
        minimise(examples, self._theta, False, float(self.ridge))


def _applied(weights: Floats, x: Floats) -> Floats:
    """Return a * x, or W x with exactly rounded sums."""
    if weights.ndim == 1:
        return weights * x
    return np.array([math.fsum(row * x) for row in weights])


def _both_columns(scores: Floats) -> Floats:
    """Return one column a class, C-contiguous."""
    if scores.shape[1] > 1:
        return np.ascontiguousarray(scores)
    return np.column_stack((np.zeros(len(scores)), scores))


def _targets(codes: Ints, n_classes: int) -> Floats:
    """Return each class's target for its own examples: Platt's (N + 1) / (N + 2)."""
    counts = np.bincount(codes, minlength=n_classes)
    return np.asarray((counts + 1.0) / (counts + 2.0))


def _identity(n_classes: int, diagonal: bool) -> Floats:
    weights = np.ones(n_classes) if diagonal else np.eye(n_classes).ravel()
    return np.append(weights, np.zeros(n_classes))


def _fitted_inverse_temperature(values: Floats, codes: Ints, highs: Floats) -> float:
    """Return the best inverse temperature; 0 without examples or with constant scores."""
    if not len(values):
        return 0.0
    # Halve first: the difference of two finite scores can overflow.
    framed = 0.5 * values - 0.5 * values.max(axis=1, keepdims=True)
    widest = float(-framed.min())
    if widest < 1e-300:
        return 0.0
    width = math.ldexp(1.0, math.frexp(widest)[1] - 1)  # division by it is exact
    beta = 0.5 * inverse_temperature(framed / width, codes, highs) / width
    return beta if math.isfinite(beta) else 0.0
