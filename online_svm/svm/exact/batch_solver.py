"""Solve a programme over a fixed set of points by SMO and Newton steps in turn.

    maximise  sum_i z_i beta_i - 1/2 sum_ij beta_i beta_j k(x_i, x_j)
    subject to  lower_i <= beta_i <= upper_i,  sum_i beta_i constant

In these signed coefficients a support vector classifier has z = y and bounds [0, C] or [-C, 0]
(beta = alpha y). A tube has its active edge as z, with bounds [0, C] for the lower and [-C, 0] for
the upper edge (`probability_tube`). With F_i = sum_j beta_j k(x_i, x_j) the slack is
v_i = z_i - F_i. At the optimum v_i <= v_j whenever beta_i can grow and beta_j can shrink.

Each step of sequential minimal optimisation moves the pair chosen by second-order information (Fan,
Chen and Lin 2005, "Working set selection using second order information for training support vector
machines"). Pair steps quickly find the variables at a bound. With a nearly singular kernel matrix
(smooth kernels, large C) they may then need thousands of passes for the few free variables. One
Newton step solves for all free variables at once: it maximises the programme over them at a
constant sum, and moves towards that point as far as the bounds allow.

`RollingMachine` serves streams. Here the points are fixed and the programme over them varies: a
bank of machines with different bounds, or tubes whose active edges change.
"""

import math
from typing import NamedTuple

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.machine_state import MEGABYTE, TRAIN_TAIL, Rows, empty_rows
from online_svm.types import Floats, Ints


class Programme(NamedTuple):
    """A programme over n variables and its current point; all shapes are (n,)."""

    z: Floats  # linear term
    lower: Floats
    upper: Floats
    beta: Floats  # coefficients
    F: Floats  # F_i = sum_j beta_j k(x_i, x_j)


@kernel
def maximise(
    rows: Rows, problem: Programme, tol: float, max_steps: int, work: Floats
) -> tuple[int, float, float]:
    """Solve the programme over the points of `rows`, from the given coefficients.

    Points with lower = upper are ignored, and their F is not updated. `beta` and `F` are replaced
    by the solution. The solver stops when no pair violates optimality by `tol`. `work` is scratch
    of shape (3, n). Returns the steps taken, the largest slack of a variable that can grow and the
    smallest of one that can shrink; the constant b lies between the two.
    """


class NewtonRoom(NamedTuple):
    """Scratch of Newton steps over at most k of n variables."""

    free: Ints  # shape (n,): the free variables
    change: Floats  # shape (n,): the change of F
    A: Floats  # shape (k, k): the kernel matrix of the free variables
    parts: Floats  # shape (4, k)


def newton_room(n: int, k: int) -> NewtonRoom:
    """Return scratch for Newton steps over at most k of n variables."""
    return NewtonRoom(np.empty(n, dtype=np.int64), np.empty(n), np.empty((k, k)), np.empty((4, k)))


@kernel
def add_rows(rows: Rows, slots: Ints, weights: Floats, out: Floats) -> None:
    """Add sum_a weights_a k(x_slots_a, x_i) to out_i, term by term in the order of the slots.

    `slots` and `weights` have shape (n_slots,), `out` has shape (n,).
    """


@kernel
def factorise(A: Floats) -> bool:
    """Overwrite the upper triangle of A with its Cholesky factor U, A = U'U.

    Returns whether A is positive definite.
    """


@kernel
def solve_factorised(U: Floats, x: Floats) -> None:
    """Overwrite x with the solution s of U'U s = x."""


def free_variables(lower: Floats, upper: Floats, beta: Floats) -> Ints:
    """Return the indices of the variables strictly between their bounds."""
    return np.flatnonzero((lower < beta) & (beta < upper))


def free_step(rows: Rows, problem: Programme, free: Ints) -> bool:
    """Move the variables `free` to the maximum over them, or up to the first bound, in place.

    Returns whether a bound stopped the step; another step over the remaining free variables then
    gains more.
    """
    room = newton_room(len(problem.z), len(free))
    room.free[: len(free)] = free
    return _free_step(rows, problem, len(free), room)


@kernel
def _free_step(rows: Rows, problem: Programme, n_free: int, room: NewtonRoom) -> bool:
    """Implement `free_step` for the first `n_free` of `room.free`."""


MIN_ROUND_STEPS = 50  # the limit on the pair steps of a round is at least this


def fixed_rows(kernel: Kernel, X: Floats, cache_mb: float) -> Rows:
    """Return an empty cache of kernel rows for training points, shape (n, d)."""
    rows = empty_rows(kernel, X.shape[1], len(X), 0, int(cache_mb * MEGABYTE))
    rows.X[:] = X.T
    rows.points[:] = X
    rows.rings[TRAIN_TAIL] = len(X)
    rows.diagonal[:] = kernel.diagonal(rows.points)
    return rows


def sum_rows(rows: Rows, beta: Floats, F: Floats) -> None:
    """Write F_i = sum_j beta_j k(x_j, x_i), added in the order of the points."""
    F[:] = 0.0
    support = np.flatnonzero(beta)
    add_rows(rows, support, beta[support], F)


def _newton_cost(free: int, n: int) -> int:
    """Return the approximate number of multiplications of a Newton step."""
    return free * free * free // 3 + free * n


def _max_free(budget: int, n: int) -> int:
    """Return an upper bound on the free variables of a Newton step within the budget."""
    free = 1
    while free < n and _newton_cost(free, n) <= budget:
        free *= 2
    return min(free, n)


def advance(
    rows: Rows, problem: Programme, tol: float, max_steps: int, work: Floats
) -> tuple[int, bool]:
    """Take one round towards the optimum: pair steps, then Newton steps if they pay.

    Parameters are as in `maximise`; `max_steps` limits the pair steps of this call. Returns the
    pair steps taken, and whether the programme is solved: no pair violates optimality by `tol`, or
    by the rounding of a slack if that is larger, or the round changed no coefficient. With huge
    kernel values (a linear kernel of unscaled features) steps may be too short to change a
    coefficient; further rounds would not help.
    """
    _, lower, upper, beta, F = problem
    n = len(beta)
    # 1. Limits on pair steps and on the multiplications of Newton steps. A pair step passes twice
    # over the slacks. Pair steps may cost as much as the next Newton step, and Newton steps twice
    # as much as the pair steps.
    cost = _newton_cost(len(free_variables(lower, upper, beta)), n)
    limit = min(max(n // 4, MIN_ROUND_STEPS, cost // (2 * n)), max_steps)
    budget = 4 * n * limit
    # 2. The round. A round without change is the last.
    room = newton_room(n, _max_free(budget, n))
    limits = tol, limit, budget
    steps, is_optimal, is_moved = _round(rows, problem, limits, work, np.empty(n), room)
    if not is_moved:
        sum_rows(rows, beta, F)  # the steps changed F even if no coefficient changed
    return steps, is_optimal or not is_moved


@kernel
def _round(
    rows: Rows,
    problem: Programme,
    limits: tuple[float, int, int],
    work: Floats,
    before: Floats,
    room: NewtonRoom,
) -> tuple[int, bool, bool]:
    """Take pair steps, then Newton steps, up to limits on steps and multiplications.

    `work` and `before`, shapes (3, n) and (n,), are scratch. Returns the pair steps taken, whether
    the point is optimal, and whether it is optimal or a coefficient changed.
    """


def constant(grow: Floats, shrink: Floats, free: Floats) -> float:
    """Return the constant b of a decision function from slacks z_i - F_i.

    `grow`, `shrink` and `free` are the slacks of the variables that can grow, can shrink, and can
    do both. At the optimum b lies between the largest of `grow` and the smallest of `shrink`, and
    equals the slack of each free variable. The result is the mean of `free`, as in LIBSVM; without
    free variables the midpoint of the interval, or its finite end, or 0.
    """
    if len(free):
        return math.fsum(free.tolist()) / len(free)
    limits = float(grow.max(initial=-math.inf)), float(shrink.min(initial=math.inf))
    finite = [limit for limit in limits if math.isfinite(limit)]
    return sum(finite) / len(finite) if finite else 0.0
