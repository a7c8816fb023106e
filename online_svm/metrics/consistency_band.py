"""Consistency band: the frequencies of an event that chance allows if its probability is right.

The band of a group of n examples with mean probability p holds the middle `level` of the binomial
distribution of n and p, as quantiles over n: no random draws. Where the probabilities in the group
differ, their count varies less than the binomial says (Hoeffding 1956), so the band is then a
little wide.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from online_svm.compiled.jit import jit
from online_svm.errors import InvalidInput
from online_svm.types import Floats

NEGLIGIBLE = 1e-20
"""Weights below this part of that of the mode change no sum."""


def consistency_band(counts: ArrayLike, probabilities: ArrayLike, level: float = 0.9) -> Floats:
    """Return the lower and upper end of the band of each group, shape (n_groups, 2).

    Parameters
    ----------
    counts : array-like of int of shape (n_groups,)
        Examples of each group, at least one.
    probabilities : array-like of shape (n_groups,)
        Mean probability of each.
    level : float, default=0.9
        A right probability leaves the band at most so rarely: (1 - level) / 2 on either side.

    Raises
    ------
    InvalidInput
        If the shapes differ, a count is not positive, a probability not in [0, 1], or the level not
        between 0 and 1.

    Examples
    --------
    >>> consistency_band([100, 100], [0.5, 0.02])
    array([[0.42, 0.58],
           [0.  , 0.05]])
    """
    sizes = np.asarray(counts, dtype=np.int64)
    values = np.asarray(probabilities, dtype=np.float64)
    if sizes.ndim != 1 or sizes.shape != values.shape or (sizes < 1).any():
        raise InvalidInput("counts: expected a positive count for each probability")
    if not ((values >= 0.0) & (values <= 1.0)).all():
        raise InvalidInput("probabilities: must lie in [0, 1]")
    if not 0.0 < level < 1.0:
        raise InvalidInput(f"level: {level} is not between 0 and 1")
    tail = (1.0 - level) / 2.0
    found = [binomial_range(n, p, tail) for n, p in zip(sizes.tolist(), values, strict=True)]
    return np.array(found, dtype=np.float64).reshape(-1, 2) / sizes[:, None]


@jit
def binomial_range(n: int, p: float, tail: float) -> tuple[int, int]:
    """Return the quantiles of the binomial distribution at `tail` and 1 - `tail`.

    Each is the least k whose distribution function is at least that. All weights are taken relative
    to the mode, so that none that matters underflows.

    Examples
    --------
    >>> binomial_range(10, 0.5, 0.05)
    (2, 8)
    """
    if p <= 0.0:
        return 0, 0
    if p >= 1.0:
        return n, n
    # 1. Weights from the mode to both sides, until they no longer count.
    odds, against = p / (1.0 - p), (1.0 - p) / p
    mode = min(n, math.floor((n + 1) * p))
    weights = np.empty(n + 1)
    weights[mode] = 1.0
    first, last = mode, mode
    while first > 0 and weights[first] > NEGLIGIBLE:
        weights[first - 1] = weights[first] * (first * against / (n - first + 1))
        first -= 1
    while last < n and weights[last] > NEGLIGIBLE:
        weights[last + 1] = weights[last] * ((n - last) * odds / (last + 1))
        last += 1
    # 2. Sums from either end.
    total = 0.0
    for k in range(first, last + 1):
        total += weights[k]
    low, below = first, weights[first]
    while below < tail * total:
        low += 1
        below += weights[low]
    high, above = last, 0.0
    while above + weights[high] <= tail * total:
        above += weights[high]
        high -= 1
    return low, high
