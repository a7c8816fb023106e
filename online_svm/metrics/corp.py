"""The CORP decomposition of the Brier score: how much of it is miscalibration.

CORP (Dimitriadis, Gneiting & Jordan 2021, "Stable reliability diagrams for probabilistic
classifiers", PNAS 118) recalibrates by isotonic regression, which needs no bins and no choice:

    Brier score = miscalibration - discrimination + uncertainty

Miscalibration is what recalibration would save, discrimination what the recalibrated probabilities
save against the constant frequency, and uncertainty the score of that constant.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.diagram import hull_links
from online_svm.compiled.jit import jit
from online_svm.metrics.sorted_events import sorted_events
from online_svm.types import Bools, Floats


class BrierParts(NamedTuple):
    """A Brier score and its parts, and the integrated calibration index.

    Attributes
    ----------
    brier : float
        Mean of (p - y)^2.
    miscalibration, discrimination, uncertainty : float
        None is negative; brier = miscalibration - discrimination + uncertainty.
    calibration_index : float
        Mean of |p - r|, where r is the isotonic regression of y on p: the integrated calibration
        index (Austin & Steyerberg 2019) with isotonic regression in place of a local one.
    """

    brier: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    calibration_index: float


def corp_decomposition(probabilities: ArrayLike, outcomes: ArrayLike) -> BrierParts:
    """Return the parts of the Brier score of probabilities of one event.

    Of chance alone miscalibration is positive too, and less so the more examples there are.

    Parameters and errors are those of `sorted_events`.

    Examples
    --------
    >>> parts = corp_decomposition([0.1, 0.1, 0.6, 0.6], [0, 0, 1, 1])
    >>> [round(part, 3) for part in parts]
    [0.085, 0.085, 0.25, 0.25, 0.25]
    """
    return BrierParts(*brier_parts(*sorted_events(probabilities, outcomes)))


@jit
def brier_parts(p: Floats, happened: Bools) -> tuple[float, float, float, float, float]:
    """Return the parts for events that `sorted_events` sorted; at least one.

    Examples
    --------
    >>> brier_parts(np.array([0.5, 0.5]), np.array([False, True]))
    (0.25, 0.0, 0.0, 0.25, 0.0)
    """
    n = len(p)
    # 1. The cumulative sum diagram, a point after each run of equal probabilities.
    totals = np.zeros(n + 1, dtype=np.int64)
    positives = np.zeros(n + 1, dtype=np.int64)
    runs = 0
    score = 0.0
    for i in range(n):
        miss = p[i] - happened[i]
        score += miss * miss
        if i == 0 or p[i] != p[i - 1]:
            runs += 1
            totals[runs], positives[runs] = totals[runs - 1], positives[runs - 1]
        totals[runs] += 1
        positives[runs] += happened[i]
    # 2. The isotonic regression: the slopes of its greatest convex minorant.
    links = hull_links(totals[: runs + 1], positives[: runs + 1])
    # 3. The score of the recalibrated probabilities: in a block of m with k, k (m - k) / m.
    recalibrated, distance = 0.0, 0.0
    at = 0
    while at != runs:
        after = links[at]
        m, k = totals[after] - totals[at], positives[after] - positives[at]
        recalibrated += k * (m - k) / m
        for i in range(totals[at], totals[after]):
            distance += abs(p[i] - k / m)
        at = after
    k = positives[runs]
    constant = k * (n - k) / n
    # Rounding alone can make a part negative.
    return (
        score / n,
        max(0.0, score - recalibrated) / n,
        max(0.0, constant - recalibrated) / n,
        constant / n,
        distance / n,
    )
