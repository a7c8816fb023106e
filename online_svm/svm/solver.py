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

import numpy as np

from online_svm._intrinsics import bits_of, float_of, fma
from online_svm._jit import jit
from online_svm.kernels import Floats, Values
from online_svm.svm.rows import CLOCK, TRAIN_TAIL, Rows, fetch

BLOCK = 64  # an arg-max first finds its block, by a reduction that vectorises, then looks inside
MAGNITUDE = 0x7FFFFFFFFFFFFFFF
LOWEST = -0x7FFFFFFFFFFFFFFF - 1
FLAT = 1e-12  # least curvature of a pair, as in LIBSVM: equal points have none
ROUNDINGS = 1e-13  # of the width of a variable's bounds: some hundred roundings
RECIPROCAL = 0x7FDE6238502484BA  # minus the bits of x, it is 1/x to an eighth (as in the fast
# inverse square root); one Newton step then gives two digits, enough to choose a partner by


@jit
def _order_key(x: float) -> int:
    """Return an integer that orders floats: integer maxima vectorise, float ones do not."""
    bits = bits_of(x)
    return bits ^ ((bits >> 63) & MAGNITUDE)


@jit
def _first_maximum(values: Floats, first: int, stop: int) -> int:
    best = first
    for k in range(first, min(stop, len(values))):
        if values[k] > values[best]:
            best = k
    return best


@jit
def snapped(beta: float, lower: float, upper: float) -> float:
    """Return the bound if only roundings keep a coefficient off it: it must not pass for free."""
    margin = ROUNDINGS * (upper - lower)
    if abs(beta - upper) < margin:
        return upper
    return lower if abs(beta - lower) < margin else beta


@jit
def _lowest(down: Floats) -> float:
    lowest = math.inf
    for value in down:
        lowest = min(lowest, value)
    return lowest


@jit
def _move(up: Floats, down: Floats, row_i: Values, row_j: Values, step: float) -> int:
    """Update the slacks after a step along (i, j), and return the index of the highest one."""
    best_key, best = LOWEST, 0
    for first in range(0, len(up), BLOCK):
        stop = first + BLOCK
        u, d, a, b = up[first:stop], down[first:stop], row_i[first:stop], row_j[first:stop]
        key = LOWEST
        for k in range(len(u)):
            change = np.float64(a[k]) - np.float64(b[k])
            u[k] = fma(-step, change, u[k])
            d[k] = fma(-step, change, d[k])
            key = max(key, _order_key(u[k]))
        if key > best_key:
            best_key, best = key, first
    return _first_maximum(up, best, best + BLOCK)


@jit
def _partner(
    down: Floats, row: Values, diagonal: Floats, top: float, k_ii: float, gain: Floats
) -> tuple[int, float]:
    """Return the variable whose pair with i gains most, and the largest violation."""
    best_gain, best, worst = 0, 0, 0
    for first in range(0, len(down), BLOCK):
        stop = first + BLOCK
        d, a, e, g = down[first:stop], row[first:stop], diagonal[first:stop], gain[first:stop]
        block_gain, block_worst = 0, 0
        for k in range(len(d)):
            violation = top - d[k]
            violation = violation if violation > 0.0 else 0.0
            curvature = fma(-2.0, np.float64(a[k]), k_ii + e[k])
            curvature = curvature if curvature > FLAT else FLAT
            # A division would take most of the time of a step, for a mere choice.
            inverse = float_of(RECIPROCAL - bits_of(curvature))
            g[k] = violation * violation * (inverse * fma(-curvature, inverse, 2.0))
            # The bits of floats that are not negative are ordered like the floats.
            block_gain = max(block_gain, bits_of(g[k]))
            block_worst = max(block_worst, bits_of(violation))
        worst = max(worst, block_worst)
        if block_gain > best_gain:
            best_gain, best = block_gain, first
    return _first_maximum(gain, best, best + BLOCK), float_of(worst)


@jit
def _split(
    F: Floats, z: Floats, lower: Floats, upper: Floats, beta: Floats, up: Floats, down: Floats
) -> None:
    """Write the slack of each variable to `up` if it can grow and to `down` if it can shrink.

    The other entries are -inf and +inf, which no step changes and no maximum picks.
    """
    # Loops of few arrays each: more of them do not vectorise.
    for i in range(len(F)):
        up[i] = z[i] - F[i]
    for i in range(len(F)):
        down[i] = up[i] if beta[i] > lower[i] else math.inf
    for i in range(len(F)):
        up[i] = up[i] if beta[i] < upper[i] else -math.inf


@jit
def _join(F: Floats, z: Floats, up: Floats, down: Floats) -> None:
    """Undo `_split` after the solver's steps; vacant slots keep their F."""
    for i in range(len(F)):
        slack = up[i] if up[i] > -math.inf else down[i]
        F[i] = z[i] - slack if slack < math.inf else F[i]


@jit
def maximise(
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
        Kernel rows. Slots with lower = upper take no part, and their F is not kept up to date.
    z, lower, upper : ndarray of shape (n,)
        Linear term and bounds.
    beta, F : ndarray of shape (n,)
        Start, and the solution in place; F_i = sum_j beta_j k(x_i, x_j).
    tol : float
        Stop when no pair violates optimality by this much.
    max_steps : int
        Limit on pair steps.
    work : ndarray of shape (3, at least n)
        Scratch.

    Returns
    -------
    steps : int
    highest, lowest : float
        Largest slack that can grow and smallest that can shrink: the constant b lies between.
    """
    n = len(z)
    up, down, gain = work[0, :n], work[1, :n], work[2, :n]
    _split(F, z, lower, upper, beta, up, down)
    diagonal, values, row_of, known = rows.diagonal[:n], rows.values, rows.row_of, rows.known
    used, rings, tail = rows.used, rows.rings, rows.rings[TRAIN_TAIL]
    steps = 0
    i = _first_maximum(up, 0, n)
    while up[i] > -math.inf:
        place_i = row_of[i]
        if place_i < 0 or known[place_i, 0] < tail:
            place_i = fetch(rows, i, 1)
        j, violation = _partner(down, values[place_i, :n], diagonal, up[i], diagonal[i], gain)
        if violation < tol or steps == max_steps:
            break
        rings[CLOCK] += 1
        used[place_i] = rings[CLOCK]
        place_j = row_of[j]
        if place_j < 0 or known[place_j, 0] < tail:
            place_j = fetch(rows, j, 1)
        used[place_j] = rings[CLOCK]
        slack_i, slack_j = up[i], down[j]
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * values[place_i, j], FLAT)
        room_i, room_j = upper[i] - beta[i], beta[j] - lower[j]
        step = min((slack_i - slack_j) / curvature, room_i, room_j)
        beta[i] = snapped(beta[i] + step, lower[i], upper[i])
        beta[j] = snapped(beta[j] - step, lower[j], upper[j])
        up[i] = slack_i if beta[i] < upper[i] else -math.inf
        down[i] = slack_i
        up[j] = slack_j
        down[j] = slack_j if beta[j] > lower[j] else math.inf
        i = _move(up, down, values[place_i, :n], values[place_j, :n], step)
        steps += 1
    highest, lowest = up[i], _lowest(down)
    _join(F, z, up, down)
    return steps, highest, lowest


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
