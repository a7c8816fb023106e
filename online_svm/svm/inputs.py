"""Checks of what the estimators of this package are given."""

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from online_svm.errors import InvalidConfig, InvalidInput
from online_svm.kernels import Floats


def checked_examples(
    estimator: BaseEstimator, X: ArrayLike, y: ArrayLike
) -> tuple[Floats, NDArray[Any]]:
    """Return X as a float64 matrix and y as labels, and note the number of features.

    Raises
    ------
    InvalidInput
        If X is not a finite matrix, or y not one class label for each of its rows.
    """
    try:
        rows, labels = validate_data(estimator, X, y, dtype=np.float64)
        check_classification_targets(labels)
    except ValueError as error:
        raise InvalidInput(str(error)) from error
    return rows, labels


def checked_more(
    estimator: BaseEstimator, X: ArrayLike, y: ArrayLike
) -> tuple[Floats, NDArray[Any]]:
    """Return X and y as `checked_examples` does, X of as many features as were noted.

    Raises
    ------
    InvalidInput
        If X is not such a finite matrix, or y not one class label for each of its rows.
    """
    try:
        rows, labels = validate_data(estimator, X, y, dtype=np.float64, reset=False)
        check_classification_targets(labels)
    except ValueError as error:
        raise InvalidInput(str(error)) from error
    return rows, labels


def checked_rows(estimator: BaseEstimator, X: ArrayLike) -> Floats:
    """Return X as a float64 matrix of as many features as the estimator was fitted on.

    Raises
    ------
    InvalidInput
        If it is not such a matrix, or not finite.
    """
    try:
        rows: Floats = validate_data(estimator, X, dtype=np.float64, reset=False)
    except ValueError as error:
        raise InvalidInput(str(error)) from error
    return rows


def is_number(value: Any) -> bool:
    """Return whether a parameter is a real number, of Python or numpy.

    Examples
    --------
    >>> is_number(1), is_number(np.float32(0.5)), is_number("1")
    (True, True, False)
    """
    return isinstance(value, int | float | np.integer | np.floating)


def positive(value: Any, name: str) -> float:
    """Return a parameter, or raise InvalidConfig unless it is a finite number above zero.

    Examples
    --------
    >>> positive(0.5, "C")
    0.5
    """
    if not is_number(value) or not (math.isfinite(value) and value > 0):
        raise InvalidConfig(f"{name}: must be a positive number, got {value!r}")
    return float(value)


def positive_integer(value: Any, name: str) -> int:
    """Return a parameter, or raise InvalidConfig unless it is an integer above zero.

    Examples
    --------
    >>> positive_integer(9, "n_models")
    9
    """
    if not isinstance(value, int | np.integer) or value is True or value < 1:
        raise InvalidConfig(f"{name}: must be a positive integer, got {value!r}")
    return int(value)


def scale_gamma(gamma: float | Literal["scale"], X: Floats) -> float:
    """Return gamma, or 1 / (n_features * X.var()) for "scale" (1 if X does not vary).

    Examples
    --------
    >>> scale_gamma("scale", np.array([[0.0, 2.0]])), scale_gamma(3, np.zeros((1, 1)))
    (0.5, 3.0)
    """
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma != "scale":
        raise InvalidConfig(f"gamma: {gamma!r} is unknown; use 'scale' or a positive number")
    variance = float(X.var())
    return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0


def class_penalties(
    C: float,
    class_weight: Mapping[Any, float] | str | None,
    classes: NDArray[Any],
    codes: NDArray[np.int64],
) -> Floats:
    """Return C times the weight of each class, shape (n_classes,).

    Parameters
    ----------
    C : float
    class_weight : mapping from label to weight, "balanced" or None
        A label that is not in the mapping has weight 1.
    classes : ndarray of shape (n_classes,)
    codes : ndarray of shape (n,)
        Class of each example; one that does not occur has weight 1 if "balanced".

    Examples
    --------
    >>> class_penalties(2.0, {"b": 3.0}, np.array(["a", "b"]), np.array([0, 1]))
    array([2., 6.])
    >>> class_penalties(1.0, "balanced", np.array([0, 1]), np.array([0, 0, 0, 1]))
    array([0.66666667, 2.        ])
    """
    if class_weight is None:
        return np.full(len(classes), float(C))
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise InvalidConfig(f"class_weight: {class_weight!r} is unknown; use 'balanced'")
        counts = np.bincount(codes, minlength=len(classes))
        shares = len(codes) / (len(classes) * np.maximum(counts, 1))
        return C * np.where(counts > 0, shares, 1.0)
    weights = [positive(class_weight.get(k, 1.0), "class_weight") for k in classes.tolist()]
    return C * np.array(weights, dtype=np.float64)
