"""The dual programme of class labels and probability tubes (Niaf et al., "P-SVM").

A label asks y f >= 1; a probability p asks f to stay in a tube, z- <= f <= z+. In the dual a label
has one multiplier and a tube one at each edge, of opposite sign, and never both: z- < z+. So one
signed coefficient serves both edges, of which one is *active* at a time:

    lower edge:  0 <= beta <= C~   with linear term z-   (f must not fall below)
    upper edge: -C~ <= beta <= 0   with linear term z+   (f must not rise above)

A tube turns from one edge to the other only at beta = 0, when the other edge is violated; each
solution between two turns is an ordinary programme for `smo.maximise`. An edge at infinity is
never active: its multiplier is absent.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.compiled.logistic import logits
from online_svm.svm.exact.batch_solver import advance, constant, fixed_rows
from online_svm.svm.exact.kernel_cache import Rows
from online_svm.svm.exact.smo import Programme
from online_svm.svm.kernel_model import KernelModel
from online_svm.svm.probabilistic.posterior import steepness
from online_svm.types import Bools, Floats

CACHE_MB = 200.0  # of kernel rows, and a limit on pair steps: those of `RollingMachine`
MAX_STEPS = 10_000_000


def tube_edges(p: Floats, eta: float) -> tuple[Floats, Floats]:
    """Return z- and z+ of probabilities, where 1/(1 + exp(-a f)) is p - eta and p + eta.

    Parameters
    ----------
    p : ndarray of shape (n,)
    eta : float
        In (0, 1/2).

    Returns
    -------
    lower, upper : ndarray of shape (n,)
        -inf where p - eta <= 0, +inf where p + eta >= 1.

    Examples
    --------
    >>> lower, upper = tube_edges(np.array([0.05, 0.5]), 0.1)
    >>> lower.round(3), upper.round(3)
    (array([  -inf, -0.185]), array([-0.789,  0.185]))
    """
    a = steepness(eta)
    return logits(np.maximum(p - eta, 0.0)) / a, logits(np.minimum(p + eta, 1.0)) / a


@dataclass(frozen=True, slots=True)
class Targets:
    """What each example asks of f, and at what price.

    Attributes
    ----------
    lower, upper : ndarray of shape (n,)
        f should lie between: 1 and inf for the label +1, -inf and -1 for -1, z- and z+ for a
        probability.
    price : ndarray of shape (n,)
        C of a label, C~ of a probability.
    """

    lower: Floats
    upper: Floats
    price: Floats

    @classmethod
    def of(
        cls, y: Floats, prob: Floats, C: float | Floats, C_prob: float | Floats, eta: float
    ) -> Self:
        """Return the targets of labels y in {-1, +1}, and of `prob` where y is 0.

        The prices are one for all, or one an example.

        Examples
        --------
        >>> targets = Targets.of(np.array([1.0, 0.0]), np.array([np.nan, 0.99]), 1.0, 2.0, 0.1)
        >>> targets.lower.round(3), targets.upper, targets.price
        (array([1.   , 0.952]), array([inf, inf]), array([1., 2.]))
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
    """The maximum of the dual programme.

    Attributes
    ----------
    beta : ndarray of shape (n,)
        f(x) = sum_i beta_i k(x_i, x) + b.
    b : float
    objective : float
        The maximum; at the optimum it equals the primal objective.
    steps : int
        Pair steps taken.
    converged : bool
        Whether the tolerance was reached within the limit on them.
    """

    beta: Floats
    b: float
    objective: float
    steps: int
    converged: bool


def solve_targets(rows: Rows, targets: Targets, tol: float, max_steps: int) -> Solution:
    """Solve the dual programme of `targets` over the points of `rows`.

    Parameters
    ----------
    rows : Rows
        See `batch_solver.fixed_rows`.
    targets : Targets
        At least one edge of each is finite.
    tol : float
        The largest violation of optimality.
    max_steps : int
        Limit on pair steps.
    """
    n = len(targets.price)
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
    """Return the P-SVM that meets `targets` at the rows of X, shape (n, d), as far as it pays.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray of shape (n, d)
    targets : Targets
    tol : float
        The largest violation of optimality.

    Examples
    --------
    >>> X, y = np.array([[-2.0], [0.5], [2.0]]), np.array([-1.0, 0.0, 1.0])
    >>> targets = Targets.of(y, np.array([np.nan, 0.6, np.nan]), 10.0, 10.0, eta=0.05)
    >>> model = fit_tubes(Kernel("linear"), X, targets, 1e-6)
    >>> model.scores(X)[:, 0].round(3)
    array([-1.106,  0.21 ,  1.   ])
    """
    if not len(X):  # as for any class that is absent from T
        return KernelModel.build(kernel, X, np.empty((1, 0)), np.full(1, -1.0))
    found = solve_targets(fixed_rows(kernel, X, CACHE_MB), targets, tol, MAX_STEPS)
    support = np.flatnonzero(found.beta)
    return KernelModel.build(
        kernel, X[support], found.beta[np.newaxis, support], np.array([found.b])
    )


def _active(targets: Targets, on_lower: Bools) -> tuple[Floats, Floats, Floats]:
    """Return linear term and bounds of each variable, for the edge that is active."""
    return (
        np.where(on_lower, targets.lower, targets.upper),
        np.where(on_lower, 0.0, -targets.price),
        np.where(on_lower, targets.price, 0.0),
    )


def _slacks(targets: Targets, beta: Floats, F: Floats) -> tuple[Floats, Floats]:
    """Return how far b must at least and may at most go, by what can grow and what can shrink.

    What cannot grow is -inf, what cannot shrink +inf.
    """
    grow = np.where(beta >= 0.0, targets.lower, targets.upper) - F
    shrink = np.where(beta > 0.0, targets.lower, targets.upper) - F
    grow[beta >= targets.price] = -np.inf
    shrink[beta <= -targets.price] = np.inf
    return grow, shrink


def _turning(targets: Targets, on_lower: Bools, beta: Floats, F: Floats, tol: float) -> Bools:
    """Return which variables at 0 must turn to their other edge, by more than `tol`.

    Where both edges are violated (before the optimum) the one that is violated more is chosen.
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
    free = (magnitude > 0.0) & (magnitude < targets.price)
    return constant(grow, shrink, grow[free])
