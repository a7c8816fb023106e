"""A bank of machines in a form that is cheap to keep and to ask.

In a bank along z most coefficients lie at a bound, and stay there from one machine to the next.
So the kernel values of the points at a bound are summed once, the sums corrected where a point
reaches or leaves its bound, and only free coefficients are kept for each machine.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from online_svm.compiled.jit import jit
from online_svm.compiled.kernels import BLOCK, Kernel, Shape, kernel_row
from online_svm.storage.arrays import require
from online_svm.storage.fields import LARGEST, Fields, floats, ints
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Arrays, Floats, Ints, Values

# A point this close to a surface lies on it: far finer than the machines are solved, but coarser
# than the roundings of a decision value whose exact value is 0 by symmetry.
ON_SURFACE = 1e-9

FIELDS = Fields(
    floats("vectors", "d n"), floats("intercept", "m"), floats("highest", "m"),
    floats("lowest", "m"), ints("moves", "moves", least=-LARGEST), ints("sides", "moves", below=2),
    ints("move_ends", "m"), ints("free", "free"), floats("free_coef", "free"),
    ints("free_ends", "m"),
)  # fmt: skip
"""Of a `Packing`."""


class Packing(NamedTuple):
    """The coefficients of m machines over n vectors: plain arrays, for compiled code.

    Attributes
    ----------
    vectors : ndarray of shape (d, n)
        Support vectors of any of the machines, feature-major.
    intercept, highest, lowest : ndarray of shape (m,)
        Constants; the coefficient of a positive point, and of a negative one, at its bound.
    moves : ndarray of shape (n_moves,)
        Points that reach their bound, by number from 1; of those that leave it, minus the number.
    sides : ndarray of shape (n_moves,)
        1 where the point that moves is positive, else 0.
    move_ends : ndarray of shape (m,)
        Moves up to and including each machine.
    free, free_coef : ndarray of shape (n_free,)
        Vectors with a coefficient off its bound, and the coefficient, machine by machine.
    free_ends : ndarray of shape (m,)
        Free coefficients up to and including each machine.
    """

    vectors: Floats
    intercept: Floats
    highest: Floats
    lowest: Floats
    moves: Ints
    sides: Ints
    move_ends: Ints
    free: Ints
    free_coef: Floats
    free_ends: Ints


class PackedBank:
    """The votes of a bank.

    Parameters
    ----------
    kernel : Kernel
    packing : Packing

    Examples
    --------
    >>> model = KernelModel.build(
    ...     Kernel("linear"), np.array([[-1.0], [1.0]]), np.array([[-0.5, 0.5]]), np.zeros(1)
    ... )
    >>> bank = PackedBank.pack(model, highest=np.array([0.5]), lowest=np.array([-1.0]))
    >>> bank.packing.moves, bank.packing.free_coef
    (array([2]), array([-0.5]))
    >>> bank.decisions(np.array([[3.0]]))
    array([[3.]])
    """

    def __init__(self, kernel: Kernel, packing: Packing) -> None:
        self.kernel, self.packing = kernel, packing

    @classmethod
    def pack(cls, model: KernelModel, highest: Floats, lowest: Floats) -> Self:
        """Return the machines of `model`, whose coefficients lie between `lowest` and `highest`.

        Parameters
        ----------
        model : KernelModel
            Of m machines; a point's coefficients have one sign in all of them.
        highest, lowest : ndarray of shape (m,)
            Bound on the coefficients of the positive points, and of the negative ones.
        """
        coef = model.coef
        bound = (coef == highest[:, None]) | (coef == lowest[:, None])
        positive = coef.max(axis=0, initial=0.0) > 0.0
        before = np.concatenate([np.zeros((1, bound.shape[1]), dtype=np.bool_), bound[:-1]])
        machine, point = np.nonzero(bound != before)
        holder, free = np.nonzero((coef != 0.0) & ~bound)
        m = np.arange(len(coef))
        return cls(
            model.kernel,
            Packing(
                model.vectors,
                model.intercept,
                highest,
                lowest,
                np.where(bound[machine, point], point + 1, -point - 1),
                positive[point].astype(np.int64),
                np.searchsorted(machine, m, side="right"),
                free,
                coef[holder, free],
                np.searchsorted(holder, m, side="right"),
            ),
        )

    def decisions(self, X: Floats) -> Floats:
        """Return the decision values of rows, shape (n, m); a row's do not depend on the others."""
        X = np.ascontiguousarray(X, dtype=np.float64)
        out = np.empty((len(X), len(self.packing.intercept)))
        values = np.empty(self.packing.vectors.shape[1], dtype=self.kernel.dtype)
        _decide(self.kernel.shape, self.packing, X, np.empty(BLOCK), values, out)
        return out

    def shares(self, X: Floats) -> Floats:
        """Return (positive votes + 1) / (m + 2) for each row; on a surface a vote counts half."""
        twice = (self.sides(X).astype(np.int64) + 1).sum(axis=1)
        return np.asarray((twice + 2) / (2.0 * (len(self.packing.intercept) + 2)))

    def sides(self, X: Floats) -> NDArray[np.int8]:
        """Return the side of each surface a row lies on, shape (n, m): +1, -1, or 0 on it."""
        scores = self.decisions(X)
        return (scores > ON_SURFACE).astype(np.int8) - (scores < -ON_SURFACE).astype(np.int8)

    def crossings(self, X: Floats) -> Ints:
        """Return how often the vote changes along z, from "negative" at z = 0 to "positive" at 1.

        Once is as it should be. More means that surfaces cross and a look-up of the posterior by
        surface would find several values.
        """
        sides = self.sides(X)
        last, count = np.full(len(sides), -1, dtype=np.int8), np.zeros(len(sides), dtype=np.int64)
        for column in (*sides.T, np.ones(len(sides), dtype=np.int8)):
            count += (column != 0) & (column != last)
            last = np.where(column == 0, last, column)
        return count

    def state(self) -> Arrays:
        """Return the packing by name."""
        return FIELDS.arrays_of(self.packing)

    @classmethod
    def from_state(cls, state: Arrays, kernel: Kernel) -> Self:
        """Return the bank that `state` describes.

        Raises
        ------
        ValueError
            If they do not fit one another.
        """
        packing = Packing(**FIELDS.values(cls, None, state))
        n = packing.vectors.shape[1]
        require(_is_below(np.abs(packing.moves) - 1, n), "moves")
        require(_is_below(packing.free, n), "free")
        for ends, moved in ((packing.move_ends, packing.moves), (packing.free_ends, packing.free)):
            require(_is_below(ends, len(moved) + 1) and (np.diff(ends) >= 0).all(), "ends")
        return cls(kernel, packing)


def _is_below(numbers: Ints, stop: int) -> bool:
    """Return whether all numbers lie in 0 ... stop - 1; compiled code does not look."""
    return bool(((numbers >= 0) & (numbers < stop)).all())


@jit
def _decide(
    shape: Shape, packing: Packing, X: Floats, sums: Floats, values: Values, out: Floats
) -> None:
    """Write the decision values of the rows of X to `out`; `sums` and `values` are scratch."""
    for i in range(len(X)):
        # 1. Kernel values of the row with all support vectors of the bank.
        kernel_row(shape, packing.vectors, X[i], 0, len(values), sums, values)
        up, down, move, first = 0.0, 0.0, 0, 0
        for j in range(len(packing.intercept)):
            # 2. Support vectors at a bound: only the changes of side since the last machine.
            while move < packing.move_ends[j]:
                number = packing.moves[move]
                value = np.float64(values[abs(number) - 1])
                if packing.sides[move]:
                    up += value if number > 0 else -value
                else:
                    down += value if number > 0 else -value
                move += 1
            # 3. Those between their bounds, which have coefficients of their own.
            stop = packing.free_ends[j]
            total = _sum_free(packing.free[first:stop], packing.free_coef[first:stop], values)
            first = stop
            # 4. The decision value.
            at_bounds = packing.highest[j] * up + packing.lowest[j] * down
            out[i, j] = packing.intercept[j] + at_bounds + total


@jit
def _sum_free(free: Ints, coef: Floats, values: Values) -> float:
    """Return the sum of coef_f values[free_f], in four parts that need not wait for each other."""
    a = b = c = d = 0.0
    whole = len(free) - len(free) % 4
    for f in range(0, whole, 4):
        a += coef[f] * values[free[f]]
        b += coef[f + 1] * values[free[f + 1]]
        c += coef[f + 2] * values[free[f + 2]]
        d += coef[f + 3] * values[free[f + 3]]
    for f in range(whole, len(free)):
        a += coef[f] * values[free[f]]
    return (a + b) + (c + d)
