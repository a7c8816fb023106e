"""Reliability bins: how often an event happened beside how probable it was said to be.

A bin has a consistency band: the frequencies that chance allows if the probability is right. The
band of a group of n examples with mean probability p holds the middle `level` of the binomial
distribution of n and p, as quantiles over n: no random draws. Where the probabilities in the group
differ, their count varies less than the binomial says (Hoeffding 1956), so the band is then a
little wide.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.argument_checks import check_n_bins
from online_svm.compiled.jit import jit
from online_svm.errors import InvalidInput
from online_svm.metrics.equal_mass_bins import bin_ends
from online_svm.metrics.sorted_events import sorted_events
from online_svm.stream.windowed_report import ReliabilityBin
from online_svm.types import Bools, Floats

NEGLIGIBLE = 1e-20
"""Weights below this part of that of the mode change no sum."""


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


N_BINS = 10
LEVEL = 0.9

COUNT, PROBABILITY, FREQUENCY, LOWER, UPPER = range(5)


def reliability_bins(
    probabilities: ArrayLike, outcomes: ArrayLike, n_bins: int = N_BINS, level: float = LEVEL
) -> list[ReliabilityBin]:
    """Return equal-mass bins by ascending probability; equal probabilities share a bin.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples,)
    outcomes : array-like of shape (n_samples,)
        1 where the event happened, else 0.
    n_bins : int, default=10
        At most.
    level : float, default=0.9
        Of the consistency bands.

    Raises
    ------
    InvalidInput
        As `sorted_events`; or if `n_bins` is not positive or `level` not between 0 and 1.

    Examples
    --------
    >>> reliability_bins([0.25, 0.25, 0.75, 0.75], [0, 0, 1, 0], n_bins=2)[1]
    ReliabilityBin(count=2, probability=0.75, frequency=0.5, lower=0.0, upper=1.0)
    """
    check_n_bins(n_bins)
    if not 0.0 < level < 1.0:
        raise InvalidInput(f"level: {level} is not between 0 and 1")
    return as_bins(bin_rows(*sorted_events(probabilities, outcomes), n_bins, (1.0 - level) / 2.0))


def as_bins(rows: Floats) -> list[ReliabilityBin]:
    """Return what `bin_rows` found as bins."""
    return [ReliabilityBin(int(row[COUNT]), *row[1:]) for row in rows.tolist()]


@jit
def bin_rows(p: Floats, happened: Bools, n_bins: int, tail: float) -> Floats:
    """Return the bins of events that `sorted_events` sorted, shape (at most n_bins, 5)."""
    ends = bin_ends(p, n_bins)
    rows = np.empty((len(ends), 5))
    begin = 0
    for b in range(len(ends)):
        count, said, hits = ends[b] - begin, 0.0, 0
        for i in range(begin, ends[b]):
            said += p[i]
            hits += happened[i]
        mean = min(1.0, said / count)  # rounding alone can put it beyond 1
        low, high = binomial_range(count, mean, tail)
        rows[b, COUNT], rows[b, PROBABILITY], rows[b, FREQUENCY] = count, mean, hits / count
        rows[b, LOWER], rows[b, UPPER] = low / count, high / count
        begin = ends[b]
    return rows
