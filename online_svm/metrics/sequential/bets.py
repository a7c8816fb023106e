"""Wealth of bets that a bounded quantity keeps a mean near zero, whenever it may begin not to.

The null is |E[e_t | past]| <= tolerance, for each t. A bet of size l > 0 that e is larger
multiplies a stake by 1 + l (e_t - tolerance), a bet that it is smaller by 1 - l (e_t + tolerance).
Under the null neither grows on average, whatever the dependence between the examples (Waudby-Smith
& Ramdas 2024, "Estimating means of bounded random variables by betting").

Nobody knows the size of the deviation or where it begins. So the stake is spread beforehand: over
both directions, over `BETS`, and over the example at which a bet begins. The wealth is the sum of
all stakes, those that wait included. It is a nonnegative supermartingale that begins at 1, so that
it ever reaches 1 / level with probability at most `level` (Ville's inequality). Each of a group of
2^k examples, from the 2^k-th on, has the share 1 / ((k + 1) (k + 2) 2^k) of the stake: a deviation
that begins late has to earn some ln(t) + 2 ln(ln(t)) more than one that begins at once.
"""

import numpy as np

from online_svm.compiled.jit import inner, jit
from online_svm.types import Floats, Ints

BETS = np.array([0.12, 0.3, 0.6, 0.95])
"""Sizes of the bets, each over 1 + tolerance: below 1, so that every factor is positive."""

MOST = 1e200  # wealth is cut here: it remains a supermartingale, and cannot overflow


@inner
def share_of_start(t: int) -> float:
    """Return the share of the stake on bets that begin with example t = 1, 2, ..."""
    group, first = 0, 1
    while 2 * first <= t:
        first *= 2
        group += 1
    return 1.0 / ((group + 1) * (group + 2) * first)


@inner
def bet_on(value: float, tolerance: float, start: float, sizes: Floats, stakes: Floats) -> float:
    """Advance the stakes of one process, shape (2, n_bets), by one value; return their sum.

    `start` is the stake with which bets begin at this value.
    """
    each = start / (2 * len(sizes))
    total = 0.0
    for k in range(len(sizes)):
        up = (stakes[0, k] + each) * (1.0 + sizes[k] * (value - tolerance))
        down = (stakes[1, k] + each) * (1.0 - sizes[k] * (value + tolerance))
        stakes[0, k], stakes[1, k] = min(up, MOST), min(down, MOST)
        total += stakes[0, k] + stakes[1, k]
    return total


@jit
def bet_until(
    values: Floats,
    begin: int,
    tolerances: Floats,
    limits: Floats,
    sizes: Floats,
    stakes: Floats,
    waiting: Floats,
    ages: Ints,
    wealth: Floats,
) -> int:
    """Advance processes by rows from `begin` on, up to the first at which one reaches its limit.

    Parameters
    ----------
    values : ndarray of shape (m, n_processes)
        Each in [-1, 1].
    tolerances, limits : ndarray of shape (n_processes,)
    sizes : ndarray of shape (n_bets,)
    stakes : ndarray of shape (n_processes, 2, n_bets)
    waiting, ages, wealth : ndarray of shape (n_processes,)
        Stake not yet begun, rows seen, and the sum of all stakes; changed in place, as `stakes`.

    Returns
    -------
    int
        The row after the last one used.
    """
    for i in range(begin, len(values)):
        is_reached = False
        for j in range(values.shape[1]):
            ages[j] += 1
            start = share_of_start(ages[j])
            waiting[j] -= start
            begun = bet_on(values[i, j], tolerances[j], start, sizes, stakes[j])
            wealth[j] = max(waiting[j], 0.0) + begun
            is_reached |= wealth[j] >= limits[j]
        if is_reached:
            return i + 1
    return len(values)
