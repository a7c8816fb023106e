"""Reliability bins: how often an event happened beside how probable it was said to be."""

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.argument_checks import check_n_bins
from online_svm.compiled.jit import jit
from online_svm.errors import InvalidInput
from online_svm.metrics.consistency_band import binomial_range
from online_svm.metrics.equal_mass import bin_ends
from online_svm.metrics.sorted_events import sorted_events
from online_svm.stream.windowed_report import ReliabilityBin
from online_svm.types import Bools, Floats

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
