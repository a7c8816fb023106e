"""SMO over the active variables of one machine: working set selection and pair update.

All arrays fit a near cache. The steps are those of `smo`: the variable with the largest slack that
can grow, and the partner with which it gains most (Fan, Chen and Lin 2005). Slacks are taken
relative to the constant b, in the precision of the kernel values; what a round does to F of all
points is worked out afterwards from the change of the coefficients, in float64, so the roundings
here are corrected by the next round and leave no trace.
"""

import math
from typing import NamedTuple

import numpy as np

from online_svm.compiled.jit import inner
from online_svm.compiled.packed_search import (
    curvature_of,
    gaining,
    larger,
    lowest_key,
    moved,
    pattern,
    place_of,
    rising,
    violation_of,
)
from online_svm.svm.exact.common_shift import FLAT
from online_svm.svm.exact.smo import snapped
from online_svm.types import Floats, Values


class Part(NamedTuple):
    """The programme over n active variables; a place that is vacant can neither grow nor shrink.

    Attributes
    ----------
    lower, upper, beta : ndarray of shape (n,)
        Bounds and coefficients.
    up, down : ndarray of shape (n,)
        Slack less b, for growing and for shrinking; -inf and +inf where that cannot be.
    diagonal : ndarray of shape (n,)
    """

    lower: Floats
    upper: Floats
    beta: Floats
    up: Values
    down: Values
    diagonal: Values


@inner
def _highest(up: Values) -> int:
    """Return the place of the largest slack of those that can grow."""
    key = lowest_key(up[0])
    for k in range(len(up)):
        key = larger(key, rising(up[k], k))
    return place_of(key)


@inner
def _partner(
    down: Values, row: Values, diagonal: Values, i: int, top: float, tol: float, least: float
) -> int:
    """Return the place of the partner with which i gains most; -1 if none is worth `tol`."""
    own, limit = diagonal[i], pattern(tol)
    key = most = lowest_key(top)
    for k in range(len(down)):
        violation = violation_of(top, down[k])
        curvature = curvature_of(row[k], own, diagonal[k], least)
        key = larger(key, gaining(violation, curvature, k))
        most = larger(most, pattern(violation))
    return place_of(key) if most >= limit else -1


@inner
def _move(up: Values, down: Values, row_i: Values, row_j: Values, step: float) -> int:
    """Update the slacks after a step along (i, j), and return the place of the highest one."""
    key = lowest_key(up[0])
    for k in range(len(up)):
        up[k] = moved(step, row_i[k], row_j[k], up[k])
        down[k] = moved(step, row_i[k], row_j[k], down[k])
        key = larger(key, rising(up[k], k))
    return place_of(key)


@inner
def _change(part: Part, a: int, step: float, slack: float) -> None:
    """Change one coefficient, and note to which sides it can still move."""
    beta = snapped(part.beta[a] + step, part.lower[a], part.upper[a])
    part.beta[a] = beta
    part.up[a] = slack if beta < part.upper[a] else -math.inf
    part.down[a] = slack if beta > part.lower[a] else math.inf


@inner
def settle(K: Values, part: Part, typed: Values, tol: float, max_steps: int) -> int:
    """Take pair steps until no pair violates optimality by `tol`, and return their number.

    Parameters
    ----------
    K : ndarray of shape (n, at least n)
        Kernel values of the active variables.
    part : Part
        Moved in place.
    typed : ndarray of shape (3,)
        Scratch of the type of the kernel values.
    tol : float
    max_steps : int
    """
    up, down, diagonal, beta, n = part.up, part.down, part.diagonal, part.beta, len(part.up)
    typed[0], typed[1] = tol, FLAT
    # 1. i: the largest slack of those that can grow.
    i, steps = _highest(up), 0
    while up[i] > -math.inf and steps < max_steps:
        # 2. j: the partner of the largest second-order gain; stop if no pair violates optimality.
        j = _partner(down, K[i, :n], diagonal, i, up[i], typed[0], typed[1])
        if j < 0:
            break
        # 3. The unconstrained maximum along the pair, clipped to the box.
        slack, other = up[i], down[j]
        curvature = max(
            np.float64(diagonal[i]) + np.float64(diagonal[j]) - 2.0 * np.float64(K[i, j]), FLAT
        )
        gain = (np.float64(slack) - np.float64(other)) / curvature
        step = min(gain, part.upper[i] - beta[i], beta[j] - part.lower[j])
        typed[2] = step
        # 4. The two coefficients.
        _change(part, i, step, slack)
        _change(part, j, -step, other)
        # 5. All slacks, and the next i.
        i = _move(up, down, K[i, :n], K[j, :n], typed[2])
        steps += 1
    return steps
