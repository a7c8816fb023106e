"""The solution path of a support vector machine along the weights of its two classes.

Machine j of m punishes an error on a positive example z_j times its penalty, and on a negative one
z'_j times. Its surface is where the posterior probability is z'_j / (z_j + z'_j), under the prior
odds r that the penalties imply (Nalbantov & Ivanov, eqs. 9-12, read the right way round: more
weight on the positives moves the surface to where they are rarer).

The optimum is piecewise linear in z, since the bounds are linear in it: each machine starts on
the line through its two predecessors, over one set of kernel rows.
"""

from typing import Literal

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.svm.exact.batch_solver import advance, sum_rows
from online_svm.svm.exact.kernel_cache import Rows
from online_svm.svm.exact.smo import Programme
from online_svm.types import Bools, Floats

Weighting = Literal["balanced", "prior"]


def class_weights(n_models: int, odds: float, weighting: Weighting) -> tuple[Floats, Floats]:
    """Return z and z', each of shape (n_models,), for evenly spaced posteriors P = j/(m + 1).

    Parameters
    ----------
    n_models : int
        m.
    odds : float
        r = C+ n+ / (C- n-): ratio of the effective numbers of examples.
    weighting : {"balanced", "prior"}
        "prior" holds the effective number of examples, z r + z', fixed: z = P(1+r)/(2(1-(1-r)P))
        and z' = 1/2 + (1/2 - z) r. "balanced" is that formula at r = 1, z = P and z' = 1 - P,
        whatever r is (the authors' advice when C+ = C-).

    Examples
    --------
    >>> class_weights(3, 0.5, "balanced")
    (array([0.25, 0.5 , 0.75]), array([0.75, 0.5 , 0.25]))
    >>> positive, negative = class_weights(3, 0.5, "prior")
    >>> positive * 0.5 + negative, negative / (positive + negative)
    (array([0.75, 0.75, 0.75]), array([0.75, 0.5 , 0.25]))
    """
    P = np.arange(1, n_models + 1) / (n_models + 1)
    rest = np.arange(n_models, 0, -1) / (n_models + 1)  # 1 - P, with the same roundings mirrored
    if weighting == "balanced":
        return P, rest
    scale = (1.0 + odds) / (2.0 * (rest + odds * P))
    return P * scale, rest * scale


@jit
def _extrapolate(before: Floats, last: Floats, lower: Floats, upper: Floats, out: Floats) -> None:
    """Write 2 last - before, cut to the bounds."""
    for i in range(len(out)):
        out[i] = min(max(2.0 * last[i] - before[i], lower[i]), upper[i])


@jit
def _follow_bounds(
    last: Floats,
    last_lower: Floats,
    last_upper: Floats,
    lower: Floats,
    upper: Floats,
    out: Floats,
) -> None:
    """Keep at its bound what was at a bound, however the line was rounded."""
    for i in range(len(out)):
        if last[i] == last_upper[i]:
            out[i] = upper[i]
        elif last[i] == last_lower[i]:
            out[i] = lower[i]


@jit
def _balance(beta: Floats, lower: Floats, upper: Floats) -> None:
    """Make the coefficients sum to zero again, by those between their bounds where possible."""
    # 1. By how much the sum is off.
    excess = 0.0
    for value in beta:
        excess += value
    # 2. First the free coefficients, then all, move towards a bound until it is not.
    for only_free in (True, False):
        for i in range(len(beta)):
            if excess == 0.0:
                return
            if only_free and not lower[i] < beta[i] < upper[i]:
                continue
            end = lower[i] if excess > 0.0 else upper[i]
            room = beta[i] - end
            if abs(room) <= abs(excess):
                beta[i] = end
                excess -= room
            else:
                beta[i] -= excess
                excess = 0.0


@jit
def follow_path(
    rows: Rows,
    positive: Bools,
    penalties: Floats,
    z_positive: Floats,
    z_negative: Floats,
    tol: float,
    max_steps: int,
) -> tuple[Floats, Floats, int]:
    """Solve every machine of a bank, each from its predecessors.

    Parameters
    ----------
    rows : Rows
        See `fixed_rows`.
    positive : ndarray of bool, shape (n,)
    penalties : ndarray of shape (n,)
        Bound of each example's multiplier at z = 1.
    z_positive, z_negative : ndarray of shape (m,)
        See `class_weights`.
    tol : float
    max_steps : int
        Limit on the pair steps of one machine.

    Returns
    -------
    betas, Fs : ndarray of shape (m, n)
        The solutions.
    most : int
        Pair steps of the machine that took the most.
    """
    n, most = len(positive), 0
    betas, Fs = np.zeros((len(z_positive), n)), np.zeros((len(z_positive), n))
    bounds = np.zeros((2, 2, n))  # of the present machine and of the last: lower and upper
    label = np.empty(n)
    for i in range(n):
        label[i] = 1.0 if positive[i] else -1.0
    work = np.empty((3, n))
    for j in range(len(z_positive)):
        # 1. The bounds of machine j: z C and z' C.
        lower, upper = bounds[j % 2]
        for i in range(n):
            lower[i] = 0.0 if positive[i] else -z_negative[j] * penalties[i]
            upper[i] = z_positive[j] * penalties[i] if positive[i] else 0.0
        # 2. Start from the last two solutions, extrapolated, at the new bounds and of sum zero.
        beta, F = betas[j], Fs[j]
        beta[:] = 0.0
        if j > 0:
            last_lower, last_upper = bounds[1 - j % 2]
            _extrapolate(betas[max(j - 2, 0)], betas[j - 1], lower, upper, beta)
            _follow_bounds(betas[j - 1], last_lower, last_upper, lower, upper, beta)
            _balance(beta, lower, upper)
        # 3. F of that start.
        sum_rows(rows, beta, F)
        # 4. SMO and Newton steps to the optimum.
        steps, done = 0, False
        while not done and steps < max_steps:
            problem = Programme(label, lower, upper, beta, F)
            taken, done = advance(rows, problem, tol, max_steps - steps, work)
            steps += taken
        most = max(most, steps)
    return betas, Fs, most
