"""What is no probability, outcome, level or group is refused by every metric, and named."""

import numpy as np
import pytest

from online_svm.errors import InvalidInput
from online_svm.metrics.binomial_interval import binomial_intervals
from online_svm.metrics.feature_shift import feature_shift
from online_svm.metrics.reliability import corp_decomposition
from online_svm.metrics.scores import (
    accuracy,
    interval_coverage,
    log_loss,
    macro_auc,
    squared_calibration_error,
)
from online_svm.metrics.sequential.comparison import BoundedMean, ScoreComparison, strongest_mean

NAN = np.nan


def coverage(lower, upper):
    return interval_coverage([0.5, 0.5], np.transpose([lower, upper]), [0, 1])


def shift(rows):
    return feature_shift(rows, [[1.0], [2.0]])


def mean_of(values):
    return BoundedMean(0.0, 1.0, 0.05).update(np.array(values))


def compared(first, second):
    return ScoreComparison(1.0, 0.05).update(np.array(first), np.array(second))


@pytest.mark.parametrize(
    ("metric", "cases", "told"),
    [
        (binomial_intervals, [(0.0,), (1.0,), (-0.1,)], "level"),
        (squared_calibration_error, [([0.5], [1])], "at least two"),
        (squared_calibration_error,
         [([0.5, 1.5], [0, 1]), ([0.5, NAN], [0, 1]), ([0.5] * 3, [0, 1])], "."),
        (corp_decomposition,
         [([], []), ([1.5], [1]), ([NAN], [1]), ([0.5], [2]), ([0.5], [1, 0])], "."),
        (shift, [([[1.0]],), ([1.0, 2.0],), ([[1.0, 2.0]] * 2,), (np.empty((0, 1)),)],
         "two groups of at least two rows"),
        (coverage, [([0.6, 0.6], [0.4, 0.7]), ([0.1, NAN], [0.2, 0.3]), ([0.1], [0.2])], "."),
        (log_loss, [([[p, 1 - p]], [0]) for p in (-0.1, 1.1, NAN)], "probabilities"),
        (log_loss, [(np.empty((0, 2)), [])], "one row an example"),
        (accuracy, [([], [])], "at least one true class"),
        (macro_auc, [([[0.5, 0.5], [0.2, 0.8]], [1, 1])], "two classes"),
        (strongest_mean, [(np.array(values), 1.0, 0.05) for values in ([], [1.5], [NAN])],
         "values"),
        (BoundedMean, [(1.0, 1.0, 0.05)], "low < high"),
        (mean_of, [([0.5, NAN],)], r"\[0.0, 1.0\]"),
        (compared, [([2.5], [0.0])], "values"),
    ],
)  # fmt: skip
def test_what_a_metric_cannot_be_of_is_refused(metric, cases, told):
    for arguments in cases:
        with pytest.raises(InvalidInput, match=told):
            metric(*arguments)
