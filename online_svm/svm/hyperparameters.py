"""Hyper-parameters that several machines share: their checks, and what they mean for given data.

This file imports no scikit-learn: refits in a worker use it too.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from online_svm.compiled.kernels import Kernel, KernelName
from online_svm.compiled.ordered_sums import variance
from online_svm.errors import InvalidConfig
from online_svm.types import Floats, Ints


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

    Raises
    ------
    InvalidConfig
        If it is neither "scale" nor a positive number.

    Examples
    --------
    >>> scale_gamma("scale", np.array([[0.0, 2.0]])), scale_gamma(3, np.zeros((1, 1)))
    (0.5, 3.0)
    """
    if not isinstance(gamma, str):
        return positive(gamma, "gamma")
    if gamma != "scale":
        raise InvalidConfig(f"gamma: {gamma!r} is unknown; use 'scale' or a positive number")
    spread = variance(X) if len(X) else 0.0
    return 1.0 / (X.shape[1] * spread) if spread > 0.0 else 1.0


class KernelSettings(Protocol):
    """What says which kernel is meant, in the words of scikit-learn."""

    kernel: KernelName
    gamma: float | Literal["scale"]
    degree: int
    coef0: float


def kernel_for(settings: KernelSettings, X: Floats, *, wide: bool = False) -> Kernel:
    """Return the kernel that an estimator asks for on the rows of X.

    Raises
    ------
    InvalidConfig
        If a parameter is out of its range.
    """
    gamma = scale_gamma(settings.gamma, X)
    return Kernel(settings.kernel, gamma, settings.degree, settings.coef0, wide)


def given_weights(class_weight: Mapping[Any, float], classes: Iterable[Any]) -> Floats:
    """Return the weight that a mapping gives each class; 1 where it gives none.

    Examples
    --------
    >>> given_weights({"b": 3.0}, ["a", "b"])
    array([1., 3.])
    """
    return np.array([class_weight.get(k, 1.0) for k in classes], dtype=np.float64)


def balanced_weights(codes: Ints, n_classes: int) -> Floats:
    """Return n / (n_classes * n of the class) for each class; 1 for a class that does not occur.

    Examples
    --------
    >>> balanced_weights(np.array([0, 0, 0, 1]), 3)
    array([0.44444444, 1.33333333, 1.        ])
    """
    counts = np.bincount(codes, minlength=n_classes)
    shares = len(codes) / (n_classes * np.maximum(counts, 1))
    return np.where(counts > 0, shares, 1.0)


def class_penalties(
    C: float,
    class_weight: Mapping[Any, float] | str | None,
    classes: NDArray[Any],
    codes: Ints,
) -> Floats:
    """Return C times the weight of each class, shape (n_classes,).

    Parameters
    ----------
    C : float
    class_weight : mapping from label to weight, "balanced" or None
        A label that is not in the mapping has weight 1, as in scikit-learn.
    classes : ndarray of shape (n_classes,)
    codes : ndarray of shape (n,)
        Class of each example; one that does not occur has weight 1 if "balanced".

    Raises
    ------
    InvalidConfig
        If a weight is no positive number, another word than "balanced" is given, or a mapping
        names a label that is no class while a class has no weight (it may be misspelt).

    Examples
    --------
    >>> class_penalties(2.0, {"b": 3.0}, np.array(["a", "b"]), np.array([0, 1]))
    array([2., 6.])
    >>> class_penalties(1.0, "balanced", np.array([0, 1]), np.array([0, 0, 0, 1]))
    array([0.66666667, 2.        ])
    """
    penalty = positive(C, "C")
    if class_weight is None:
        return np.full(len(classes), penalty)
    if isinstance(class_weight, str) and class_weight == "balanced":
        return penalty * balanced_weights(codes, len(classes))
    if not isinstance(class_weight, Mapping):
        raise InvalidConfig(
            f"class_weight: {class_weight!r} is unknown; use 'balanced' or a weight for each label"
        )
    _check_weights(class_weight, classes.tolist())
    return penalty * given_weights(class_weight, classes.tolist())


def _check_weights(class_weight: Mapping[Any, float], classes: list[Any]) -> None:
    for weight in class_weight.values():
        positive(weight, "class_weight")
    unknown = [label for label in class_weight if label not in classes]
    if unknown and any(k not in class_weight for k in classes):
        raise InvalidConfig(
            f"class_weight: {unknown[0]!r} is not one of the classes {classes}; correct it, or "
            "give every class a weight"
        )
