"""Decision values of an SVC for rows that it was not fitted to."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.model_selection import KFold
from sklearn.svm import SVC
from sklearn.utils import _safe_indexing

from online_svm.calibration.joint.coupling import class_pairs
from online_svm.types import Floats, Ints

FOLDS = 5  # as in LIBSVM


def pair_values(machine: SVC, X: Any) -> Floats:
    """Return the decision value of each pair of classes; positive is for the first of the two.

    Examples
    --------
    >>> pair_values(SVC(kernel="linear").fit([[-1.0], [1.0]], [0, 1]), [[3.0]])
    array([[-3.]])
    """
    asked = copy(machine)
    asked.decision_function_shape = "ovo"
    values: Floats = SVC.decision_function(asked, X)
    return -values[:, np.newaxis] if values.ndim == 1 else values


@dataclass(frozen=True, slots=True)
class Labelled:
    """Rows, whatever the kernel takes; their class codes; their weights, or None.

    With the kernel "precomputed" the rows are the square matrix.
    """

    X: Any
    codes: Ints
    n_classes: int
    weights: NDArray[Any] | None


@dataclass(frozen=True, slots=True)
class FoldMachine:
    """A machine, what it was fitted to, and the fold that it was not.

    Attributes
    ----------
    machine : SVC or None
        None where the rows to fit to were of one class.
    fitted_to, held_out : ndarray of int
        Positions of rows.
    n_classes : int
        Of all rows; the machine may not have met some.
    """

    machine: SVC | None
    fitted_to: Ints
    held_out: Ints
    n_classes: int

    def values(self, X: Any) -> Floats:
        """Return the decision values of all pairs, 0 for a pair with a class it has not met.

        With the kernel "precomputed", X has a column for each row of the whole.
        """
        first, second = class_pairs(self.n_classes)
        values = np.zeros((X.shape[0] if hasattr(X, "shape") else len(X), len(first)))
        if self.machine is not None:
            own = X[:, self.fitted_to] if self.machine.kernel == "precomputed" else X
            met = self.machine.classes_
            values[:, np.isin(first, met) & np.isin(second, met)] = pair_values(self.machine, own)
        return values


def fold_machines(
    machine: SVC, rows: Labelled, rng: np.random.RandomState
) -> Iterator[FoldMachine]:
    """Yield a machine for each fold, fitted like `machine` to the rows outside of the fold.

    Folds are drawn without a look at rows or labels, so that those held out and the next example
    are as exchangeable as all are. A row without a positive weight is in none.

    Examples
    --------
    >>> rows = Labelled(np.arange(10.0)[:, None], np.array([0] * 5 + [1] * 5), 2, None)
    >>> found = list(fold_machines(SVC(), rows, np.random.RandomState(0)))
    >>> [fold.held_out.tolist() for fold in found]
    [[2, 8], [4, 9], [1, 6], [3, 7], [0, 5]]
    """
    used = np.arange(len(rows.codes))
    if rows.weights is not None:
        used = used[rows.weights > 0.0]
    folds = KFold(min(FOLDS, len(used)), shuffle=True, random_state=rng)
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
    """Return the parameters of a machine of codes in place of labels."""
    settings: dict[str, Any] = machine.get_params(deep=False)
    if isinstance(settings["class_weight"], dict):
        settings["class_weight"] = dict(enumerate(machine.class_weight_))
    return settings | {"random_state": 0}  # it draws a seed of which it has no use
