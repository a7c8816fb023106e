"""A bank of machines whose votes estimate the posterior probability, with no map from scores."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.batch_solver import constant, fixed_rows
from online_svm.svm.exact.kernel_cache import Rows
from online_svm.svm.implied.class_path import Weighting, class_weights, follow_path
from online_svm.svm.implied.packed_bank import PackedBank
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class BankPlan:
    """Which machines a bank has, and how far each is solved.

    Attributes
    ----------
    n_models : int
        m.
    weighting : {"balanced", "prior"}
        See `class_weights`.
    tol : float
        The largest violation of optimality of a machine.
    max_steps : int
        Limit on the pair steps of one machine.
    """

    n_models: int
    weighting: Weighting = "balanced"
    tol: float = 1e-3
    max_steps: int = 10_000_000


@dataclass(frozen=True, slots=True)
class ImpliedBank:
    """Fitted machines of one two-class problem, ordered by the weight of the positive class.

    Attributes
    ----------
    model : KernelModel
        Decision functions of the m machines.
    highest, lowest : ndarray of shape (m,)
        Bound on the coefficients of the positive points, and of the first negative one.
    odds : float
        r: the prior odds under which the votes estimate the posterior.
    steps : int
        Pair steps of the machine that took the most.
    """

    model: KernelModel
    highest: Floats
    lowest: Floats
    odds: float
    steps: int

    @classmethod
    def fit(
        cls, kernel: Kernel, rows: Rows, positive: Bools, penalties: Floats, plan: BankPlan
    ) -> Self:
        """Fit the bank; over examples of one side all machines decide for it everywhere.

        Parameters
        ----------
        kernel : Kernel
        rows : Rows
            `fixed_rows` of the examples; several banks may share it.
        positive : ndarray of bool, shape (n,)
        penalties : ndarray of shape (n,)
            C times the weight of each example's class; one for all positive examples.
        plan : BankPlan

        Examples
        --------
        >>> from online_svm.svm.exact.batch_solver import fixed_rows
        >>> X, kernel = np.array([[-1.0], [1.0]]), Kernel("linear")
        >>> rows = fixed_rows(kernel, X, cache_mb=1.0)
        >>> positive, penalties = np.array([False, True]), np.ones(2)
        >>> bank = ImpliedBank.fit(kernel, rows, positive, penalties, BankPlan(3)).packed()
        >>> bank.shares(np.array([[-5.0], [0.0], [5.0]]))
        array([0.2, 0.5, 0.8])
        """
        m = plan.n_models
        if positive.all() or not positive.any():
            return cls.unanimous(kernel, rows.points.shape[1], m, 1.0 if positive.all() else -1.0)
        odds = math.fsum(penalties[positive]) / math.fsum(penalties[~positive])
        z, z_rest = class_weights(m, odds, plan.weighting)
        betas, Fs, steps = follow_path(
            rows, positive, penalties, z, z_rest, plan.tol, plan.max_steps
        )
        b = [
            _constant(positive, z[j] * penalties, z_rest[j] * penalties, betas[j], Fs[j])
            for j in range(m)
        ]
        support = np.flatnonzero((betas != 0.0).any(axis=0))
        model = KernelModel.build(
            kernel, rows.points[support], betas[:, support], np.array(b, dtype=np.float64)
        )
        highest, lowest = z * penalties[positive][0], -z_rest * penalties[~positive][0]
        return cls(model, highest, lowest, odds, steps)

    @classmethod
    def unanimous(cls, kernel: Kernel, dimension: int, m: int, decision: float) -> Self:
        """Return a bank that did not see two sides: every machine decides alike everywhere."""
        decisions = np.full(m, decision)
        model = KernelModel.build(kernel, np.empty((0, dimension)), np.empty((m, 0)), decisions)
        return cls(model, np.ones(m), -np.ones(m), odds=1.0, steps=0)

    def packed(self) -> PackedBank:
        """Return the bank in the form that is kept and asked."""
        return PackedBank.pack(self.model, self.highest, self.lowest)


def _constant(positive: Bools, most: Floats, most_rest: Floats, beta: Floats, F: Floats) -> float:
    slack = np.where(positive, 1.0, -1.0) - F
    grows = beta < np.where(positive, most, 0.0)
    shrinks = beta > np.where(positive, 0.0, -most_rest)
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
    kernel: Kernel, X: Floats, codes: Ints, penalties: Floats, plan: BankPlan, cache_mb: float
) -> tuple[ImpliedBank, ...]:
    """Return one bank for two classes (positive means class 1), else one a class against the rest.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray of shape (n, d)
    codes : ndarray of shape (n,)
        Class of each example, from 0; not every class has to occur. Without any example, every
        vote is half.
    penalties : ndarray of shape (n_classes,)
        C times the weight of the class: an example keeps it in every bank.
    plan : BankPlan
    cache_mb : float
        Memory for the kernel rows, which all banks share, in MiB.

    Examples
    --------
    >>> X, codes = np.array([[-2.0], [0.0], [2.0]]), np.array([0, 1, 2])
    >>> len(fit_banks(Kernel("rbf"), X, codes, np.ones(3), BankPlan(5), cache_mb=1.0))
    3
    """
    positives = [1] if len(penalties) == 2 else range(len(penalties))
    if not len(X):
        half = ImpliedBank.unanimous(kernel, X.shape[1], plan.n_models, 0.0)
        return (half,) * len(positives)
    rows = fixed_rows(kernel, X, cache_mb)
    return tuple(
        ImpliedBank.fit(kernel, rows, codes == k, penalties[codes], plan) for k in positives
    )
