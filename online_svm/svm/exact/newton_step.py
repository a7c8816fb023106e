"""Newton step over the free variables of a programme, taken between the pair steps of SMO.

Pair steps find quickly which variables are at a bound, and then may need thousands of passes to
settle the few that are not when their kernel matrix is nearly singular (smooth kernels, large C).
One step here solves for all free variables at once: it maximises the programme over them with the
sum kept, and goes as far towards that point as the bounds allow.
"""

import math

import numpy as np

from online_svm.compiled.intrinsics import fma
from online_svm.compiled.jit import jit
from online_svm.svm.exact.kernel_cache import Rows, fetch
from online_svm.svm.exact.smo import Programme
from online_svm.types import Floats, Ints

# Times the mean diagonal, and added to it: equal points make the matrix singular. The line search
# is exact for the kernel matrix itself, so the ridge only bends the direction.
RIDGE = 1e-10


@jit
def _add_fetched(rows: Rows, slots: Ints, weights: Floats, out: Floats) -> None:
    for a in range(len(slots)):
        weight, row = weights[a], rows.values[fetch(rows, slots[a], 1), : len(out)]
        for i in range(len(out)):
            out[i] = fma(weight, np.float64(row[i]), out[i])


@jit
def add_rows(rows: Rows, slots: Ints, weights: Floats, out: Floats) -> None:
    """Add sum_a weights_a k(x_slots_a, x_i) to out_i, term by term in the order of the slots.

    Rows that are all at hand go four a pass, so that `out` travels to memory less often: the
    order of the terms, and so the bits, stay.
    """
    # 1. Four cached rows a pass.
    places, values, n, a = rows.row_of[slots], rows.values, len(out), 0
    while a + 4 <= len(slots) and places[a : a + 4].min() >= 0:
        p, q, r, s = weights[a], weights[a + 1], weights[a + 2], weights[a + 3]
        P, Q = values[places[a], :n], values[places[a + 1], :n]
        R, S = values[places[a + 2], :n], values[places[a + 3], :n]
        for i in range(n):
            total = fma(q, np.float64(Q[i]), fma(p, np.float64(P[i]), out[i]))
            out[i] = fma(s, np.float64(S[i]), fma(r, np.float64(R[i]), total))
        a += 4
    # 2. The rest one by one, computed where they are not cached.
    _add_fetched(rows, slots[a:], weights[a:], out)


@jit
def factorise(A: Floats) -> bool:
    """Overwrite the upper triangle of A with U, A = U'U; return whether A is positive definite."""
    for k in range(len(A)):
        if not A[k, k] > 0.0:
            return False
        scale = 1.0 / math.sqrt(A[k, k])
        row = A[k, k:]
        for j in range(len(row)):
            row[j] *= scale
        for i in range(k + 1, len(A)):
            factor, source, target = A[k, i], A[k, i:], A[i, i:]
            for j in range(len(target)):
                target[j] = fma(-factor, source[j], target[j])
    return True


@jit
def solve_factorised(U: Floats, x: Floats) -> None:
    """Overwrite x with the solution s of U'U s = x."""
    for k in range(len(x)):
        x[k] /= U[k, k]
        value, row, rest = x[k], U[k, k + 1 :], x[k + 1 :]
        for j in range(len(rest)):
            rest[j] = fma(-value, row[j], rest[j])
    for k in range(len(x) - 1, -1, -1):
        total = x[k]
        for j in range(k + 1, len(x)):
            total = fma(-U[k, j], x[j], total)
        x[k] = total / U[k, k]


@jit
def free_variables(lower: Floats, upper: Floats, beta: Floats) -> Ints:
    """Return the indices of the variables strictly between their bounds."""
    count = 0
    found = np.empty(len(beta), dtype=np.int64)
    for i in range(len(beta)):
        if lower[i] < beta[i] < upper[i]:
            found[count] = i
            count += 1
    return found[:count]


@jit
def _gathered(rows: Rows, free: Ints) -> Floats:
    """Return the upper triangle of the kernel matrix of the free points, with the ridge."""
    A = np.empty((len(free), len(free)))
    for a in range(len(free)):
        place = rows.row_of[free[a]]
        row = rows.values[place if place >= 0 else fetch(rows, free[a], 1)]
        for b in range(a, len(free)):
            A[a, b] = row[free[b]]
    trace = 0.0
    for a in range(len(free)):
        trace += A[a, a]
    for a in range(len(free)):
        A[a, a] += RIDGE * trace / len(free)
    return A


@jit
def _direction(A: Floats, slack: Floats) -> Floats:
    """Return the Newton direction of sum zero; empty if A is not positive definite."""
    if not factorise(A):
        return np.empty(0)
    # 1. Solve A s = slack and A t = 1.
    direction, ones = slack.copy(), np.ones(len(slack))
    solve_factorised(A, direction)
    solve_factorised(A, ones)
    # 2. s - (sum s / sum t) t has the sum zero.
    share, whole = 0.0, 0.0
    for a in range(len(slack)):
        share += direction[a]
        whole += ones[a]
    rest = 0.0
    for a in range(len(slack)):
        direction[a] -= share / whole * ones[a]
        rest += direction[a]
    # 3. Take out what rounding left of the sum.
    for a in range(len(slack)):
        direction[a] -= rest / len(slack)
    return direction


@jit
def _length(
    free: Ints, direction: Floats, slack: Floats, change: Floats, beta: Floats, bound: Floats
) -> tuple[float, int]:
    """Return how far to go, and which free variable then meets its bound (-1: none)."""
    # 1. The maximum along the direction: slope over curvature.
    gain, curvature = 0.0, 0.0
    for a in range(len(free)):
        gain = fma(slack[a], direction[a], gain)
        curvature = fma(direction[a], change[free[a]], curvature)
    if not gain > 0.0:
        return 0.0, -1
    length, blocking = gain / curvature if curvature > 0.0 else math.inf, -1
    # 2. No further than the first bound on the way.
    for a in range(len(free)):
        reach = (bound[a] - beta[free[a]]) / direction[a] if direction[a] != 0.0 else math.inf
        if reach < length:
            length, blocking = reach, a
    return length, blocking


@jit
def free_step(rows: Rows, problem: Programme, free: Ints) -> bool:
    """Move the free variables to the maximum over them, or to the first bound on the way.

    Parameters
    ----------
    rows : Rows
    problem : Programme
        Its point is moved in place.
    free : ndarray of shape (n_free,)
        See `free_variables`.

    Returns
    -------
    blocked : bool
        Whether a bound stopped the step: then another step, over those still free, gains more.
    """
    z, lower, upper, beta, F = problem
    # 1. The Newton direction of sum zero over the free variables.
    slack, bound = np.empty(len(free)), np.empty(len(free))
    for a in range(len(free)):
        slack[a] = z[free[a]] - F[free[a]]
    direction = _direction(_gathered(rows, free), slack)
    if len(direction) == 0:
        return False
    # 2. The bound that each of them goes towards, and the change of F.
    for a in range(len(free)):
        bound[a] = upper[free[a]] if direction[a] > 0.0 else lower[free[a]]
    change = np.zeros(len(F))
    add_rows(rows, free, direction, change)
    # 3. The length: to the maximum, or to the first bound.
    length, blocking = _length(free, direction, slack, change, beta, bound)
    if not 0.0 < length < math.inf:
        return False
    # 4. Move the coefficients and F.
    for a in range(len(free)):
        i = free[a]
        beta[i] = min(max(fma(length, direction[a], beta[i]), lower[i]), upper[i])
    if blocking >= 0:
        beta[free[blocking]] = bound[blocking]
    for k in range(len(F)):
        F[k] = fma(length, change[k], F[k])
    return blocking >= 0
