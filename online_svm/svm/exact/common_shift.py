"""A common shift of many coefficients at once, taken where it gains more than the best pair.

What a new example takes on, all free variables together must give up: where the kernel is narrow,
each of them a little. Pair by pair that is a long way; along d = e_c - (1/m) sum of e_k over the
m *members* it is one step, whose row of the kernel matrix, K_c minus the mean row of the members,
costs no more than a pair's, because the mean row is kept. The members are the variables that were
well inside their bounds when the solver began.
"""

from typing import NamedTuple

from online_svm.compiled.jit import inner
from online_svm.types import Floats

FLAT = 1e-12  # least curvature of a direction, as in LIBSVM: equal points have none


class Shift(NamedTuple):
    """The members of one programme.

    Attributes
    ----------
    members : ndarray of shape (n,)
        1.0 for a member, else 0.0.
    row : ndarray of shape (n,)
        Mean kernel row of the members.
    before : ndarray of shape (n,)
        A copy of the coefficients that takes part in common shifts, and in nothing else.
    moved : ndarray of shape (1,)
        What all members were shifted by so far.
    size : float
        m; 0 switches common shifts off, and the arrays may be empty.
    spread : float
        Mean of `row` over the members.
    """

    members: Floats
    row: Floats
    before: Floats
    moved: Floats
    size: float
    spread: float


@inner
def _is_free_to_move(
    members: Floats, beta: Floats, lower: Floats, upper: Floats, each: float
) -> bool:
    """Tell whether every member is inside its bounds, and stays there when shifted."""
    blocked = 0
    for k in range(len(members)):
        low, high = min(beta[k], beta[k] + each), max(beta[k], beta[k] + each)
        inside = (low > lower[k]) & (high < upper[k])
        blocked += 0 if inside else int(members[k])
    return blocked == 0


@inner
def common_step(
    shift: Shift,
    pair: tuple[int, int],
    slacks: tuple[float, float],
    mean: float,
    pair_gain: float,
    diagonal: Floats,
    beta: Floats,
    lower: Floats,
    upper: Floats,
) -> tuple[int, float]:
    """Return the variable c and its signed step against all members; -1 if the pair is better.

    Parameters
    ----------
    shift : Shift
    pair, slacks : tuple
        The pair (i, j) chosen, where i can grow and j can shrink, and their slacks.
    mean : float
        Mean slack of the members.
    pair_gain : float
        Squared violation of the pair over its curvature.
    diagonal, beta, lower, upper : ndarray of shape (n,)
    """
    # 1. Slack of i and of j against the mean slack of the members, and the curvatures.
    i, j = pair
    rise, fall = slacks[0] - mean, mean - slacks[1]
    curvature_i = max(diagonal[i] - 2.0 * shift.row[i] + shift.spread, FLAT)
    curvature_j = max(diagonal[j] - 2.0 * shift.row[j] + shift.spread, FLAT)
    # 2. Gain of either direction; the pair stays unless one gains more.
    gain_i = rise * rise / curvature_i if rise > 0.0 else 0.0
    gain_j = fall * fall / curvature_j if fall > 0.0 else 0.0
    if max(gain_i, gain_j) <= pair_gain:
        return -1, 0.0
    # 3. Step of the better one, clipped to the bounds of i or j.
    if gain_i >= gain_j:
        c, step = i, min(rise / curvature_i, upper[i] - beta[i])
    else:
        c, step = j, -min(fall / curvature_j, beta[j] - lower[j])
    # 4. Not where a member would meet its bound.
    if not _is_free_to_move(shift.members, beta, lower, upper, -step / shift.size):
        return -1, 0.0
    return c, step


@inner
def shift_members(shift: Shift, beta: Floats, each: float) -> None:
    """Shift all members, in `beta` and in `before` by the same rounded operations."""
    members, before = shift.members, shift.before
    for k in range(len(members)):
        beta[k] += each * members[k]
        before[k] += each * members[k]
    shift.moved[0] += each
