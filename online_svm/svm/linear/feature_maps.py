"""Explicit feature maps: a kernel's inner product in a space of a few hundred dimensions.

scikit-learn's transformers define the maps; only their arrays are kept, and the rows are
transformed by compiled loops whose order of operations is fixed, so that a row's features have the
same bits whatever rows come with it. A linear machine on either map scores a point without the
features: weights on Fourier features are a `FourierModel`, weights on Nystroem features fold into
one coefficient a landmark, which is a `KernelModel`.
"""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from online_svm.compiled.intrinsics import fma
from online_svm.compiled.jit import jit
from online_svm.compiled.kernels import Kernel
from online_svm.svm.kernel_model import KernelModel
from online_svm.svm.linear.fourier import FourierModel, fourier_features
from online_svm.types import Arrays, Floats

MapName = Literal["nystroem", "fourier"]
Span = tuple[int, int]
WIDTH, DEPTH = 512, 8  # of a block of B: 32 KiB, which stay in the first-level cache


@jit
def _add_block(A: Floats, B: Floats, i: int, rows: Span, columns: Span, out: Floats) -> None:
    """Add sum_j A[i, j] B[j] over a block of B, one rounding a term, in the order of j."""
    (j, bottom), (left, right) = rows, columns
    target = out[i, left:right]
    while j + 4 <= bottom:  # four rows a pass: fewer trips of the partial sums to memory
        p, q, r, s = A[i, j], A[i, j + 1], A[i, j + 2], A[i, j + 3]
        P, Q = B[j, left:right], B[j + 1, left:right]
        R, S = B[j + 2, left:right], B[j + 3, left:right]
        for k in range(len(target)):
            target[k] = fma(s, S[k], fma(r, R[k], fma(q, Q[k], fma(p, P[k], target[k]))))
        j += 4
    # What is left, one row a pass.
    while j < bottom:
        p, P = A[i, j], B[j, left:right]
        for k in range(len(target)):
            target[k] = fma(p, P[k], target[k])
        j += 1


@jit
def _add_products(A: Floats, B: Floats, out: Floats) -> None:
    """Add A B to `out`, block by block, each sum in the order of B's rows."""
    for left in range(0, B.shape[1], WIDTH):
        columns = (left, min(left + WIDTH, B.shape[1]))
        for top in range(0, len(B), DEPTH):
            rows = (top, min(top + DEPTH, len(B)))
            for i in range(len(A)):
                _add_block(A, B, i, rows, columns, out)


def product(A: Floats, B: Floats) -> Floats:
    """Return A B; a row's values do not depend on the other rows of A.

    Examples
    --------
    >>> product(np.array([[1.0, 2.0]]), np.array([[1.0, 0.0], [3.0, 5.0]]))
    array([[ 7., 10.]])
    """
    out = np.zeros((len(A), B.shape[1]))
    _add_products(np.ascontiguousarray(A), np.ascontiguousarray(B), out)
    return out


@dataclass(frozen=True, slots=True)
class FourierMap:
    """sqrt(2 / D) cos(x . weights + offset), of `sklearn.kernel_approximation.RBFSampler`.

    Attributes
    ----------
    weights : ndarray of shape (d, D)
    offset : ndarray of shape (D,)
    """

    weights: Floats
    offset: Floats

    @classmethod
    def fit(cls, kernel: Kernel, n_components: int, seed: int, X: Floats) -> Self:
        """Draw the map for points like the rows of X, shape (n, d)."""
        from sklearn.kernel_approximation import RBFSampler  # here: it takes a second to import

        sampler = RBFSampler(gamma=kernel.gamma, n_components=n_components, random_state=seed)
        sampler.fit(X)
        return cls(np.ascontiguousarray(sampler.random_weights_), sampler.random_offset_)

    @property
    def n_features(self) -> int:
        """D."""
        return len(self.offset)

    def transform(self, X: Floats) -> Floats:
        """Return the features of rows, shape (n, D)."""
        return fourier_features(self.weights, self.offset, X)

    def model(self, coef: Floats, intercept: Floats) -> FourierModel:
        """Return the scorer with these weights of the features, shapes (S, D) and (S,)."""
        return FourierModel(self.weights, self.offset, coef, intercept)

    def state(self) -> Arrays:
        """Return the attributes by name."""
        return {"weights": self.weights, "offset": self.offset}

    @classmethod
    def from_state(cls, state: Arrays) -> Self:
        """Return the map that `state` describes."""
        return cls(state["weights"], state["offset"])


@dataclass(frozen=True, slots=True)
class NystroemMap:
    """normalization . k(landmarks, x), of `sklearn.kernel_approximation.Nystroem`.

    Attributes
    ----------
    kernel : Kernel
        Wide: the normalization multiplies what a rounding to 24 bits leaves by up to a million.
    landmarks : ndarray of shape (D, d)
    normalization : ndarray of shape (D, D)
        Inverse square root of the landmarks' kernel matrix.
    """

    kernel: Kernel
    landmarks: Floats
    normalization: Floats

    @classmethod
    def fit(cls, kernel: Kernel, n_components: int, seed: int, X: Floats) -> Self:
        """Choose landmarks among the rows of X, shape (n, d): at most all of them.

        The decomposition runs on one thread of the linear algebra library: how many it would
        take otherwise is part of no configuration, and changes its last bits.
        """
        from sklearn.kernel_approximation import Nystroem  # here: it takes a second to import
        from threadpoolctl import (  # type: ignore[import-untyped]  # ships no type information
            threadpool_limits,
        )

        shape = {"gamma": kernel.gamma, "degree": kernel.degree, "coef0": kernel.coef0}
        sampler = Nystroem(
            kernel=kernel.name,
            n_components=min(n_components, len(X)),
            random_state=seed,
            **{name: value for name, value in shape.items() if name in _PARAMETERS[kernel.name]},
        )
        with threadpool_limits(1):
            sampler.fit(X)
        return cls(kernel, np.ascontiguousarray(sampler.components_), sampler.normalization_)

    @property
    def n_features(self) -> int:
        """D."""
        return len(self.landmarks)

    def transform(self, X: Floats) -> Floats:
        """Return the features of rows, shape (n, D)."""
        return product(self.kernel(X, self.landmarks), self.normalization.T)

    def model(self, coef: Floats, intercept: Floats) -> KernelModel:
        """Return the scorer with these weights of the features, shapes (S, D) and (S,)."""
        folded = product(coef, self.normalization)
        return KernelModel.build(self.kernel, self.landmarks, folded, intercept)

    def state(self) -> Arrays:
        """Return the attributes by name, but for the kernel."""
        return {"landmarks": self.landmarks, "normalization": self.normalization}

    @classmethod
    def from_state(cls, state: Arrays, kernel: Kernel) -> Self:
        """Return the map that `state` describes."""
        return cls(kernel, state["landmarks"], state["normalization"])


FeatureMap = FourierMap | NystroemMap
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "rbf": ("gamma",),
    "linear": (),
    "poly": ("gamma", "degree", "coef0"),
}


def fit_map(name: MapName, kernel: Kernel, n_components: int, seed: int, X: Floats) -> FeatureMap:
    """Return the map of that name, fitted on the rows of X.

    Parameters
    ----------
    name : {"nystroem", "fourier"}
    kernel : Kernel
        Of the inner products; "fourier" knows "rbf" only, by its gamma.
    n_components : int
        D. Nystroem takes no more than there are rows.
    seed : int
        Of the random numbers; scikit-learn takes its low 32 bits.
    X : ndarray of shape (n, d)
        At least one row.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> nystroem = fit_map("nystroem", Kernel("rbf", wide=True), 3, 0, X)
    >>> F = nystroem.transform(X)
    >>> np.allclose(F @ F.T, nystroem.kernel(X, X))
    True
    """
    kind = FourierMap if name == "fourier" else NystroemMap
    return kind.fit(kernel, n_components, seed % 2**32, X)


def map_from_state(state: Arrays, kernel: Kernel) -> FeatureMap:
    """Return the map, of either kind, that `state` describes."""
    if "weights" in state:
        return FourierMap.from_state(state)
    return NystroemMap.from_state(state, kernel)
