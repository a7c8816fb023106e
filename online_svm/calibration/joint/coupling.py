"""Class probabilities from the decision values of every pair of classes."""

from typing import Self

import numpy as np

from online_svm.calibration.joint.maps import MatrixScaling
from online_svm.calibration.platt import PlattScaling
from online_svm.types import Floats, Ints

SURE = 1e-7
"""No pair is surer than that, as in LIBSVM: the logarithms stay finite, and the system regular."""

RIDGES = (10.0, 100.0)
"""Of two classes, and of more: K^2 weights that are as free as 4 would part the labels of the
largest probability from those of the votes more often, and predict no better."""

_AT_ONCE = 1 << 20
"""Elements of the systems that are solved in one call: 8 MB."""


def class_pairs(n_classes: int) -> tuple[Ints, Ints]:
    """Return the first and the second class of every pair, in the order of their columns.

    Examples
    --------
    >>> [classes.tolist() for classes in class_pairs(3)]
    [[0, 0, 1], [1, 2, 2]]
    """
    first, second = np.triu_indices(n_classes, 1)
    return first.astype(np.int64), second.astype(np.int64)


def couple(pairwise: Floats, n_classes: int) -> Floats:
    """Return the class probabilities that fit those of the pairs best.

    They minimise the sum over pairs of (P(j of i, j) p_i - P(i of i, j) p_j)^2 among those that
    sum to one: the second method of Wu, Lin & Weng (2004). A row does not depend on the others.

    Parameters
    ----------
    pairwise : ndarray of shape (n_samples, n_classes (n_classes - 1) / 2)
        Probability of the first class of each pair, given that it is one of the two; neither 0
        nor 1.
    n_classes : int

    Returns
    -------
    ndarray of shape (n_samples, n_classes)

    References
    ----------
    T.-F. Wu, C.-J. Lin, R. C. Weng (2004), Probability estimates for multi-class classification by
    pairwise coupling.

    Examples
    --------
    >>> couple(np.array([[0.25]]), 2).round(2)
    array([[0.25, 0.75]])
    >>> couple(np.array([[1 / 3, 1 / 4, 2 / 5]]), 3).round(3)  # those of .167, .333 and .5
    array([[0.167, 0.333, 0.5  ]])
    """
    probabilities = np.empty((len(pairwise), n_classes))
    step = max(1, _AT_ONCE // (n_classes + 1) ** 2)
    for start in range(0, len(pairwise), step):
        rows = slice(start, start + step)
        probabilities[rows] = _coupled(pairwise[rows], n_classes)
    return probabilities


def _coupled(pairwise: Floats, n_classes: int) -> Floats:
    """Solve the conditions of the minimum, with a multiplier for the sum."""
    first, second = class_pairs(n_classes)
    system = np.zeros((len(pairwise), n_classes + 1, n_classes + 1))
    cross = -pairwise * (1.0 - pairwise)
    system[:, first, second] = system[:, second, first] = cross
    for k in range(n_classes):
        squares = (1.0 - pairwise[:, first == k]) ** 2
        system[:, k, k] = squares.sum(axis=1) + (pairwise[:, second == k] ** 2).sum(axis=1)
    system[:, :n_classes, n_classes] = system[:, n_classes, :n_classes] = 1.0
    unit = np.zeros((len(pairwise), n_classes + 1, 1))
    unit[:, n_classes] = 1.0
    solved = np.linalg.solve(system, unit)[:, :n_classes, 0]
    found = np.maximum(solved, SURE**2)  # the minimum is positive; rounding may not be
    return np.asarray(found / found.sum(axis=1, keepdims=True), dtype=np.float64)


class CoupledPlatt:
    """Platt's sigmoid for each pair, coupled, then matrix scaling of the log-probabilities.

    Of two classes it is beta calibration (Kull et al. 2017) of Platt's probability, held to it by
    a ridge: the sigmoid may become lopsided where the examples say so.

    Attributes
    ----------
    sigmoids_ : list of PlattScaling
        One a pair, in the order of `class_pairs`.
    scaling_ : MatrixScaling

    References
    ----------
    M. Kull, T. Silva Filho, P. Flach (2017), Beta calibration.

    Examples
    --------
    >>> values = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> CoupledPlatt().fit(values, np.array([1, 1, 0, 0])).predict(values).round(2)
    array([[0.21, 0.79],
           [0.34, 0.66],
           [0.66, 0.34],
           [0.79, 0.21]])
    """

    sigmoids_: list[PlattScaling]
    scaling_: MatrixScaling

    def fit(self, values: Floats, codes: Ints) -> Self:
        """Fit to the values of all pairs; where one is positive, it is for the first class.

        Parameters
        ----------
        values : ndarray of shape (n_samples, n_pairs)
            Finite.
        codes : ndarray of shape (n_samples,)
            Class of each example, from 0.
        """
        self.sigmoids_ = []
        for k, (i, j) in enumerate(zip(*class_pairs(_n_classes(values)), strict=True)):
            own = (codes == i) | (codes == j)
            self.sigmoids_.append(PlattScaling().fit(values[own, k], codes[own] == i))
        ridge = RIDGES[0] if len(self.sigmoids_) == 1 else RIDGES[1]
        self.scaling_ = MatrixScaling(ridge).fit(np.log(self._coupled(values)), codes)
        return self

    def predict(self, values: Floats) -> Floats:
        """Return the probabilities, shape (n_samples, n_classes)."""
        return self.scaling_.predict(np.log(self._coupled(values)))

    def _coupled(self, values: Floats) -> Floats:
        of_pairs = [sigmoid.predict(values[:, k]) for k, sigmoid in enumerate(self.sigmoids_)]
        pairwise = np.clip(np.column_stack(of_pairs), SURE, 1.0 - SURE)
        return couple(pairwise, _n_classes(values))


def _n_classes(values: Floats) -> int:
    """Return K, of which there are K (K - 1) / 2 pairs."""
    return int((1 + np.sqrt(1 + 8 * values.shape[1])) / 2)
