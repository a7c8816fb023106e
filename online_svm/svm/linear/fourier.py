"""Random Fourier features, and a linear machine on them, in an order of operations that is fixed.

The features of x are sqrt(2 / D) cos(x . w_j + b_j), with the weights and offsets that
scikit-learn's `RBFSampler` drew (Rahimi and Recht 2007): their inner products approximate
exp(-gamma |u - v|^2). As in kernels.py, the compiler vectorises across the components, never
within one sum, and the cosine is our own: a library's may differ in its last bit between the body
of a loop and its tail.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from online_svm.compiled.elementary import ROUNDER
from online_svm.compiled.intrinsics import bits_of, float_of, fma
from online_svm.compiled.jit import jit
from online_svm.compiled.ordered_sums import LANES, add_to_lanes, sum_of_lanes
from online_svm.storage.arrays import check_floats
from online_svm.types import Arrays, Floats

PI_HIGH = math.pi
PI_LOW = float.fromhex("0x1.1a62633145c07p-53")  # pi - PI_HIGH
ONE_OVER_PI = 1.0 / math.pi
# Beyond it an argument counts as it: no digit of a cosine is known there, and the rounding to an
# integer by ROUNDER must stay within its 51 bits.
LARGEST = 2.0**30


@jit
def cosine(t: float) -> float:
    """Return cos(t) without a branch, within 3e-16.

    t = n pi + r with |r| <= pi/2, and cos(t) = (-1)^n cos(r); cos(r) is its Taylor polynomial of
    degree 22, whose remainder there is below 1e-19.
    """
    t = min(max(t, -LARGEST), LARGEST)
    # 1. Reduce: t = n pi + r.
    shifted = fma(t, ONE_OVER_PI, ROUNDER)
    n = shifted - ROUNDER
    r = fma(-n, PI_LOW, fma(-n, PI_HIGH, t))
    # 2. The Taylor polynomial, by Horner's rule.
    s = -r * r
    p = fma(s, 1.0 / 1124000727777607680000.0, 1.0 / 2432902008176640000.0)
    p = fma(s, p, 1.0 / 6402373705728000.0)
    p = fma(s, p, 1.0 / 20922789888000.0)
    p = fma(s, p, 1.0 / 87178291200.0)
    p = fma(s, p, 1.0 / 479001600.0)
    p = fma(s, p, 1.0 / 3628800.0)
    p = fma(s, p, 1.0 / 40320.0)
    p = fma(s, p, 1.0 / 720.0)
    p = fma(s, p, 1.0 / 24.0)
    p = fma(s, p, 0.5)
    p = fma(s, p, 1.0)
    # 3. The sign (-1)^n: the lowest bit of n.
    return float_of(bits_of(p) ^ (bits_of(shifted) << 63))


@jit
def _features(weights: Floats, offset: Floats, x: Floats, out: Floats) -> None:
    """Write the features of one point to `out`, shape (D,)."""
    # 1. w_j x + b_j.
    out[:] = offset
    f = 0
    while f + 4 <= len(x):  # four features a pass, as in kernels.py
        a, b, c, d = x[f], x[f + 1], x[f + 2], x[f + 3]
        A, B, C, D = weights[f], weights[f + 1], weights[f + 2], weights[f + 3]
        for j in range(len(out)):
            out[j] = fma(d, D[j], fma(c, C[j], fma(b, B[j], fma(a, A[j], out[j]))))
        f += 4
    while f < len(x):
        a, A = x[f], weights[f]
        for j in range(len(out)):
            out[j] = fma(a, A[j], out[j])
        f += 1
    # 2. sqrt(2/D) cos of it.
    scale = math.sqrt(2.0 / len(out))
    for j in range(len(out)):
        out[j] = scale * cosine(out[j])


@jit
def _transform(weights: Floats, offset: Floats, X: Floats, out: Floats) -> None:
    for i in range(len(X)):
        _features(weights, offset, X[i], out[i])


@jit
def _score(
    weights: Floats, offset: Floats, coef: Floats, intercept: Floats, X: Floats, out: Floats
) -> None:
    features, lanes = np.empty(len(offset)), np.empty(LANES)
    for i in range(len(X)):
        _features(weights, offset, X[i], features)
        for s in range(len(intercept)):
            lanes[:] = 0.0
            add_to_lanes(features, coef[s], lanes)
            out[i, s] = sum_of_lanes(lanes) + intercept[s]


def fourier_features(weights: Floats, offset: Floats, X: Floats) -> Floats:
    """Return the features of the rows of X, shape (n, D); a row's do not depend on the others.

    Parameters
    ----------
    weights : ndarray of shape (d, D)
    offset : ndarray of shape (D,)
    X : ndarray of shape (n, d)

    Examples
    --------
    >>> fourier_features(np.array([[1.0, 2.0]]), np.zeros(2), np.array([[0.0], [np.pi]]))
    array([[ 1.,  1.],
           [-1.,  1.]])
    """
    X = np.ascontiguousarray(X, dtype=np.float64)
    out = np.empty((len(X), len(offset)))
    _transform(weights, offset, X, out)
    return out


@dataclass(frozen=True, slots=True)
class FourierModel:
    """S decision functions f_s(x) = sum_j coef_sj feature_j(x) + intercept_s.

    Attributes
    ----------
    weights : ndarray of shape (d, D)
    offset : ndarray of shape (D,)
    coef : ndarray of shape (S, D)
    intercept : ndarray of shape (S,)

    Examples
    --------
    >>> model = FourierModel(np.ones((1, 2)), np.zeros(2), np.ones((1, 2)), np.array([0.5]))
    >>> model.scores(np.array([[0.0]]))
    array([[2.5]])
    """

    weights: Floats
    offset: Floats
    coef: Floats
    intercept: Floats

    def scores(self, X: Floats) -> Floats:
        """Return the decision values of the rows of X, shape (m, S)."""
        X = np.ascontiguousarray(X, dtype=np.float64)
        out = np.empty((len(X), len(self.intercept)))
        _score(self.weights, self.offset, self.coef, self.intercept, X, out)
        return out

    def state(self) -> Arrays:
        """Return the attributes by name."""
        return {
            "weights": self.weights,
            "offset": self.offset,
            "coef": self.coef,
            "intercept": self.intercept,
        }

    @classmethod
    def from_state(cls, state: Arrays) -> Self:
        """Return the model that `state` describes.

        Raises
        ------
        ValueError
            If they do not fit one another.
        """
        machines, (d, size) = len(state["intercept"]), state["weights"].shape
        check_floats(state, "weights", (d, size))
        check_floats(state, "offset", (size,))
        check_floats(state, "coef", (machines, size))
        check_floats(state, "intercept", (machines,))
        return cls(state["weights"], state["offset"], state["coef"], state["intercept"])
