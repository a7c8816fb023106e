"""Cumulative validity: accuracy and mean probability of all examples so far, in constant memory."""

import math
from typing import NamedTuple, Self

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.compiled.special import erfc
from online_svm.storage.state_schema import StateSchema, floats, ints, one
from online_svm.stream.validity_report import LabelReport, MethodReport
from online_svm.types import Arrays, Floats, Ints

# Columns of the running sums: four for the predicted label, four for the SVM's class, two scores.
LOWER, PROBABILITY, UPPER, VARIANCE = range(4)
LOG_LOSS, BRIER, N_SUMS = 8, 9, 10
SCORED, PREDICTED_HITS, SVM_HITS, CLIPPED, N_COUNTS = range(5)
NO_INTERVAL = np.empty((0, 0))

_FIELDS = StateSchema(floats("_sums"), ints("_counts"), one("intervals", below=2))


def paper_p_value(hits: float, sum_p: float, sum_var: float) -> float:
    """Return the two-sided normal p-value of a number of hits (Lambrou et al. 2012, section 4).

    `sum_p` and `sum_var` are the sums of p and p (1 - p) over the predicted labels. The value is
    descriptive and never raises an alarm: under the protocols here the sum telescopes, so the test
    has no power. With zero variance it is 1 if `hits` equals `sum_p`, else 0.
    """
    deviation = abs(hits - sum_p)
    if sum_var <= 0.0:
        return 1.0 if deviation == 0.0 else 0.0
    return erfc(deviation / math.sqrt(2.0 * sum_var))


class MethodAnswers(NamedTuple):
    """Predictions of one method for m examples."""

    probabilities: Floats  # shape (m, n_classes)
    lower: Floats  # like `probabilities`, or `NO_INTERVAL`
    upper: Floats  # like `lower`
    label: Ints  # index of the predicted label, shape (m,)
    svm_label: Ints  # index of the SVM's class, shape (m,)


class CumulativeValidity:
    """Running sums over the predictions of one method; the division into blocks has no effect.

    `intervals`: whether the method has lower and upper probabilities.
    """

    def __init__(self, *, intervals: bool) -> None:
        self.intervals = intervals
        self._sums = np.zeros(N_SUMS)
        self._counts = np.zeros(N_COUNTS, dtype=np.int64)

    @property
    def scored(self) -> int:
        """Number of labelled examples so far."""
        return int(self._counts[SCORED])

    def update(self, answers: MethodAnswers, truth: Ints) -> None:
        """Add contiguous rows; skip those with the `truth`, shape (m,), -1: they have no label.

        The number of classes may differ between calls.
        """
        _add(self._sums, self._counts, answers, truth)

    def report(self) -> MethodReport:
        """Return the means so far; all are None before the first labelled example."""
        return MethodReport(
            predicted=self._label_report(self._sums[:4], int(self._counts[PREDICTED_HITS])),
            svm=self._label_report(self._sums[4:8], int(self._counts[SVM_HITS])),
            log_loss=self._mean(self._sums[LOG_LOSS]),
            brier=self._mean(self._sums[BRIER]),
            clipped=int(self._counts[CLIPPED]),
        )

    def state(self) -> Arrays:
        """Return the running sums as arrays."""
        return _FIELDS.arrays_of(self)

    @classmethod
    def from_state(cls, state: Arrays) -> Self:
        """Restore the running sums, or raise InvalidSnapshot."""
        return _FIELDS.fill(cls(intervals=False), None, state)

    def _label_report(self, sums: Floats, hits: int) -> LabelReport:
        return LabelReport(
            accuracy=self._mean(hits),
            lower=self._mean(sums[LOWER]) if self.intervals else None,
            probability=self._mean(sums[PROBABILITY]),
            upper=self._mean(sums[UPPER]) if self.intervals else None,
            paper_p=(
                paper_p_value(hits, float(sums[PROBABILITY]), float(sums[VARIANCE]))
                if self.scored
                else None
            ),
        )

    def _mean(self, total: float) -> float | None:
        return float(total) / self.scored if self.scored else None


@kernel
def _add(sums: Floats, counts: Ints, answers: MethodAnswers, truth: Ints) -> None:
    """Add each labelled row, in order, to `sums` (N_SUMS,) and `counts` (N_COUNTS,)."""
