"""A bank of machines whose votes estimate the posterior probability, with no map from scores."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.batch_solver import constant, fixed_rows
from online_svm.svm.exact.kernel_cache import Rows
from online_svm.svm.implied.class_path import Weighting, class_weights, follow_path
from online_svm.svm.implied.votes import shares_of, sides
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Arrays, Bools, Floats, Ints

MAX_STEPS = 10_000_000  # pair steps of one machine


@dataclass(frozen=True, slots=True)
class ImpliedBank:
    """Fitted machines of one two-class problem, ordered by the weight of the positive class.

    Attributes
    ----------
    model : KernelModel
        Decision functions of the m machines.
    odds : float
        r: the prior odds under which the votes estimate the posterior.
    steps : int
        Pair steps of the machine that took the most.
    """

    model: KernelModel
    odds: float
    steps: int

    @classmethod
    def fit(
        cls,
        kernel: Kernel,
        rows: Rows,
        positive: Bools,
        penalties: Floats,
        n_models: int,
        weighting: Weighting = "balanced",
        tol: float = 1e-3,
        max_steps: int = MAX_STEPS,
    ) -> Self:
        """Fit the bank.

        Parameters
        ----------
        kernel : Kernel
        rows : Rows
            `fixed_rows` of the examples; several banks may share it.
        positive : ndarray of bool, shape (n,)
            Both classes must occur.
        penalties : ndarray of shape (n,)
            C times the weight of each example's class.
        n_models : int
        weighting : {"balanced", "prior"}
        tol : float
            The largest violation of optimality of a machine.
        max_steps : int
            Limit on the pair steps of one machine.

        Examples
        --------
        >>> from online_svm.svm.exact.batch_solver import fixed_rows
        >>> X, kernel = np.array([[-1.0], [1.0]]), Kernel("linear")
        >>> rows = fixed_rows(kernel, X, cache_mb=1.0)
        >>> bank = ImpliedBank.fit(kernel, rows, np.array([False, True]), np.ones(2), 3)
        >>> bank.shares(np.array([[-5.0], [0.0], [5.0]]))
        array([0.2, 0.5, 0.8])
        """
        n = len(positive)
        odds = math.fsum(penalties[positive]) / math.fsum(penalties[~positive])
        z, z_rest = class_weights(n_models, odds, weighting)
        betas, Fs = np.zeros((n_models, n)), np.zeros((n_models, n))
        steps = follow_path(rows, positive, penalties, z, z_rest, tol, max_steps, betas, Fs)
        b = [
            _constant(positive, penalties, z[j], z_rest[j], betas[j], Fs[j])
            for j in range(n_models)
        ]
        support = np.flatnonzero((betas != 0.0).any(axis=0))
        model = KernelModel.build(
            kernel, rows.points[support], betas[:, support], np.array(b, dtype=np.float64)
        )
        return cls(model, odds, steps)

    def signs(self, X: Floats) -> NDArray[np.int8]:
        """Return the side of each surface a row lies on, shape (n, m): +1, -1, or 0 on it."""
        return sides(self.model.scores(X))

    def shares(self, X: Floats) -> Floats:
        """Return (positive votes + 1) / (m + 2) for each row; on a surface a vote counts half."""
        return shares_of(self.model.scores(X))

    def crossings(self, X: Floats) -> Ints:
        """Return how often the vote changes along z, from "negative" at z = 0 to "positive" at 1.

        Once is as it should be. More means that surfaces cross and a look-up of the posterior by
        surface would find several values.
        """
        signs = self.signs(X)
        last, count = np.full(len(signs), -1, dtype=np.int8), np.zeros(len(signs), dtype=np.int64)
        for column in (*signs.T, np.ones(len(signs), dtype=np.int8)):
            count += (column != 0) & (column != last)
            last = np.where(column == 0, last, column)
        return count

    def state(self) -> Arrays:
        """Return the model's state and the odds."""
        return {**self.model.state(), "odds": np.array([self.odds])}

    @classmethod
    def from_state(cls, state: Arrays, kernel: Kernel) -> Self:
        """Return the bank that `state` describes."""
        return cls(KernelModel.from_state(state, kernel), float(state["odds"][0]), steps=0)


def _constant(
    positive: Bools, penalties: Floats, z: float, z_rest: float, beta: Floats, F: Floats
) -> float:
    slack = np.where(positive, 1.0, -1.0) - F
    grows = beta < np.where(positive, z * penalties, 0.0)
    shrinks = beta > np.where(positive, 0.0, -z_rest * penalties)
    return constant(slack[grows], slack[shrinks], slack[grows & shrinks])


def adjusted(shares: Floats, factor: float) -> Floats:
    """Return probabilities whose odds are `factor` times those of `shares`.

    Examples
    --------
    >>> adjusted(np.array([0.5]), 3.0)
    array([0.75])
    """
    return np.asarray(factor * shares / (factor * shares + (1.0 - shares)))


def fit_banks(
    kernel: Kernel,
    X: Floats,
    codes: Ints,
    penalties: Floats,
    n_models: int,
    weighting: Weighting = "balanced",
    tol: float = 1e-3,
    max_steps: int = MAX_STEPS,
    cache_mb: float = 200.0,
) -> tuple[ImpliedBank, ...]:
    """Return one bank for two classes (positive means class 1), else one a class against the rest.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray of shape (n, d)
    codes : ndarray of shape (n,)
        Class of each example, from 0; all occur.
    penalties : ndarray of shape (n_classes,)
        C times the weight of the class: an example keeps it in every bank.
    n_models, weighting, tol, max_steps
        See `ImpliedBank.fit`.
    cache_mb : float
        Memory for the kernel rows, which all banks share, in MiB.

    Examples
    --------
    >>> X, codes = np.array([[-2.0], [0.0], [2.0]]), np.array([0, 1, 2])
    >>> len(fit_banks(Kernel("rbf"), X, codes, np.ones(3), n_models=5))
    3
    """
    rows = fixed_rows(kernel, X, cache_mb)
    each = penalties[codes]
    positives = [1] if len(penalties) == 2 else range(len(penalties))
    return tuple(
        ImpliedBank.fit(kernel, rows, codes == k, each, n_models, weighting, tol, max_steps)
        for k in positives
    )
