"""Sequential minimal optimisation (SMO): working set selection and pair update on cached rows.

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
from typing import NamedTuple

import numpy as np

from online_svm.compiled.intrinsics import bits_of, float_of, fma
from online_svm.compiled.jit import inner, jit
from online_svm.compiled.ordered_sums import LANES, dot, sum_of_lanes
from online_svm.svm.exact.common_shift import FLAT, Shift, common_step, shift_members
from online_svm.svm.exact.kernel_cache import CLOCK, TRAIN_TAIL, Rows, fetch
from online_svm.types import Floats, Ints, Values

BLOCK = 64  # an arg-max first finds its block, by a reduction that vectorises, then looks inside
MAGNITUDE = 0x7FFFFFFFFFFFFFFF
LOWEST = -0x7FFFFFFFFFFFFFFF - 1
ROUNDINGS = 1e-13  # of the width of a variable's bounds: some hundred roundings
RECIPROCAL = 0x7FDE6238502484BA  # minus the bits of x, it is 1/x to an eighth (as in the fast
# inverse square root); one Newton step then gives two digits, enough to choose a partner by


class Programme(NamedTuple):
    """One programme over n variables, and where it stands; see `maximise` for the arrays."""

    z: Floats
    lower: Floats
    upper: Floats
    beta: Floats
    F: Floats


class Slacks(NamedTuple):
    """The slack of each variable, once for growing and once for shrinking.

    A variable that cannot grow has -inf in `up`, one that cannot shrink +inf in `down`: no step
    changes that, and no maximum picks it. `gain` is scratch.
    """

    up: Floats
    down: Floats
    gain: Floats


@inner
def _order_key(x: float) -> int:
    """Return an integer that orders floats: integer maxima vectorise, float ones do not."""
    bits = bits_of(x)
    return bits ^ ((bits >> 63) & MAGNITUDE)


@inner
def _first_maximum(values: Floats, first: int, stop: int) -> int:
    best = first
    for k in range(first, min(stop, len(values))):
        if values[k] > values[best]:
            best = k
    return best


@inner
def snapped(beta: float, lower: float, upper: float) -> float:
    """Return the bound if only roundings keep a coefficient off it: it must not pass for free."""
    margin = ROUNDINGS * (upper - lower)
    if abs(beta - upper) < margin:
        return upper
    return lower if abs(beta - lower) < margin else beta


@inner
def highest_index(up: Floats) -> int:
    """Return the index of the largest of the slacks of those that can grow."""
    best_key, best = LOWEST, 0
    for first in range(0, len(up), BLOCK):
        block, key = up[first : first + BLOCK], LOWEST
        for k in range(len(block)):
            key = max(key, _order_key(block[k]))
        if key > best_key:
            best_key, best = key, first
    return _first_maximum(up, best, best + BLOCK)


@inner
def lowest_slack(down: Floats) -> float:
    """Return the least of the slacks of those that can shrink."""
    lowest = MAGNITUDE
    for k in range(len(down)):
        lowest = min(lowest, _order_key(down[k]))
    return float_of(lowest ^ ((lowest >> 63) & MAGNITUDE))  # the key's own inverse


@inner
def move_slacks(up: Floats, down: Floats, row_i: Values, row_j: Values, step: float) -> int:
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


@inner
def choose_partner(
    down: Floats, row: Values, diagonal: Floats, top: float, k_ii: float, gain: Floats
) -> tuple[int, float]:
    """Return the variable whose pair with i gains most, and the largest violation."""
    best_gain, best, worst = 0, 0, 0
    for first in range(0, len(down), BLOCK):
        stop = first + BLOCK
        d, a, e, g = down[first:stop], row[first:stop], diagonal[first:stop], gain[first:stop]
        block_gain, block_worst = 0, 0
        for k in range(len(d)):
            # 1. Violation of the pair (i, k): 0 if it violates nothing.
            violation = top - d[k]
            violation = violation if violation > 0.0 else 0.0
            # 2. Its curvature k_ii + k_kk - 2 k_ik.
            curvature = fma(-2.0, np.float64(a[k]), k_ii + e[k])
            curvature = curvature if curvature > FLAT else FLAT
            # 3. Gain: violation^2 / curvature.
            # A division would take most of the time of a step, for a mere choice.
            inverse = float_of(RECIPROCAL - bits_of(curvature))
            g[k] = violation * violation * (inverse * fma(-curvature, inverse, 2.0))
            # 4. The largest of the block.
            # The bits of floats that are not negative are ordered like the floats.
            block_gain = max(block_gain, bits_of(g[k]))
            block_worst = max(block_worst, bits_of(violation))
        # 5. The block that has the largest of all.
        worst = max(worst, block_worst)
        if block_gain > best_gain:
            best_gain, best = block_gain, first
    return _first_maximum(gain, best, best + BLOCK), float_of(worst)


@inner
def _split(problem: Programme, slacks: Slacks) -> None:
    """Work out the slack of each variable, once for growing and once for shrinking."""
    z, lower, upper, beta, F = problem
    up, down, _ = slacks
    # Loops of few arrays each: more of them do not vectorise.
    for i in range(len(F)):
        up[i] = z[i] - F[i]
    for i in range(len(F)):
        down[i] = up[i] if beta[i] > lower[i] else math.inf
    for i in range(len(F)):
        up[i] = up[i] if beta[i] < upper[i] else -math.inf


@inner
def _join(problem: Programme, slacks: Slacks) -> None:
    """Undo `_split` after the solver's steps; vacant slots keep their F."""
    z, F = problem.z, problem.F
    up, down, _ = slacks
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
        Limit on steps.
    work : ndarray of shape (3, at least n)
        Scratch.

    Returns
    -------
    steps : int
    highest, lowest : float
        Largest slack that can grow and smallest that can shrink: the constant b lies between.
    """
    # A shift of size 0 is none.
    nobody = np.empty(0)
    shift = Shift(nobody, nobody, nobody, nobody, 0.0, 0.0)
    problem = Programme(z, lower, upper, beta, F)
    return maximise_with(shift, rows, problem, tol, max_steps, work)


@inner
def maximise_with(
    shift: Shift, rows: Rows, problem: Programme, tol: float, max_steps: int, work: Floats
) -> tuple[int, float, float]:
    """Do what `maximise` does, with common shifts of `shift`'s members where they gain more."""
    # The gradient of the dual is the slack z - F; it is kept up to date instead of F.
    n = len(problem.z)
    slacks = Slacks(work[0, :n], work[1, :n], work[2, :n])
    up, down, gain = slacks
    mean = _mean_slack(shift, problem, gain)
    _split(problem, slacks)
    diagonal, values, row_of, known = rows.diagonal[:n], rows.values, rows.row_of, rows.known
    used, rings = rows.used, rows.rings
    # 1. i: the largest slack of those that can grow.
    i, steps = highest_index(up), 0
    while up[i] > -math.inf:
        # 2. Its kernel row, from the cache if it is complete there.
        place_i = _place(row_of, known, used, rings, i)
        if place_i < 0:
            place_i = fetch(rows, i, 1)
        row_i = values[place_i, :n]
        # 3. j: the partner of the largest second-order gain; stop if no pair violates optimality.
        j, violation = choose_partner(down, row_i, diagonal, up[i], diagonal[i], gain)
        if violation < tol or steps == max_steps:
            break
        # 4. The row of j.
        place_j = _place(row_of, known, used, rings, j)
        if place_j < 0:
            place_j = fetch(rows, j, 1)
        row_j = values[place_j, :n]
        # 5. The step, clipped to the box, and the slacks after it; the next i comes with them.
        i, mean = _take_step(shift, problem, slacks, diagonal, (i, j), row_i, row_j, mean)
        steps += 1
    # 6. F of all variables from the slacks.
    highest, lowest = up[i], lowest_slack(down)
    _join(problem, slacks)
    return steps, highest, lowest


@inner
def _take_step(
    shift: Shift,
    problem: Programme,
    slacks: Slacks,
    diagonal: Floats,
    pair: tuple[int, int],
    row_i: Values,
    row_j: Values,
    mean: float,
) -> tuple[int, float]:
    """Step along the pair, or shift the members against one of it; return the next i and mean."""
    lower, upper, beta = problem.lower, problem.upper, problem.beta
    up, down, _ = slacks
    i, j = pair
    slack_i, slack_j = up[i], down[j]
    curvature = max(diagonal[i] + diagonal[j] - 2.0 * row_i[j], FLAT)
    # 1. Where the common shift gains more than the pair, take it instead.
    if shift.size > 0.0:
        pair_gain = (slack_i - slack_j) * (slack_i - slack_j) / curvature
        c, step = common_step(
            shift, pair, (slack_i, slack_j), mean, pair_gain, diagonal, beta, lower, upper
        )
        if c >= 0:
            shift_members(shift, beta, -step / shift.size)
            _change(problem, slacks, c, step, slack_i if c == i else slack_j)
            mean -= step * (shift.row[c] - shift.spread)
            return move_slacks(up, down, row_i if c == i else row_j, shift.row, step), mean
    # 2. Otherwise the unconstrained maximum along the pair, clipped to the box.
    step = min((slack_i - slack_j) / curvature, upper[i] - beta[i], beta[j] - lower[j])
    # 3. The two coefficients, and to which sides they can still move.
    _change(problem, slacks, i, step, slack_i)
    _change(problem, slacks, j, -step, slack_j)
    if shift.size > 0.0:
        mean -= step * (shift.row[i] - shift.row[j])
    # 4. The slacks of all variables.
    return move_slacks(up, down, row_i, row_j, step), mean


@inner
def _change(problem: Programme, slacks: Slacks, k: int, step: float, slack: float) -> None:
    """Change one coefficient, and note to which sides it can still move."""
    lower, upper, beta = problem.lower, problem.upper, problem.beta
    beta[k] = snapped(beta[k] + step, lower[k], upper[k])
    slacks.up[k] = slack if beta[k] < upper[k] else -math.inf
    slacks.down[k] = slack if beta[k] > lower[k] else math.inf


@inner
def _mean_slack(shift: Shift, problem: Programme, scratch: Floats) -> float:
    """Return the mean slack of the members."""
    if shift.size == 0.0:
        return 0.0
    z, F = problem.z, problem.F
    for k in range(len(z)):
        scratch[k] = z[k] - F[k]
    return dot(scratch, shift.members) / shift.size


@inner
def _place(row_of: Ints, known: Ints, used: Ints, rings: Ints, slot: int) -> int:
    """Return where the row of a training slot is cached; -1 unless it is there and complete."""
    place = int(row_of[slot])
    if place < 0 or known[place, 0] < rings[TRAIN_TAIL]:
        return -1
    rings[CLOCK] += 1
    used[place] = rings[CLOCK]
    return place


@jit
def intercept(up: Floats, down: Floats, highest: float, lowest: float) -> float:
    """Return b as LIBSVM does: the mean slack of the free variables, else the midpoint.

    Parameters
    ----------
    up, down : ndarray of shape (n,)
        Slacks, -inf and +inf where a variable cannot grow and shrink: it is free if it can do both.
    highest, lowest : float
        The largest of the first and the least of the second.
    """
    # 1. The mean over the free variables, added in a fixed order.
    lanes, count = np.zeros(LANES), 0
    for first in range(0, len(up), LANES):
        u, d = up[first : first + LANES], down[first : first + LANES]
        for k in range(len(u)):
            is_free = (u[k] > -math.inf) & (d[k] < math.inf)
            lanes[k] += u[k] if is_free else 0.0
            count += is_free
    if count:
        return sum_of_lanes(lanes) / count
    # 2. Without any: the midpoint of what the bounded ones allow, or its finite end.
    if math.isinf(highest):
        return lowest
    return highest if math.isinf(lowest) else 0.5 * (highest + lowest)
