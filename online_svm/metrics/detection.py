"""Detection of one class: recall, precision and the areas under two curves, with intervals."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.diagram import check_labels, pool_ties
from online_svm.metrics.binomial_interval import binomial_intervals, interval, proportion
from online_svm.metrics.estimate import LEVEL, UNDEFINED, Estimate
from online_svm.metrics.reliability import check_events, reliability_bins
from online_svm.stream.validity_report import ReliabilityBin
from online_svm.types import Bools, Floats

_Z = 1.959963984540054  # standard normal quantile at (1 + LEVEL) / 2


@dataclass(frozen=True, slots=True)
class Detection:
    """The figures of one class over some examples."""

    examples: int  # all
    positives: int  # examples of the class
    decided: int  # examples for which the class was decided
    recall: Estimate  # share of the positives for which the class was decided
    precision: Estimate  # share of positives where the class was decided
    roc_auc: Estimate  # area under the ROC curve
    pr_auc: Estimate  # average precision; of random scores it is the share of positives
    reliability: tuple[ReliabilityBin, ...]  # of the probability of the class


def detection(probabilities: ArrayLike, outcomes: ArrayLike, decided: ArrayLike) -> Detection:
    """Return how well a class is found.

    Recall and precision have Clopper-Pearson intervals. The ROC area has the interval of DeLong,
    DeLong & Clarke-Pearson (1988) on the logit scale; average precision the logit interval of Boyd,
    Eng & Page (2013), "Area under the precision-recall curve". An area of 1, or of 0, has the
    Clopper-Pearson interval of as many hits as the rarer outcome has examples.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples,)
        Announced probability of the class.
    outcomes : array-like of shape (n_samples,)
        Whether the example is of the class.
    decided : array-like of shape (n_samples,)
        Whether the class was decided.

    Raises
    ------
    InvalidInput
        If a probability is not in [0, 1], an outcome is not 0 or 1, the lengths differ, or there
        are no examples.

    Examples
    --------
    >>> found = detection([0.9, 0.8, 0.3, 0.1], [1, 0, 1, 0], [1, 1, 0, 0])
    >>> found.recall.value, found.precision.value, found.roc_auc.value
    (0.5, 0.5, 0.75)
    >>> round(found.pr_auc.value, 3)
    0.833
    """
    p, happened = check_events(probabilities, outcomes)
    taken = check_labels(decided, len(p))
    hits, positives, count = int((taken & happened).sum()), int(happened.sum()), int(taken.sum())
    return Detection(
        examples=len(p),
        positives=positives,
        decided=count,
        recall=proportion(hits, positives),
        precision=proportion(hits, count),
        roc_auc=_roc_auc(p, happened),
        pr_auc=_average_precision(p, happened),
        reliability=tuple(reliability_bins(p, happened)),
    )


def _roc_auc(p: Floats, happened: Bools) -> Estimate:
    counts = pool_ties(p, happened)
    positives = counts.positives.astype(np.float64)
    negatives = counts.totals - positives
    m, n = positives.sum(), negatives.sum()
    if not m or not n:
        return UNDEFINED
    # Share of the other outcome below (for positives) or above, ties counted half.
    below = (np.cumsum(negatives) - negatives / 2.0) / n
    above = 1.0 - (np.cumsum(positives) - positives / 2.0) / m
    area = float(positives @ below / m)
    if m < 2 or n < 2:
        return Estimate(area, 0.0, 1.0)
    variance = positives @ (below - area) ** 2 / (m - 1) / m
    variance += negatives @ (above - area) ** 2 / (n - 1) / n
    return _on_logit_scale(area, math.sqrt(variance), int(min(m, n)))


def _average_precision(p: Floats, happened: Bools) -> Estimate:
    counts = pool_ties(p, happened)
    hits = np.cumsum(counts.positives[::-1])
    positives = int(hits[-1])
    if not positives:
        return UNDEFINED
    precision = hits / np.cumsum(counts.totals[::-1])
    area = float(counts.positives[::-1] @ precision / positives)
    return _on_logit_scale(area, math.sqrt(area * (1.0 - area) / positives), positives)


def _on_logit_scale(area: float, error: float, rarer: int) -> Estimate:
    if area <= 0.0 or area >= 1.0 or error <= 0.0:
        return Estimate(area, *interval(binomial_intervals(LEVEL), round(area * rarer), rarer))
    logit, reach = math.log(area / (1.0 - area)), _Z * error / (area * (1.0 - area))
    lower, upper = (1.0 / (1.0 + math.exp(-(logit + side))) for side in (-reach, reach))
    return Estimate(area, lower, upper)
