"""Statistics of the calibration of probabilities, descriptive where they are looked at again.

Each is a test at one moment chosen in advance. Looked at over and over, as over a rolling window,
its p-value says nothing; the figure itself still tells where and how far probabilities are off.
"""

import math
from typing import NamedTuple

from numpy.typing import ArrayLike

from online_svm.compiled.jit import jit
from online_svm.metrics.sorted_events import sorted_events
from online_svm.types import Bools, Floats


class CalibrationStatistics(NamedTuple):
    """Three statistics of the calibration of one event.

    Attributes
    ----------
    spiegelhalter_z : float or None
        Standard normal if the probabilities are right (Spiegelhalter 1986). Positive where they are
        too extreme, negative where they are too moderate. None where all are 0, 1/2 or 1.
    kolmogorov_smirnov : float
        Greatest |sum of y - p| over the examples up to some probability, over their number.
    kuiper : float
        The same from any probability to any other: finds deviations that cancel (Arrieta-Ibarra et
        al. 2022, "Metrics of calibration for probabilistic predictions"). At least as large.
    """

    spiegelhalter_z: float | None
    kolmogorov_smirnov: float
    kuiper: float


def calibration_statistics(probabilities: ArrayLike, outcomes: ArrayLike) -> CalibrationStatistics:
    """Return the statistics of probabilities of one event.

    Parameters and errors are those of `sorted_events`.

    Examples
    --------
    >>> calibration_statistics([0.25, 0.75], [0, 1])
    CalibrationStatistics(spiegelhalter_z=-0.8164..., kolmogorov_smirnov=0.125, kuiper=0.125)
    """
    z, greatest, span = cumulative_statistics(*sorted_events(probabilities, outcomes))
    return CalibrationStatistics(None if math.isnan(z) else z, greatest, span)


@jit
def cumulative_statistics(p: Floats, happened: Bools) -> tuple[float, float, float]:
    """Return them for events that `sorted_events` sorted, at least one; z may be NaN."""
    n = len(p)
    excess, variance = 0.0, 0.0
    running, low, high = 0.0, 0.0, 0.0
    for i in range(n):
        tilt = 1.0 - 2.0 * p[i]
        excess += (happened[i] - p[i]) * tilt
        variance += tilt * tilt * p[i] * (1.0 - p[i])
        running += happened[i] - p[i]
        if i == n - 1 or p[i] != p[i + 1]:  # within equal probabilities there is no order
            low, high = min(low, running), max(high, running)
    z = excess / math.sqrt(variance) if variance > 0.0 else math.nan
    return z, max(high, -low) / n, (high - low) / n
