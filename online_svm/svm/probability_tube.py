"""Fit a machine to class labels and probabilities: the P-SVM of Niaf et al.

A label requires y f >= 1; a probability p requires that f lies in a tube, z- <= f <= z+. In the
dual a label has one multiplier. A tube has one for each edge, of opposite sign, and one of them is
zero, because z- < z+. So a single signed coefficient serves both edges, one of which is *active*:

    lower edge:  0 <= beta <= C~   with linear term z-   (f >= z-)
    upper edge: -C~ <= beta <= 0   with linear term z+   (f <= z+)

A tube switches edges only at beta = 0, when the other edge is violated. Between two switches the
problem is an ordinary programme of `batch_solver`. An edge at infinity is never active. The
probability of a decision value f is 1/(1 + exp(-a f)).
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from online_svm.compiled.elementary import log, logistics, logits
from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.batch_solver import Programme, advance, constant, fixed_rows
from online_svm.svm.exact.machine_state import Rows
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Bools, Floats


def steepness(eta: float) -> float:
    """Return a = ln(1/eta - 1): f = +1 and f = -1 then have the probabilities 1 - eta and eta."""
    return log(1.0 / eta - 1.0)


def posterior(f: Floats, a: float) -> Floats:
    """Return P(y = -1 | x) and P(y = 1 | x) = 1/(1 + exp(-a f)), shape (n, 2)."""
    return np.column_stack((logistics(-a * f), logistics(a * f)))


CACHE_MB = 200.0  # for kernel rows; both limits are as in `RollingMachine`
MAX_STEPS = 10_000_000


def tube_edges(p: Floats, eta: float) -> tuple[Floats, Floats]:
    """Return z- and z+, at which 1/(1 + exp(-a f)) is p - eta and p + eta, for eta in (0, 1/2).

    The edges are -inf where p - eta <= 0, and +inf where p + eta >= 1.
    """
    a = steepness(eta)
    return logits(np.maximum(p - eta, 0.0)) / a, logits(np.minimum(p + eta, 1.0)) / a


@dataclass(frozen=True, slots=True)
class Targets:
    """The required range of f for each example, and the penalty of leaving it.

    The range is [1, inf] for the label +1, [-inf, -1] for -1, and [z-, z+] for a probability.
    """

    lower: Floats  # shape (n,)
    upper: Floats  # shape (n,)
    penalty: Floats  # shape (n,): C of a label, C~ of a probability

    @classmethod
    def of(
        cls, y: Floats, prob: Floats, C: float | Floats, C_prob: float | Floats, eta: float
    ) -> Self:
        """Return the targets of labels y in {-1, +1}, and of `prob` where y is 0.

        Penalties are scalars, or arrays with one value for each example.
        """
        is_label = y != 0.0
        below, above = tube_edges(np.where(is_label, 0.5, prob), eta)
        return cls(
            np.where(is_label, np.where(y > 0.0, 1.0, -np.inf), below),
            np.where(is_label, np.where(y > 0.0, np.inf, -1.0), above),
            np.where(is_label, C, C_prob),
        )


@dataclass(frozen=True, slots=True)
class Solution:
    """The maximum of the dual programme."""

    beta: Floats  # shape (n,): f(x) = sum_i beta_i k(x_i, x) + b
    b: float
    objective: float  # the maximum; at the optimum it equals the primal objective
    steps: int  # pair steps taken
    converged: bool  # whether the tolerance was reached within the limit on pair steps


def solve_targets(rows: Rows, targets: Targets, tol: float, max_steps: int) -> Solution:
    """Solve the dual programme of `targets` over the points of `rows` (`batch_solver.fixed_rows`).

    At least one edge of each target is finite. `tol` is the largest violation of optimality.
    """
    n = len(targets.penalty)
    beta, F, work = np.zeros(n), np.zeros(n), np.empty((3, n))
    on_lower = np.abs(targets.lower) <= np.abs(targets.upper)
    steps, done = 0, False
    while not done and steps < max_steps:
        problem = Programme(*_active(targets, on_lower), beta, F)
        taken, done = advance(rows, problem, tol, max_steps - steps, work)
        steps += taken
        turning = _turning(targets, on_lower, beta, F, tol)
        on_lower ^= turning
        done = done and not turning.any()
    z = _active(targets, on_lower)[0]
    objective = math.fsum((beta * (z - 0.5 * F)).tolist())
    return Solution(beta, _constant(targets, beta, F), objective, steps, done)


def fit_tubes(kernel: Kernel, X: Floats, targets: Targets, tol: float) -> KernelModel:
    """Fit the P-SVM to `targets` at the rows of X, shape (n, d)."""
    if not len(X):  # the class is absent from T
        return KernelModel.build(kernel, X, np.empty((1, 0)), np.full(1, -1.0))
    found = solve_targets(fixed_rows(kernel, X, CACHE_MB), targets, tol, MAX_STEPS)
    support = np.flatnonzero(found.beta)
    return KernelModel.build(
        kernel, X[support], found.beta[np.newaxis, support], np.array([found.b])
    )


def _active(targets: Targets, on_lower: Bools) -> tuple[Floats, Floats, Floats]:
    """Return linear term and bounds of each variable for its active edge."""
    return (
        np.where(on_lower, targets.lower, targets.upper),
        np.where(on_lower, 0.0, -targets.penalty),
        np.where(on_lower, targets.penalty, 0.0),
    )


def _slacks(targets: Targets, beta: Floats, F: Floats) -> tuple[Floats, Floats]:
    """Return the lower and the upper limit on b from each variable.

    A variable that cannot grow gives -inf, one that cannot shrink +inf.
    """
    grow = np.where(beta >= 0.0, targets.lower, targets.upper) - F
    shrink = np.where(beta > 0.0, targets.lower, targets.upper) - F
    grow[beta >= targets.penalty] = -np.inf
    shrink[beta <= -targets.penalty] = np.inf
    return grow, shrink


def _turning(targets: Targets, on_lower: Bools, beta: Floats, F: Floats, tol: float) -> Bools:
    """Return the variables at 0 whose other edge is violated by more than `tol`.

    If both edges are violated, as before the optimum, the violation of the other must be larger.
    """
    grow, shrink = _slacks(targets, beta, F)
    lower_violation = grow - shrink.min()
    upper_violation = grow.max() - shrink
    gain = np.where(on_lower, upper_violation, lower_violation)
    present = np.where(on_lower, lower_violation, upper_violation)
    return np.asarray((beta == 0.0) & (gain > tol) & (gain > present))


def _constant(targets: Targets, beta: Floats, F: Floats) -> float:
    grow, shrink = _slacks(targets, beta, F)
    magnitude = np.abs(beta)
    free = (magnitude > 0.0) & (magnitude < targets.penalty)
    return constant(grow, shrink, grow[free])
