"""Sequential minimal optimisation of one quadratic programme over cached kernel rows.

    maximise  sum_i z_i beta_i - 1/2 sum_ij beta_i beta_j k(x_i, x_j)
    subject to  lower_i <= beta_i <= upper_i,  sum_i beta_i constant

In these signed coefficients a support vector classifier has z = y and bounds [0, C] or [-C, 0]
(beta = alpha y); a regression tube has its two edges as z, with bounds of either sign, and a bound
that is absent is a variable that is absent. With F_i = sum_j beta_j k(x_i, x_j) the slack is
v_i = z_i - F_i. At the optimum v_i <= v_j whenever beta_i can grow and beta_j can shrink.

Each step moves the pair chosen by second-order information (Fan, Chen and Lin 2005, "Working set
selection using second order information for training support vector machines").
"""

import math

from online_svm._intrinsics import bits_of, float_of, fma
from online_svm._jit import jit
from online_svm.kernels import Floats
from online_svm.svm.rows import Rows, train_row

BLOCK = 128  # an arg-max first finds its block, by a reduction that vectorises, then looks inside
MAGNITUDE = 0x7FFFFFFFFFFFFFFF
LOWEST = -0x7FFFFFFFFFFFFFFF - 1
FLAT = 1e-12  # least curvature of a pair, as in LIBSVM: equal points have none


@jit
def _order_key(x: float) -> int:
    """Return an integer that orders floats: integer maxima vectorise, float ones do not."""
    bits = bits_of(x)
    return bits ^ ((bits >> 63) & MAGNITUDE)


@jit
def _first_maximum(values: Floats) -> int:
    best = 0
    for k in range(len(values)):
        if values[k] > values[best]:
            best = k
    return best


@jit
def _highest(up: Floats) -> int:
    """Return the index of the largest slack among the variables that can grow."""
    best_key, best_block = LOWEST, 0
    for first in range(0, len(up), BLOCK):
        block = up[first : first + BLOCK]
        key = LOWEST
        for k in range(len(block)):
            key = max(key, _order_key(block[k]))
        if key > best_key:
            best_key, best_block = key, first
    return best_block + _first_maximum(up[best_block : best_block + BLOCK])


@jit
def _move(up: Floats, down: Floats, row_i: Floats, row_j: Floats, step: float) -> int:
    """Update the slacks after a step along (i, j), and return the index of the highest one."""
    best_key, best_block = LOWEST, 0
    for first in range(0, len(up), BLOCK):
        stop = first + BLOCK
        u, d, a, b = up[first:stop], down[first:stop], row_i[first:stop], row_j[first:stop]
        key = LOWEST
        for k in range(len(u)):
            change = a[k] - b[k]
            u[k] = fma(-step, change, u[k])
            d[k] = fma(-step, change, d[k])
            key = max(key, _order_key(u[k]))
        if key > best_key:
            best_key, best_block = key, first
    return best_block + _first_maximum(up[best_block : best_block + BLOCK])


@jit
def _partner(
    down: Floats, row: Floats, diagonal: Floats, top: float, k_ii: float, gain: Floats
) -> tuple[int, float]:
    """Return the variable whose pair with i gains most, and the largest violation."""
    best_gain, best_block, worst = 0, 0, 0
    for first in range(0, len(down), BLOCK):
        stop = first + BLOCK
        d, a, e, g = down[first:stop], row[first:stop], diagonal[first:stop], gain[first:stop]
        block_gain, block_worst = 0, 0
        for k in range(len(d)):
            violation = max(top - d[k], 0.0)
            curvature = max(k_ii + e[k] - 2.0 * a[k], FLAT)
            g[k] = violation * violation / curvature
            # The bits of floats that are not negative are ordered like the floats.
            block_gain = max(block_gain, bits_of(g[k]))
            block_worst = max(block_worst, bits_of(violation))
        worst = max(worst, block_worst)
        if block_gain > best_gain:
            best_gain, best_block = block_gain, first
    j = best_block + _first_maximum(gain[best_block : best_block + BLOCK])
    return j, float_of(worst)


@jit
def split_slacks(
    F: Floats, z: Floats, lower: Floats, upper: Floats, beta: Floats, up: Floats, down: Floats
) -> None:
    """Write the slack of each variable to `up` if it can grow and to `down` if it can shrink.

    The other entries are -inf and +inf, which no step changes and no maximum picks.
    """
    for i in range(len(z)):
        slack = z[i] - F[i]
        up[i] = slack if beta[i] < upper[i] else -math.inf
        down[i] = slack if beta[i] > lower[i] else math.inf


@jit
def minimise(
    rows: Rows,
    z: Floats,
    lower: Floats,
    upper: Floats,
    beta: Floats,
    F: Floats,
    tol: float,
    max_steps: int,
    work: Floats,
) -> tuple[int, float, float]:
    """Solve the programme over the first n training slots, from the coefficients given.

    Parameters
    ----------
    rows : Rows
        Kernel rows; slots with lower = upper take no part, and their F is not kept up to date.
    z, lower, upper : ndarray of shape (n,)
        Linear term and bounds.
    beta, F : ndarray of shape (n,)
        Start, and the solution in place; F_i = sum_j beta_j k(x_i, x_j).
    tol : float
        Stop when no pair violates optimality by this much.
    max_steps : int
        Limit on pair steps.
    work : ndarray of shape (3, n)
        Scratch.

    Returns
    -------
    steps : int
    highest, lowest : float
        Largest slack that can grow and smallest that can shrink: b lies between.
    """
    up, down, gain = work[0], work[1], work[2]
    split_slacks(F, z, lower, upper, beta, up, down)
    diagonal = rows.diagonal[: len(z)]
    i = _highest(up)
    steps = 0
    violation = 0.0
    while up[i] > -math.inf:
        row_i = rows.values[train_row(rows, i)][: len(z)]
        j, violation = _partner(down, row_i, diagonal, up[i], diagonal[i], gain)
        if violation < tol or steps == max_steps:
            break
        row_j = rows.values[train_row(rows, j)][: len(z)]
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * row_i[j], FLAT)
        slack_i, slack_j = up[i], down[j]
        room_i, room_j = upper[i] - beta[i], beta[j] - lower[j]
        step = min((slack_i - slack_j) / curvature, room_i, room_j)
        # A bound is reached exactly: the variable must be seen to have left one side.
        beta[i] = upper[i] if step == room_i else beta[i] + step
        beta[j] = lower[j] if step == room_j else beta[j] - step
        up[i] = slack_i if beta[i] < upper[i] else -math.inf
        down[i] = slack_i
        up[j] = slack_j
        down[j] = slack_j if beta[j] > lower[j] else math.inf
        i = _move(up, down, row_i, row_j, step)
        steps += 1
    highest = up[i]
    for k in range(len(z)):
        if lower[k] < upper[k]:
            F[k] = z[k] - (up[k] if up[k] > -math.inf else down[k])
    return steps, highest, highest - violation


@jit
def intercept(
    F: Floats, z: Floats, lower: Floats, upper: Floats, beta: Floats, highest: float, lowest: float
) -> float:
    """Return b as LIBSVM does: the mean slack of the free variables, else the midpoint."""
    total, free = 0.0, 0
    for i in range(len(z)):
        if lower[i] < beta[i] < upper[i]:
            total += z[i] - F[i]
            free += 1
    if free:
        return total / free
    if math.isinf(highest):
        return lowest
    return highest if math.isinf(lowest) else 0.5 * (highest + lowest)
