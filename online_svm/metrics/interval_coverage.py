"""Coverage and width of intervals for a probability."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from online_svm.errors import InvalidInput
from online_svm.metrics.calibration_error import DRAWS
from online_svm.metrics.equal_mass_bins import EqualMassBins
from online_svm.types import Floats


@dataclass(frozen=True, slots=True)
class IntervalCoverage:
    """How often intervals hold the frequency in their bin.

    Attributes
    ----------
    coverage : float
        Share of the examples in bins whose frequency lies in the bin's mean interval.
    of_perfect : float
        What the same intervals reach on average where every probability is right. The frequency of
        a bin varies by chance, so this is below 1 even where every interval holds the truth.
    width : float
        Mean of upper - lower.
    """

    coverage: float
    of_perfect: float
    width: float


def interval_coverage(
    probabilities: ArrayLike,
    intervals: ArrayLike,
    outcomes: ArrayLike,
    n_bins: int = 15,
    draws: int = DRAWS,
    seed: int = 0,
) -> IntervalCoverage:
    """Return the coverage of intervals over equal-mass bins of the probabilities.

    A single outcome, 0 or 1, lies in no interval; a frequency does. So examples are grouped by
    probability, and the frequency of a group is held against the mean of its intervals.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples,)
    intervals : array-like of shape (n_samples, 2)
        Lower and upper end.
    outcomes : array-like of shape (n_samples,)
        1 where the event happened, else 0.
    n_bins : int, default=15
    draws, seed : int
        Of the simulation behind `of_perfect`, as for `calibration_error_floor`.

    Raises
    ------
    InvalidInput
        If a probability is not in [0, 1], an outcome not 0 or 1, an interval is reversed or not
        finite, the lengths differ, or there is no example.

    Examples
    --------
    >>> found = interval_coverage([0.5] * 4, [[0.4, 0.6]] * 4, [0, 1, 0, 1])
    >>> found.coverage, round(found.width, 3)
    (1.0, 0.2)
    """
    bins = EqualMassBins.of(probabilities, n_bins)
    lower, upper = np.asarray(intervals, dtype=np.float64).T
    low, high = bins.means(lower), bins.means(upper)
    widths = bins.sorted(upper) - bins.sorted(lower)
    if not (widths >= 0.0).all() or not np.isfinite(widths).all():
        raise InvalidInput("upper: must be finite and at least the lower end")
    rng = np.random.default_rng(seed)

    def covered(frequencies: Floats) -> float:
        return float(bins.weights[(low <= frequencies) & (frequencies <= high)].sum())

    coverage = covered(bins.frequencies(outcomes))
    simulated = [
        covered(bins.means(rng.random(len(bins.order)) < bins.probabilities)) for _ in range(draws)
    ]
    return IntervalCoverage(coverage, float(np.mean(simulated)), float(widths.mean()))
