"""Compute kernel values whose bits depend on the two points alone.

Points are stored feature-major, shape (d, n), so that the compiler vectorises *across* points. The
sum of each pair runs over the features in order, with one rounding a term, for any position of
the point and the other points of the call. Hence k(u, v) == k(v, u) bit for bit, and a restart
recomputes the same values.

Values of the rbf kernel are rounded to 24 bits everywhere: the solver and the score of a new point
use the same numbers, and cached rows take half the memory and bandwidth (LIBSVM also caches
float32). The other kernels are not bounded by 1 and keep 53 bits, as does a `wide` rbf kernel.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.errors import InvalidConfig
from online_svm.types import Floats

KernelName = Literal["linear", "poly", "rbf"]
Shape = tuple[int, float, float, int]  # code, gamma, coef0, degree: the argument of compiled code

LINEAR, POLY, RBF, WIDE_RBF = range(4)
_CODES: dict[KernelName, int] = {"linear": LINEAR, "poly": POLY, "rbf": RBF}
_WIDE_CODES = _CODES | {"rbf": WIDE_RBF}


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel function and its parameters, named as in scikit-learn.

    "rbf" is exp(-gamma |u - v|^2), "linear" u.v, "poly" (gamma u.v + coef0)^degree. `gamma` is
    positive; `coef0` is not negative, or the kernel would not be positive semi-definite. A `wide`
    rbf kernel keeps 53 bits: with 24 bits a nearly singular kernel matrix has eigenvalues below
    zero, and with a large C the objective is wrong in its seventh digit.

    Raises InvalidConfig if the name is unknown or a parameter is out of its range.
    """

    name: KernelName = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    wide: bool = False

    def __post_init__(self) -> None:
        if self.name not in get_args(KernelName):
            known = ", ".join(map(repr, get_args(KernelName)))
            raise InvalidConfig(f"kernel: {self.name!r} is unknown; use one of {known}")
        if not (math.isfinite(self.gamma) and self.gamma > 0):
            raise InvalidConfig(f"gamma: must be a positive number, got {self.gamma!r}")
        if not 1 <= self.degree <= 20:
            raise InvalidConfig(f"degree: must be between 1 and 20, got {self.degree!r}")
        if not (math.isfinite(self.coef0) and self.coef0 >= 0):
            raise InvalidConfig(f"coef0: must be a number >= 0, got {self.coef0!r}")

    @property
    def shape(self) -> Shape:
        """The parameters as the argument of compiled functions."""
        code = (_WIDE_CODES if self.wide else _CODES)[self.name]
        return code, float(self.gamma), float(self.coef0), int(self.degree)

    @property
    def dtype(self) -> type[np.float32] | type[np.float64]:
        """The smallest type that holds the kernel's values exactly."""
        return np.float32 if self.name == "rbf" and not self.wide else np.float64

    def __call__(self, U: Floats, V: Floats) -> Floats:
        """Return the matrix k(u_i, v_j), shape (m, n), of two sets of points given as rows."""
        points = np.ascontiguousarray(np.asarray(V, dtype=np.float64).T)
        values = np.empty((len(U), points.shape[1]))
        gram(self.shape, points, np.ascontiguousarray(U, dtype=np.float64), values)
        return values

    def diagonal(self, X: Floats) -> Floats:
        """Return k(x, x) of each row of X, with the same bits as in the matrix."""
        values = np.ones(len(X))
        if self.name != "rbf":
            _diagonal(self.shape, X, values)
        return values


@kernel
def gram(shape: Shape, X: Floats, rows: Floats, out: Floats) -> None:
    """Fill `out`, shape (m, n), with k(rows[i], X[:, j])."""


@kernel
def _diagonal(shape: Shape, X: Floats, out: Floats) -> None:
    """Write k(x, x) of each row of X, shape (n, d), to `out`, shape (n,)."""


FLOATS_PER_LINE = 8


def in_lines(points: Floats) -> Floats:
    """Return a copy of points, shape (d, n), in which each row starts at a cache line.

    Without alignment, processor vectors span two cache lines and take two reads. Results are the
    same. Up to seven zero columns are added after the n-th. The copy is read-only if `points` is.
    """
    d, n = points.shape
    width = -(-n // FLOATS_PER_LINE) * FLOATS_PER_LINE
    buffer = np.zeros(d * width + FLOATS_PER_LINE)
    first = -buffer.ctypes.data // 8 % FLOATS_PER_LINE
    lines: Floats = buffer[first : first + d * width].reshape(d, width)
    lines[:, :n] = points
    lines.flags.writeable = points.flags.writeable
    return lines
