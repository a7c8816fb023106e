"""Batch solver: SMO and Newton steps in turn, over a fixed set of points.

`RollingMachine` serves streams; here the points stay and the programme over them varies, as in a
bank of machines that differ in their bounds, or in a tube whose active edges change.
"""

import math

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.compiled.kernels import Kernel, kernel_value
from online_svm.svm.exact.kernel_cache import TRAIN_TAIL, Rows, empty_rows
from online_svm.svm.exact.newton_step import add_rows, free_step, free_variables
from online_svm.svm.exact.smo import Programme, maximise
from online_svm.types import Floats

MEGABYTE = 1 << 20
LEAST_ROUND = 50  # pair steps before Newton steps are tried
ROUNDING = 2.0**-52


def fixed_rows(kernel: Kernel, X: Floats, cache_mb: float) -> Rows:
    """Return the kernel rows of points that all train, shape (n, d), none computed yet."""
    rows = empty_rows(kernel, X.shape[1], len(X), 0, int(cache_mb * MEGABYTE))
    rows.X[:] = X.T
    rows.points[:] = X
    rows.rings[TRAIN_TAIL] = len(X)
    _set_diagonal(rows)
    return rows


@jit
def _set_diagonal(rows: Rows) -> None:
    for i in range(len(rows.diagonal)):
        rows.diagonal[i] = kernel_value(rows.shape, rows.points[i], rows.points[i])


@jit
def sum_rows(rows: Rows, beta: Floats, F: Floats) -> None:
    """Write F_i = sum_j beta_j k(x_j, x_i), added in the order of the points."""
    F[:] = 0.0
    support = np.flatnonzero(beta)
    add_rows(rows, support, beta[support], F)


@jit
def _newton_cost(free: int, n: int) -> int:
    """Return about how many multiplications a Newton step takes: factorisation, and change of F."""
    return free * free * free // 3 + free * n


@jit
def _settle_free(rows: Rows, problem: Programme, budget: int) -> None:
    """Take Newton steps until none is blocked, or the budget of multiplications is spent."""
    blocked = True
    while blocked:
        free = free_variables(problem.lower, problem.upper, problem.beta)
        budget -= _newton_cost(len(free), len(problem.z))
        if len(free) < 2 or budget < 0:
            break
        blocked = free_step(rows, problem, free)


@jit
def _largest_term(lower: Floats, upper: Floats, diagonal: Floats) -> float:
    """Return how large a term of a slack can be: bound times kernel value."""
    widest, largest = 0.0, 0.0
    for i in range(len(lower)):
        widest = max(widest, upper[i] - lower[i])
        largest = max(largest, diagonal[i])
    return widest * largest


@jit
def advance(
    rows: Rows, problem: Programme, tol: float, max_steps: int, work: Floats
) -> tuple[int, bool]:
    """Go one round towards the optimum: pair steps, then Newton steps where they pay.

    Parameters are those of `smo.maximise`; there is a limit on the pair steps of this call.

    Returns
    -------
    steps : int
        Pair steps taken.
    done : bool
        Whether no pair violates optimality by `tol`, or by the rounding of a slack; or the round
        changed no coefficient. Where kernel values are huge (a linear kernel of unscaled
        features), slacks may be known no better, and steps too short to be told from none beside
        the bounds: further rounds would do no more.
    """
    z, lower, upper, beta, F = problem
    n, before = len(z), beta.copy()
    # 1. No tolerance below the rounding of a slack.
    tol = max(tol, ROUNDING * _largest_term(lower, upper, rows.diagonal))
    cost = _newton_cost(len(free_variables(lower, upper, beta)), n)
    # 2. SMO, for a limited number of pair steps.
    # A pair step passes twice over the slacks. A round pays for the Newton step to come, and the
    # Newton steps may take twice the round's work.
    limit = min(max(n // 4, LEAST_ROUND, cost // (2 * n)), max_steps)
    steps, highest, lowest = maximise(rows, z, lower, upper, beta, F, tol, limit, work)
    if highest - lowest < tol or math.isinf(highest):
        return steps, True
    # 3. Newton steps over the free variables.
    _settle_free(rows, problem, 4 * n * limit)
    # 4. A round that changed nothing is the last.
    if (beta != before).any():
        return steps, False
    sum_rows(rows, beta, F)  # the steps moved F, if no coefficient
    return steps, True


def constant(grow: Floats, shrink: Floats, free: Floats) -> float:
    """Return the constant b of a decision function.

    Parameters
    ----------
    grow : ndarray
        Slacks z_i - F_i of what can grow: b is at least the largest.
    shrink : ndarray
        Slacks of what can shrink: b is at most the smallest.
    free : ndarray
        Slacks of the free multipliers: at the optimum each equals b.

    Returns
    -------
    float
        The mean over the free multipliers as LIBSVM has it; without any the midpoint of the
        interval, or its finite end; 0 if neither end is finite.

    Examples
    --------
    >>> constant(np.array([0.5]), np.array([1.5]), np.empty(0))
    1.0
    """
    if len(free):
        return math.fsum(free.tolist()) / len(free)
    lowest = float(grow.max(initial=-math.inf))
    highest = float(shrink.min(initial=math.inf))
    ends = [end for end in (lowest, highest) if math.isfinite(end)]
    return sum(ends) / len(ends) if ends else 0.0
