"""Compute class probabilities of an SVC from out-of-fold decision values of the class pairs."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.model_selection import KFold
from sklearn.svm import SVC
from sklearn.utils import _safe_indexing

from online_svm.calibration.joint import MatrixScaling
from online_svm.calibration.platt import PlattScaling
from online_svm.types import Floats, Ints

MIN_PAIR_PROBABILITY = 1e-7
"""Pairwise probabilities are clipped at this distance from 0 and 1, as in LIBSVM."""

SCALING_RIDGES = (10.0, 100.0)
"""Ridge of the matrix scaling for two classes, and for more.

With the smaller ridge, the K^2 weights would make the most probable class differ from the voted
class more often, without better predictions.
"""

_MAX_MATRIX_ELEMENTS = 1 << 20
"""Limit on the matrix elements of the linear systems that are solved in one call: 8 MB."""


def class_pairs(n_classes: int) -> tuple[Ints, Ints]:
    """Return the first and the second class of every pair, in the order of their columns."""
    first, second = np.triu_indices(n_classes, 1)
    return first.astype(np.int64), second.astype(np.int64)


def couple(pairwise: Floats, n_classes: int) -> Floats:
    """Return the class probabilities closest to the given pairwise probabilities, shape (n, K).

    They minimise the sum over pairs (i, j) of (P(j | i or j) p_i - P(i | i or j) p_j)^2, subject to
    a sum of one: the second method of Wu, Lin & Weng (2004), Probability estimates for multi-class
    classification by pairwise coupling. `pairwise`, shape (n, K (K - 1) / 2), has the conditional
    probability P(i | i or j) of the first class of each pair, strictly between 0 and 1.
    """
    probabilities = np.empty((len(pairwise), n_classes))
    step = max(1, _MAX_MATRIX_ELEMENTS // (n_classes + 1) ** 2)
    for start in range(0, len(pairwise), step):
        rows = slice(start, start + step)
        probabilities[rows] = _coupled(pairwise[rows], n_classes)
    return probabilities


def _coupled(pairwise: Floats, n_classes: int) -> Floats:
    """Solve the optimality conditions, with a Lagrange multiplier for the sum."""
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
    found = np.maximum(solved, MIN_PAIR_PROBABILITY**2)  # rounding can make it negative
    return np.asarray(found / found.sum(axis=1, keepdims=True), dtype=np.float64)


class CoupledPlatt:
    """Platt scaling of each pair, pairwise coupling, then matrix scaling of log-probabilities.

    For two classes this is beta calibration (Kull, Silva Filho & Flach 2017) of Platt's probability
    with a ridge towards the identity: the sigmoid becomes asymmetric if the examples support it.
    """

    sigmoids_: list[PlattScaling]
    scaling_: MatrixScaling

    def fit(self, values: Floats, codes: Ints) -> Self:
        """Fit to decision values, shape (n, n_pairs); positive favours the pair's first class."""
        self.sigmoids_ = []
        for k, (i, j) in enumerate(zip(*class_pairs(_n_classes(values)), strict=True)):
            own = (codes == i) | (codes == j)
            self.sigmoids_.append(PlattScaling().fit(values[own, k], codes[own] == i))
        ridge = SCALING_RIDGES[0] if len(self.sigmoids_) == 1 else SCALING_RIDGES[1]
        self.scaling_ = MatrixScaling(ridge).fit(np.log(self._coupled(values)), codes)
        return self

    def predict(self, values: Floats) -> Floats:
        """Return the class probabilities, shape (n_samples, n_classes)."""
        return self.scaling_.predict(np.log(self._coupled(values)))

    def _coupled(self, values: Floats) -> Floats:
        of_pairs = [sigmoid.predict(values[:, k]) for k, sigmoid in enumerate(self.sigmoids_)]
        pairwise = np.clip(
            np.column_stack(of_pairs), MIN_PAIR_PROBABILITY, 1.0 - MIN_PAIR_PROBABILITY
        )
        return couple(pairwise, _n_classes(values))


def _n_classes(values: Floats) -> int:
    """Return K, given K (K - 1) / 2 columns of pairs."""
    return int((1 + np.sqrt(1 + 8 * values.shape[1])) / 2)


N_FOLDS = 5  # as in LIBSVM


def pair_values(machine: SVC, X: Any) -> Floats:
    """Return the decision value of each pair of classes; positive means the first of the pair."""
    by_pairs = copy(machine)
    by_pairs.decision_function_shape = "ovo"
    values: Floats = SVC.decision_function(by_pairs, X)
    return -values[:, np.newaxis] if values.ndim == 1 else values


@dataclass(frozen=True, slots=True)
class Labelled:
    """Rows in the form that the kernel needs, class codes, and weights or None.

    With the kernel "precomputed" the rows are rows of the square kernel matrix.
    """

    X: Any
    codes: Ints
    n_classes: int
    weights: NDArray[Any] | None


@dataclass(frozen=True, slots=True)
class FoldMachine:
    """A machine, its training rows, and the held-out fold."""

    machine: SVC | None  # None if the training rows have one class only
    fitted_to: Ints  # indices of the training rows
    held_out: Ints  # indices of the rows of the fold
    n_classes: int  # number of classes in all rows; the machine may lack some

    def values(self, X: Any) -> Floats:
        """Return the decision values of all pairs, 0 for a pair with a class the machine lacks.

        With the kernel "precomputed", X has one column for each row of the whole set.
        """
        first, second = class_pairs(self.n_classes)
        values = np.zeros((X.shape[0] if hasattr(X, "shape") else len(X), len(first)))
        if self.machine is not None:
            own = X[:, self.fitted_to] if self.machine.kernel == "precomputed" else X
            seen = self.machine.classes_
            values[:, np.isin(first, seen) & np.isin(second, seen)] = pair_values(self.machine, own)
        return values


def fold_machines(
    machine: SVC, rows: Labelled, rng: np.random.RandomState
) -> Iterator[FoldMachine]:
    """Yield a machine for each fold, fitted like `machine` to the rows outside the fold.

    Folds are drawn independently of rows and labels, so that the held-out rows and a new example
    are exchangeable. A row without a positive weight is in no fold.
    """
    used = np.arange(len(rows.codes))
    if rows.weights is not None:
        used = used[rows.weights > 0.0]
    folds = KFold(min(N_FOLDS, len(used)), shuffle=True, random_state=rng)
    for fitted_to, held_out in folds.split(used):
        yield _without(machine, rows, used[fitted_to], used[held_out])


def _without(machine: SVC, rows: Labelled, fitted_to: Ints, held_out: Ints) -> FoldMachine:
    codes, fitted = rows.codes[fitted_to], None
    if codes.min() < codes.max():
        own = _safe_indexing(rows.X, fitted_to)
        if machine.kernel == "precomputed":
            own = own[:, fitted_to]
        weights = None if rows.weights is None else rows.weights[fitted_to]
        with config_context(assume_finite=True, skip_parameter_validation=True):  # SVC checked both
            fitted = SVC(**_settings(machine)).fit(own, codes, weights)
    return FoldMachine(fitted, fitted_to, held_out, rows.n_classes)


def _settings(machine: SVC) -> dict[str, Any]:
    """Return the parameters of a machine, for class codes instead of labels."""
    settings: dict[str, Any] = machine.get_params(deep=False)
    if isinstance(settings["class_weight"], dict):
        settings["class_weight"] = dict(enumerate(machine.class_weight_))
    return settings | {"random_state": 0}  # SVC draws a seed but does not use it
