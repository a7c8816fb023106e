"""Spread of windowed figures in which each label stands for several examples.

Means are right if each label is counted as often as it stands for examples, but there are fewer
labels than examples. So standard deviations are multiplied by the root of the design effect
sum k^2 / sum k (Kish 1965, "Survey sampling", 11.7), with k the examples for which a label stands.
It is on the safe side if k is larger where probabilities are more certain.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from online_svm.stream.validity_report import (
    Descriptive,
    MethodReport,
    ReliabilityBin,
    SliceScores,
    ValidityReport,
    WindowedReport,
)
from online_svm.types import Bools, Floats

MAX_WEIGHT_TIMES_BUDGET = 4.0
"""Each label is wanted with at least a quarter of the budget as its probability."""


def most_examples(budget: float | None) -> int:
    """Return the largest number of examples for which a label may stand; 1 without a budget."""
    return 1 if budget is None else int(MAX_WEIGHT_TIMES_BUDGET / budget)


def design_effect(weights: Floats) -> float:
    """Return sum k^2 / sum k of at least one weight; the sums of whole numbers are exact."""
    return float((weights * weights).sum() / weights.sum())


def weighted_square(p: Floats, happened: Bools, weights: Floats, n_bins: int) -> float:
    """Return the debiased squared calibration error over bins of about equal weight.

    In a bin, the square of the weighted mean of y - p exceeds the squared expectation by its
    variance, sum k^2 (r - mean)^2 / (sum k)^2 times m / (m - 1) for m labels, which is subtracted.
    Bins with one label are left out. The arrays have shape (m,). NaN without a bin of two.
    """
    order = np.lexsort((weights, happened, p))
    residual, k = (happened - p)[order], weights[order]
    bins = (n_bins * (np.cumsum(k) - 0.5 * k) / k.sum()).astype(np.int64)

    def sums(values: Floats) -> Floats:
        return np.bincount(bins, values, n_bins).astype(np.float64)  # adds in order

    total, count = sums(k), np.bincount(bins, minlength=n_bins)
    mean = sums(k * residual) / np.maximum(total, 1.0)
    apart = k * (residual - mean[bins])
    noise = sums(apart * apart) / np.maximum(total * total, 1.0)
    square = mean * mean - noise * count / np.maximum(count - 1, 1)
    used = count > 1
    whole = math.fsum(total[used].tolist())
    return math.fsum((total * square)[used].tolist()) / whole if whole else math.nan


def with_spread_of_labels(
    report: WindowedReport, labels: int, effect: float, square: float
) -> WindowedReport:
    """Return a report over repeated examples with the spread that its `labels` labels have.

    `effect` is the design effect, `square` the debiased squared calibration error.
    """
    spread = math.sqrt(effect)

    def scaled(part: Any, **changes: object) -> Any:
        z = None if part.z is None else part.z / spread
        return replace(part, z=z, calibration_error=None, **changes)

    overall = scaled(report.overall, scored=labels)
    error = None if math.isnan(square) else math.sqrt(max(0.0, square))
    return replace(
        report,
        overall=replace(overall, calibration_error=error),
        reliability=[_widened(each, spread) for each in report.reliability],
        classes=[scaled(each) for each in report.classes],
        slices={
            name: [SliceScores(each.value, scaled(each.scores)) for each in values]
            for name, values in report.slices.items()
        },
        descriptive=None if report.descriptive is None else _described(report.descriptive, spread),
    )


def _widened(each: ReliabilityBin, spread: float) -> ReliabilityBin:
    p = each.probability
    lower = max(0.0, p - spread * (p - each.lower))
    return replace(each, lower=lower, upper=min(1.0, p + spread * (each.upper - p)))


def _described(found: Descriptive, spread: float) -> Descriptive:
    z = found.spiegelhalter_z
    return replace(found, spiegelhalter_z=None if z is None else z / spread)


def without_p_values(report: ValidityReport) -> ValidityReport:
    """Return a report without the p-values of the papers: they are of equally weighted labels."""

    def of(method: MethodReport) -> MethodReport:
        predicted, svm = (replace(part, paper_p=None) for part in (method.predicted, method.svm))
        return replace(method, predicted=predicted, svm=svm)

    maps = {name: of(method) for name, method in report.maps.items()}
    return replace(report, headline=of(report.headline), venn=of(report.venn), maps=maps)
