"""Means of bounded values since several starts: what began late is hidden in the mean of all.

The intervals of all starts, at all times, hold together: each start has a share of the level, as in
`interval_reach`. Of a finished series the starts are the last two multiples of 64 * 2^j values, for
each j, as `deviation_sums` keeps them of a running one; and the beginning.
"""

from dataclasses import dataclass

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.errors import InvalidInput
from online_svm.metrics.sequential.bounded_mean import reach_of
from online_svm.metrics.sequential.deviation_sums import MEMORY, SPACING
from online_svm.metrics.sequential.interval_reach import group_of, share_of_group
from online_svm.types import Floats


@dataclass(frozen=True, slots=True)
class MeanSince:
    """The mean of the values from one on, with its interval.

    Attributes
    ----------
    since : int
        Values before the first.
    count : int
    lower, estimate, upper : float
    """

    since: int
    count: int
    lower: float
    estimate: float
    upper: float


def strongest_mean(values: Floats, bound: float, level: float) -> MeanSince:
    """Return the mean whose interval lies farthest from 0; if all hold 0, that of all values.

    Parameters
    ----------
    values : ndarray of shape (m,)
        In order, each in [-bound, bound]; at least one.
    bound : float
    level : float
        One minus the confidence of all intervals together.

    Raises
    ------
    InvalidInput
        If there is no value, or one lies outside.

    Examples
    --------
    >>> values = np.concatenate([np.tile([0.1, -0.1], 2000), np.tile([0.3, 0.1], 200)])
    >>> found = strongest_mean(values, 1.0, 0.05)
    >>> found.since, round(found.estimate, 2), found.lower > 0.1
    (4096, 0.2, True)
    """
    if not len(values) or not (np.abs(values) <= bound).all():
        raise InvalidInput(f"values: expected at least one, each in [{-bound}, {bound}]")
    scaled = values / (2.0 * bound)
    sums = np.concatenate([[0.0], np.cumsum(scaled)])
    squares = np.concatenate([[0.0], np.cumsum(_squares(scaled))])
    found = []
    for start in starts_of(len(values)):
        share = share_of_group(group_of(start // SPACING))
        count, total = len(values) - start, float(sums[-1] - sums[start])
        reach = reach_of(float(squares[-1] - squares[start]), 0.5 * level * share)
        ends = (2.0 * bound * (total + side) / count for side in (-reach, 0.0, reach))
        lower, estimate, upper = ends
        found.append(MeanSince(start, count, max(-bound, lower), estimate, min(bound, upper)))
    best = max(found, key=_distance)
    return best if _distance(best) > 0.0 else found[0]


def starts_of(count: int) -> list[int]:
    """Return the starts of a series of so many values, ascending; the first is 0.

    Examples
    --------
    >>> starts_of(1000)
    [0, 512, 768, 896, 960]
    """
    found, spacing = {0}, SPACING
    while spacing < count:
        last = (count - 1) // spacing * spacing
        found |= {last, max(0, last - spacing)}
        spacing *= 2
    return sorted(found)


def _distance(mean: MeanSince) -> float:
    return max(mean.lower, -mean.upper)


@jit
def _squares(values: Floats) -> Floats:
    """Return squares about a mean of the values before, exponentially weighted."""
    found, guess = np.empty(len(values)), 0.0
    for i in range(len(values)):
        apart = values[i] - guess
        found[i] = apart * apart
        guess += apart / MEMORY
    return found
