"""Wealth of bets that a bounded quantity keeps a mean near zero, whenever it may begin not to.

The null is |E[e_t | past]| <= d_t, for each t, with a tolerance d_t that is known before e_t. A bet
of size l > 0 that e is larger multiplies a stake by 1 + l (e_t - d_t), a bet that it is smaller by
1 - l (e_t + d_t). Under the null neither grows on average, whatever the dependence between the
examples (Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by betting").

Nobody knows the size of the deviation or where it begins. So the stake is spread beforehand: over
both directions, over `BETS`, and over the example at which a bet begins. The wealth is the sum of
all stakes, those that wait included. It is a nonnegative supermartingale that begins at 1, so that
it ever reaches 1 / level with probability at most `level` (Ville's inequality). Half
of the stake is on the first 2,047 examples, alike; then 1 / ((g + 1) (g + 2)) of it on each g-th
group, which is as long as all before it together. So a deviation that begins at example t has to
earn about ln(t) more than one of which it is known when it begins.
"""

import math

import numpy as np

from online_svm.compiled.jit import inner, jit
from online_svm.types import Floats, Ints

BETS = np.array([0.12, 0.3, 0.6, 0.95])
"""Sizes of the bets, each over 1 + d_t: below 1, so that every factor is positive."""

FIRST_GROUP = 2048
"""Where the second group of starts begins: a feed that just began has little to deviate from."""

MOST = 1e200  # wealth is cut here: it remains a supermartingale, and cannot overflow


@inner
def share_of_start(t: int) -> float:
    """Return the share of the stake on bets that begin with example t = 1, 2, ..."""
    if t < FIRST_GROUP:
        return 0.5 / (FIRST_GROUP - 1)
    group, first = 1, FIRST_GROUP
    while 2 * first <= t:
        first *= 2
        group += 1
    return 1.0 / ((group + 1) * (group + 2) * first)


@inner
def bet_on(value: float, tolerance: float, each: float, stakes: Floats) -> float:
    """Advance the stakes of one process, shape (2, n_bets), by one value; return their sum.

    `each` is the stake with which a bet of each direction and size begins at this value.
    """
    scale = 1.0 / (1.0 + tolerance)
    above, below = scale * (value - tolerance), scale * (value + tolerance)
    total = 0.0
    for k in range(len(BETS)):
        up = (stakes[0, k] + each) * (1.0 + BETS[k] * above)
        down = (stakes[1, k] + each) * (1.0 - BETS[k] * below)
        stakes[0, k], stakes[1, k] = up, down
        total += up + down
    if total > MOST:
        for k in range(len(BETS)):
            stakes[0, k], stakes[1, k] = min(stakes[0, k], MOST), min(stakes[1, k], MOST)
    return total


@jit
def bet_until(
    values: Floats,
    begin: int,
    doubts: Floats,
    tolerances: Floats,
    limits: Floats,
    stakes: Floats,
    waiting: Floats,
    ages: Ints,
    wealth: Floats,
) -> tuple[int, bool]:
    """Advance processes by rows from `begin` on, up to the first at which one reaches its limit.

    Parameters
    ----------
    values : ndarray of shape (m, n_processes)
        Each in [-1, 1]; NaN counts as 0: a row that the process is not about.
    doubts : ndarray of shape (m,)
        Of a value y - p, with y either 0 or 1, the tolerance is at least sqrt(doubt * p (1 - p)).
        That is known when p is.
    tolerances, limits : ndarray of shape (n_processes,)
    stakes : ndarray of shape (n_processes, 2, n_bets)
    waiting, ages, wealth : ndarray of shape (n_processes,)
        Stake not yet begun, rows seen (less than 0 while the process rests), and the sum of all
        stakes; changed in place, as `stakes`.

    Returns
    -------
    int
        The row after the last one used.
    bool
        Whether a process reached its limit at it.
    """
    shares = np.empty(len(ages))
    for j in range(len(ages)):
        shares[j] = share_of_start(max(ages[j], 0) + 1)
    for i in range(begin, len(values)):
        is_reached = False
        for j in range(values.shape[1]):
            ages[j] += 1
            if ages[j] <= 0:  # it rests
                continue
            if ages[j] & (ages[j] - 1) == 0:  # the share changes at powers of two alone
                shares[j] = share_of_start(ages[j])
            waiting[j] -= shares[j]
            value = 0.0 if np.isnan(values[i, j]) else values[i, j]
            spread = abs(value) * (1.0 - abs(value))  # p (1 - p), whether y is 0 or 1
            tolerance = max(tolerances[j], math.sqrt(doubts[i] * spread))
            each = shares[j] / (2 * len(BETS))
            wealth[j] = max(waiting[j], 0.0) + bet_on(value, tolerance, each, stakes[j])
            is_reached |= wealth[j] >= limits[j]
        if is_reached:
            return i + 1, True
    return len(values), False
