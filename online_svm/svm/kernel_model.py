"""KernelModel: the solution of several machines over one set of support vectors, as a scorer."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from online_svm.compiled.aligned import in_lines
from online_svm.compiled.jit import jit
from online_svm.compiled.kernels import BLOCK, Kernel, Shape, kernel_block
from online_svm.compiled.ordered_sums import LANES, add_to_lanes, sum_of_lanes
from online_svm.storage.fields import Fields, floats
from online_svm.types import Arrays, Floats, Values

CHUNK = 16  # rows that share one pass over the support vectors, which then stay in the cache

FIELDS = Fields(floats("vectors", "d n"), floats("coef", "S n"), floats("intercept", "S"))


@jit
def _score(
    shape: Shape,
    vectors: Floats,
    coef: Floats,
    intercept: Floats,
    X: Floats,
    values: Values,
    out: Floats,
) -> None:
    """Write sum_j coef_sj k(v_j, x_i) + intercept_s to out[i, s], in an order fixed by j alone.

    Columns of `vectors` beyond those of `coef` are not read.
    """
    machines, n = coef.shape
    sums = np.empty(BLOCK)
    lanes = np.empty((CHUNK, machines, LANES))
    for top in range(0, len(X), CHUNK):
        rows = min(CHUNK, len(X) - top)
        lanes[:] = 0.0
        # 1. A block of support vectors at a time, added to lanes for each row of the chunk.
        for first in range(0, n, BLOCK):
            stop = min(first + BLOCK, n)
            part = values[: stop - first]
            for i in range(rows):
                kernel_block(shape, vectors, X[top + i], first, stop, sums[: stop - first], part)
                for s in range(machines):
                    add_to_lanes(part, coef[s, first:stop], lanes[i, s])
        # 2. Sum over the lanes.
        for i in range(rows):
            for s in range(machines):
                out[top + i, s] = sum_of_lanes(lanes[i, s]) + intercept[s]


@dataclass(frozen=True, slots=True)
class KernelModel:
    """S decision functions f_s(x) = sum_j coef_sj k(v_j, x) + intercept_s.

    The score of a row has the same bits whatever rows it is scored with.

    Attributes
    ----------
    kernel : Kernel
    vectors : ndarray of shape (d, n_support)
        Support vectors, feature-major.
    coef : ndarray of shape (S, n_support)
    intercept : ndarray of shape (S,)

    Examples
    --------
    >>> model = KernelModel.build(
    ...     Kernel("linear"), np.array([[1.0], [3.0]]), np.array([[-1.0, 1.0]]), np.array([0.5])
    ... )
    >>> model.scores(np.array([[0.0], [1.0]]))
    array([[0.5],
           [2.5]])
    """

    kernel: Kernel
    vectors: Floats
    coef: Floats
    intercept: Floats

    @classmethod
    def build(cls, kernel: Kernel, vectors: Floats, coef: Floats, intercept: Floats) -> Self:
        """Return the model with support vectors given as rows, shape (n_support, d)."""
        return cls(
            kernel,
            np.ascontiguousarray(vectors.T, dtype=np.float64),
            np.ascontiguousarray(coef, dtype=np.float64),
            np.array(intercept, dtype=np.float64),
        )

    def scores(self, X: Floats) -> Floats:
        """Return the decision values of the rows of X, shape (m, S)."""
        X = np.ascontiguousarray(X, dtype=np.float64)
        out = np.empty((len(X), len(self.intercept)))
        values = np.empty(BLOCK, dtype=self.kernel.dtype)
        # For a few rows the copy would take longer than what it saves.
        vectors = self.vectors if len(X) < CHUNK else in_lines(self.vectors)
        _score(self.kernel.shape, vectors, self.coef, self.intercept, X, values, out)
        return out

    def state(self) -> Arrays:
        """Return the attributes by name, but for the kernel."""
        return FIELDS.arrays_of(self)

    @classmethod
    def from_state(cls, state: Arrays, kernel: Kernel) -> Self:
        """Return the model that `state` describes.

        Raises
        ------
        ValueError
            If they do not fit one another.
        """
        return cls(kernel, **FIELDS.values(cls, None, state))
