"""Check the parameters that kernel machines share, and score rows by their decision functions.

This file does not import scikit-learn, because workers use it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from online_svm.compiled.kernel import kernel
from online_svm.compiled.kernels import Kernel, KernelName, Shape, in_lines
from online_svm.compiled.ordered_sums import LANES, variance
from online_svm.errors import InvalidConfig
from online_svm.storage.state_schema import StateSchema, StoredRecord, floats
from online_svm.types import Floats, Ints


def is_number(value: Any) -> bool:
    """Return whether a parameter is a real number, of Python or numpy."""
    return isinstance(value, int | float | np.integer | np.floating)


def positive(value: Any, name: str) -> float:
    """Return a parameter; raise InvalidConfig unless it is a finite number above zero."""
    if not is_number(value) or not (math.isfinite(value) and value > 0):
        raise InvalidConfig(f"{name}: must be a positive number, got {value!r}")
    return float(value)


def positive_integer(value: Any, name: str) -> int:
    """Return a parameter; raise InvalidConfig unless it is an integer above zero."""
    if not isinstance(value, int | np.integer) or value is True or value < 1:
        raise InvalidConfig(f"{name}: must be a positive integer, got {value!r}")
    return int(value)


def scale_gamma(gamma: float | Literal["scale"], X: Floats) -> float:
    """Return gamma, or 1 / (n_features * X.var()) for "scale" (1 if X does not vary).

    Raises InvalidConfig if gamma is neither "scale" nor a positive number.
    """
    if not isinstance(gamma, str):
        return positive(gamma, "gamma")
    if gamma != "scale":
        raise InvalidConfig(f"gamma: {gamma!r} is unknown; use 'scale' or a positive number")
    spread = variance(X) if len(X) else 0.0
    return 1.0 / (X.shape[1] * spread) if spread > 0.0 else 1.0


class KernelSettings(Protocol):
    """The parameters of an estimator that choose its kernel, named as in scikit-learn."""

    kernel: KernelName
    gamma: float | Literal["scale"]
    degree: int
    coef0: float


def kernel_for(settings: KernelSettings, X: Floats, *, wide: bool = False) -> Kernel:
    """Return the kernel that an estimator's parameters give on the rows of X.

    Raises InvalidConfig if a parameter is out of its range.
    """
    gamma = scale_gamma(settings.gamma, X)
    return Kernel(settings.kernel, gamma, settings.degree, settings.coef0, wide)


def given_weights(class_weight: Mapping[Any, float], classes: Iterable[Any]) -> Floats:
    """Return the weight of each class in a mapping; 1 for a class without an entry."""
    return np.array([class_weight.get(k, 1.0) for k in classes], dtype=np.float64)


def balanced_weights(codes: Ints, n_classes: int) -> Floats:
    """Return n / (n_classes * count) for the count of each class; 1 for an absent class."""
    counts = np.bincount(codes, minlength=n_classes)
    shares = len(codes) / (n_classes * np.maximum(counts, 1))
    return np.where(counts > 0, shares, 1.0)


def class_penalties(
    C: float, class_weight: Mapping[Any, float] | str | None, classes: NDArray[Any], codes: Ints
) -> Floats:
    """Return C times the weight of each class, shape (n_classes,).

    A class that is not in a mapping, or with "balanced" not in `codes`, has weight 1, as in
    scikit-learn. Raises InvalidConfig if a weight is not a positive number, the text is not
    "balanced", or a mapping has an unknown label, perhaps misspelt, and lacks a class.
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


ROWS_PER_PASS = 16  # CHUNK of `kernel_model.c`

FIELDS = StateSchema(floats("vectors", "d n"), floats("coef", "S n"), floats("intercept", "S"))


@dataclass(frozen=True, slots=True)
class KernelModel(StoredRecord):
    """S decision functions f_s(x) = sum_j coef_sj k(v_j, x) + intercept_s.

    The score of a row has the same bits in any batch of rows.
    """

    _stored = FIELDS

    kernel: Kernel
    vectors: Floats  # shape (d, n_support): support vectors, feature-major
    coef: Floats  # shape (S, n_support)
    intercept: Floats  # shape (S,)

    @classmethod
    def build(cls, kernel: Kernel, vectors: Floats, coef: Floats, intercept: Floats) -> Self:
        """Return the model for support vectors given as rows, shape (n_support, d)."""
        return cls(
            kernel,
            np.ascontiguousarray(vectors.T, dtype=np.float64),
            np.ascontiguousarray(coef, dtype=np.float64),
            np.array(intercept, dtype=np.float64),
        )

    def scores(self, X: Floats) -> Floats:
        """Return the decision values of the rows of X, shape (m, S)."""
        X = np.ascontiguousarray(X, dtype=np.float64)
        if self.vectors.shape[1] == 0:  # a machine without points has no dimension
            return np.tile(0.0 + self.intercept, (len(X), 1))
        out = np.empty((len(X), len(self.intercept)))
        lanes = np.empty((ROWS_PER_PASS, len(self.intercept), LANES))
        # Aligning the vectors saves less time than it takes if there are few rows.
        vectors = self.vectors if len(X) < ROWS_PER_PASS else in_lines(self.vectors)
        _score(self.kernel.shape, (vectors, self.coef, self.intercept), X, lanes, out)
        return out


@kernel
def _score(
    shape: Shape, machines: tuple[Floats, Floats, Floats], X: Floats, lanes: Floats, out: Floats
) -> None:
    """Write sum_j coef_sj k(v_j, x_i) + intercept_s to out[i, s], in an order fixed by j alone.

    Columns of `vectors` beyond those of `coef` are not read. `lanes`, shape (ROWS_PER_PASS, S,
    LANES), is scratch.
    """
