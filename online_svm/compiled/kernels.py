"""Kernel values whose bits depend on the two points alone.

Stored points are kept feature-major, shape (d, n), so that the compiler vectorises *across*
points: each pair's sum runs over the features in their order, with one rounding a term, wherever
the point is stored and whatever else is computed beside it. Hence k(u, v) == k(v, u) bit for bit,
and a value computed today equals the one recomputed after a restart.

Values of the rbf kernel are rounded to 24 bits, here and so everywhere: cached rows
then take half the memory and bandwidth (LIBSVM keeps its rows so too), and yet the solver, the
decision values it maintains and the score of a new point all use the same numbers. The other
kernels are not bounded by 1; they keep 53 bits, and so does a kernel that is asked to be `wide`.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from online_svm.compiled.elementary import exp_nonpositive
from online_svm.compiled.intrinsics import fma
from online_svm.compiled.jit import inner, jit
from online_svm.errors import InvalidConfig
from online_svm.types import Floats, Values

KernelName = Literal["linear", "poly", "rbf"]
Shape = tuple[int, float, float, int]  # code, gamma, coef0, degree: what compiled code is given

LINEAR, POLY, RBF, WIDE_RBF = range(4)
_CODES: dict[KernelName, int] = {"linear": LINEAR, "poly": POLY, "rbf": RBF}
_WIDE_CODES = _CODES | {"rbf": WIDE_RBF}
BLOCK = 128  # points at a time: with 20 features, 20 KiB that stay in the first-level cache


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel function and its parameters, named as in scikit-learn.

    Parameters
    ----------
    name : {"rbf", "linear", "poly"}
        exp(-gamma |u - v|^2), u.v, or (gamma u.v + coef0)^degree.
    gamma : float
        Positive; unused by "linear".
    degree : int
        Of "poly".
    coef0 : float
        Of "poly"; not negative (the kernel would not be positive semi-definite).
    wide : bool
        Whether "rbf" keeps 53 bits too. Rounded to 24, a nearly singular kernel
        matrix has eigenvalues below zero, and an objective with a large C is off in its seventh
        digit.

    Raises
    ------
    InvalidConfig
        If the name is unknown or a parameter is out of its range.

    Examples
    --------
    >>> Kernel("rbf", gamma=0.5)(np.array([[0.0, 0.0]]), np.array([[0.0, 0.0], [1.0, 1.0]]))
    array([[1.        , 0.36787945]])
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
        """The parameters in the form the compiled functions take."""
        code = (_WIDE_CODES if self.wide else _CODES)[self.name]
        return code, float(self.gamma), float(self.coef0), int(self.degree)

    @property
    def dtype(self) -> type[np.float32] | type[np.float64]:
        """The least type that holds the kernel's values as they are."""
        return np.float32 if self.name == "rbf" and not self.wide else np.float64

    def __call__(self, U: Floats, V: Floats) -> Floats:
        """Return the matrix k(u_i, v_j), shape (m, n), of two sets of points given as rows."""
        points = np.ascontiguousarray(np.asarray(V, dtype=np.float64).T)
        values = np.empty((len(U), points.shape[1]))
        gram(self.shape, points, np.ascontiguousarray(U, dtype=np.float64), values)
        return values

    def diagonal(self, X: Floats) -> Floats:
        """Return k(x, x) of each row of X, with the bits of the matrix."""
        values = np.ones(len(X))
        if self.name != "rbf":
            _diagonal(self.shape, X, values)
        return values


@inner
def power(base: float, degree: int) -> float:
    """Return base^degree by repeated multiplication: the order of roundings is fixed."""
    value = base
    for _ in range(degree - 1):
        value *= base
    return value


@inner
def squared_distances(X: Floats, x: Floats, first: int, stop: int, sums: Floats) -> None:
    """Write |x - X[:, first + j]|^2 to sums[j]; its bits depend on the two points alone."""
    sums[:] = 0.0
    f = 0
    while f + 4 <= len(x):  # four features a pass: fewer trips of the partial sums to memory
        a, b, c, d = x[f], x[f + 1], x[f + 2], x[f + 3]
        A, B, C, D = (
            X[f, first:stop],
            X[f + 1, first:stop],
            X[f + 2, first:stop],
            X[f + 3, first:stop],
        )
        for j in range(len(sums)):
            p, q, r, s = a - A[j], b - B[j], c - C[j], d - D[j]
            sums[j] = fma(s, s, fma(r, r, fma(q, q, fma(p, p, sums[j]))))
        f += 4
    # What is left, one feature a pass.
    while f < len(x):
        a, A = x[f], X[f, first:stop]
        for j in range(len(sums)):
            p = a - A[j]
            sums[j] = fma(p, p, sums[j])
        f += 1


@inner
def _products(X: Floats, x: Floats, first: int, stop: int, sums: Floats) -> None:
    sums[:] = 0.0
    for f in range(len(x)):
        a, A = x[f], X[f, first:stop]
        for j in range(len(sums)):
            sums[j] = fma(a, A[j], sums[j])


@inner
def kernel_block(
    shape: Shape, X: Floats, x: Floats, first: int, stop: int, sums: Floats, out: Values
) -> None:
    """Write k(x, X[:, first + j]) to out[j] for at most `BLOCK` points; `sums` is scratch.

    Parameters
    ----------
    shape : tuple
        `Kernel.shape`.
    X : ndarray of shape (d, n)
        Stored points, feature-major, C-contiguous.
    x : ndarray of shape (d,)
        One point.
    first, stop : int
        Range of stored points.
    sums, out : ndarray of shape (stop - first,)
    """
    code, gamma, coef0, degree = shape
    # exp(-gamma |u - v|^2), rounded to 24 bits.
    if code == RBF:
        squared_distances(X, x, first, stop, sums)
        for j in range(len(out)):
            out[j] = np.float32(exp_nonpositive(-gamma * sums[j]))
    elif code == WIDE_RBF:
        # The same with all 53 bits.
        squared_distances(X, x, first, stop, sums)
        for j in range(len(out)):
            out[j] = exp_nonpositive(-gamma * sums[j])
    else:
        # u.v, and (gamma u.v + coef0)^degree of it.
        _products(X, x, first, stop, sums)
        for j in range(len(out)):
            out[j] = sums[j]
        if code == POLY:
            for j in range(len(out)):
                out[j] = power(fma(gamma, sums[j], coef0), degree)


@inner
def kernel_row(
    shape: Shape, X: Floats, x: Floats, first: int, stop: int, sums: Floats, out: Values
) -> None:
    """Write k(x, X[:, j]) to out[j] for first <= j < stop; `sums` is scratch of length `BLOCK`."""
    for start in range(first, stop, BLOCK):
        end = min(start + BLOCK, stop)
        kernel_block(shape, X, x, start, end, sums[: end - start], out[start:end])


@inner
def kernel_value(shape: Shape, u: Floats, v: Floats) -> float:
    """Return k(u, v) with the bits that `kernel_block` gives."""
    code, gamma, coef0, degree = shape
    total = 0.0
    if code in (RBF, WIDE_RBF):
        for f in range(len(u)):
            p = u[f] - v[f]
            total = fma(p, p, total)
        value = exp_nonpositive(-gamma * total)
        return value if code == WIDE_RBF else float(np.float32(value))
    for f in range(len(u)):
        total = fma(u[f], v[f], total)
    return total if code == LINEAR else power(fma(gamma, total, coef0), degree)


@jit
def gram(shape: Shape, X: Floats, rows: Floats, out: Floats) -> None:
    """Fill `out`, shape (m, n), with k(rows[i], X[:, j])."""
    sums = np.empty(BLOCK)
    for i in range(len(rows)):
        kernel_row(shape, X, rows[i], 0, X.shape[1], sums, out[i])


@jit
def _diagonal(shape: Shape, X: Floats, out: Floats) -> None:
    for i in range(len(X)):
        out[i] = kernel_value(shape, X[i], X[i])
