"""Dual coordinate ascent of a linear support vector machine (Hsieh et al. 2008)."""

import numpy as np

from online_svm.compiled.intrinsics import fma
from online_svm.compiled.jit import jit
from online_svm.compiled.ordered_sums import LANES, add_to_lanes, sum_of_lanes
from online_svm.types import Floats


@jit
def _inner(u: Floats, v: Floats, lanes: Floats) -> float:
    lanes[:] = 0.0
    add_to_lanes(u, v, lanes)
    return sum_of_lanes(lanes)


@jit
def _step(
    x: Floats,
    y: float,
    upper: float,
    square: float,
    alpha: Floats,
    i: int,
    w: Floats,
    lanes: Floats,
) -> float:
    """Bring alpha[i] to its optimum, all else fixed, and return how far it was from optimality."""
    # 1. Gradient of the dual by alpha_i.
    gradient = 1.0 - y * _inner(x, w, lanes)
    # 2. Newton step of one variable, clipped to the box.
    old = alpha[i]
    new = min(max(old + gradient / square, 0.0), upper)
    if new == old:  # at its bound, or optimal
        return 0.0
    alpha[i] = new
    # 3. The weights after it.
    change = (new - old) * y
    for k in range(len(w)):
        w[k] = fma(change, x[k], w[k])
    return abs(gradient)


@jit
def ascend(
    X: Floats,
    y: Floats,
    upper: Floats,
    alpha: Floats,
    w: Floats,
    rounds: int,
    sweeps: int,
    tol: float,
) -> int:
    """Move `alpha` and `w` = r + sum alpha_i y_i x_i, in place, towards the optimum.

    A round goes through all points, in order, and then at most `sweeps` times through those that it
    moved: the rest are at a bound, where most stay.

    Parameters
    ----------
    X : ndarray of shape (n, m)
    y : ndarray of shape (n,)
        +1 or -1.
    upper : ndarray of shape (n,)
        Bounds on the multipliers.
    alpha : ndarray of shape (n,)
    w : ndarray of shape (m,)
    rounds, sweeps : int
    tol : float
        A round, or the sweeps of one, end where no gradient is larger.

    Returns
    -------
    int
        Rounds taken.
    """
    # 1. The diagonal of the dual: |x_i|^2.
    n = len(X)
    squares, moved, lanes = np.empty(n), np.empty(n, np.int64), np.empty(LANES)
    for i in range(n):
        squares[i] = _inner(X[i], X[i], lanes)
    for taken in range(rounds):
        # 2. One pass over all points; note those that move.
        worst, count = 0.0, 0
        for i in range(n):
            violation = _step(X[i], y[i], upper[i], squares[i], alpha, i, w, lanes)
            worst = max(worst, violation)
            if violation > 0.0:
                moved[count] = i
                count += 1
        # 3. Stop when no gradient is above the tolerance.
        if worst < tol:
            return taken + 1
        # 4. Further passes over those that moved (shrinking).
        for _ in range(sweeps):
            worst = 0.0
            for j in range(count):
                i = moved[j]
                worst = max(worst, _step(X[i], y[i], upper[i], squares[i], alpha, i, w, lanes))
            if worst < tol:
                break
    return rounds
