"""Cumulative validity: accuracy against the sums of the probabilities, in constant memory."""

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from online_svm.compiled.elementary import log
from online_svm.compiled.jit import inner, jit
from online_svm.compiled.special import erfc
from online_svm.errors import InvalidInput
from online_svm.metrics.scores import CLIP
from online_svm.storage.fields import Fields, floats, ints, one
from online_svm.stream.prediction import LabelReport, MethodReport
from online_svm.types import Arrays, Floats, Ints

# Columns of the running sums: four for the predicted label, four for the SVM's own class.
LOWER, PROBABILITY, UPPER, VARIANCE = range(4)
LOG_LOSS, BRIER, N_SUMS = 8, 9, 10
SCORED, PREDICTED_HITS, SVM_HITS, CLIPPED, N_COUNTS = range(5)
NO_INTERVAL = np.empty((0, 0))

_FIELDS = Fields(floats("_sums"), ints("_counts"), one("intervals", below=2))


def paper_p_value(hits: float, sum_p: float, sum_var: float) -> float:
    """Return the two-sided normal p-value of a number of hits (Lambrou et al. 2012, section 4).

    Descriptive only: under the protocols here the sum telescopes, so that it is no test with
    power, and never an alarm.

    Parameters
    ----------
    hits : float
        Examples whose label was predicted.
    sum_p, sum_var : float
        Sums of p and of p (1 - p) over the probabilities of the predicted labels.

    Returns
    -------
    float
        Without variance: 1 if the hits are what was announced, else 0.

    Examples
    --------
    >>> round(paper_p_value(40, 50.0, 25.0), 4)
    0.0455
    """
    deviation = abs(hits - sum_p)
    if sum_var <= 0.0:
        return 1.0 if deviation == 0.0 else 0.0
    return erfc(deviation / math.sqrt(2.0 * sum_var))


class MethodAnswers(NamedTuple):
    """What a method says of m examples.

    Attributes
    ----------
    probabilities, lower, upper : ndarray of shape (m, n_classes)
        Without intervals the last two are `NO_INTERVAL`.
    label, svm_label : ndarray of int of shape (m,)
        Index of the predicted label and of the SVM's own class.
    """

    probabilities: Floats
    lower: Floats
    upper: Floats
    label: Ints
    svm_label: Ints


class CumulativeValidity:
    """Running sums of one method's answers, added one example after the other.

    The sums, and so the reports, do not depend on how the examples are cut into blocks.

    Parameters
    ----------
    intervals : bool
        Whether the method gives lower and upper probabilities.

    Examples
    --------
    >>> validity = CumulativeValidity(intervals=False)
    >>> validity.update([[0.5, 0.5], [0.25, 0.75]], [0, 1], [1, 1], [0, 1])
    >>> report = validity.report()
    >>> report.predicted.accuracy, report.predicted.probability, report.svm.accuracy
    (1.0, 0.625, 0.5)
    """

    def __init__(self, *, intervals: bool) -> None:
        self.intervals = intervals
        self._sums = np.zeros(N_SUMS)
        self._counts = np.zeros(N_COUNTS, dtype=np.int64)

    @property
    def scored(self) -> int:
        """Labelled examples so far.

        Examples
        --------
        >>> CumulativeValidity(intervals=True).scored
        0
        """
        return int(self._counts[SCORED])

    def update(
        self,
        probabilities: ArrayLike,
        label: ArrayLike,
        svm_label: ArrayLike,
        truth: ArrayLike,
        *,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> None:
        """Add a block of answers.

        Parameters
        ----------
        probabilities : array-like of shape (m, n_classes)
            Point probabilities. `n_classes` may differ between blocks.
        label, svm_label : array-like of int of shape (m,)
            Index of the predicted label and of the SVM's own class.
        truth : array-like of int of shape (m,)
            Index of the true label; -1 for an example without one, which is skipped.
        lower, upper : array-like of shape (m, n_classes), optional
            Lower and upper probabilities; given if and only if `intervals` is true.

        Raises
        ------
        InvalidInput
            If shapes do not fit, or an index is out of range. Nothing is then added.

        Examples
        --------
        >>> validity = CumulativeValidity(intervals=True)
        >>> validity.update([[0.4, 0.6]], [1], [1], [1], lower=[[0.3, 0.5]], upper=[[0.5, 0.7]])
        >>> validity.report().predicted.upper
        0.7
        """
        values = np.ascontiguousarray(probabilities, dtype=np.float64)
        if values.ndim != 2 or not values.shape[1]:
            raise InvalidInput(f"probabilities: expected shape (m, n_classes), got {values.shape}")
        chosen, own, true = (
            _check_indices(indices, name, len(values))
            for indices, name in ((label, "label"), (svm_label, "svm_label"), (truth, "truth"))
        )
        below, above = self._check_interval(values, lower, upper)
        if not _in_range(chosen, own, true, values.shape[1]):
            raise InvalidInput(f"label: an index is not in 0..{values.shape[1] - 1}")
        self.update_unchecked(MethodAnswers(values, below, above, chosen, own), true)

    def update_unchecked(self, answers: MethodAnswers, truth: Ints) -> None:
        """Do what `update` does for arrays that are known to fit.

        Examples
        --------
        >>> validity, index = CumulativeValidity(intervals=False), np.array([1])
        >>> both = np.array([[0.5, 0.5]])
        >>> answers = MethodAnswers(both, NO_INTERVAL, NO_INTERVAL, index, index)
        >>> validity.update_unchecked(answers, index)
        >>> validity.scored
        1
        """
        _add(self._sums, self._counts, answers, truth)

    def report(self) -> MethodReport:
        """Return the means so far; all are None before the first labelled example.

        Examples
        --------
        >>> CumulativeValidity(intervals=False).report().log_loss is None
        True
        """
        return MethodReport(
            predicted=self._label_report(self._sums[:4], int(self._counts[PREDICTED_HITS])),
            svm=self._label_report(self._sums[4:8], int(self._counts[SVM_HITS])),
            log_loss=self._mean(self._sums[LOG_LOSS]),
            brier=self._mean(self._sums[BRIER]),
            clipped=int(self._counts[CLIPPED]),
        )

    def state(self) -> Arrays:
        """Return the running sums as arrays.

        Examples
        --------
        >>> sorted(CumulativeValidity(intervals=False).state())
        ['counts', 'intervals', 'sums']
        """
        return _FIELDS.arrays_of(self)

    @classmethod
    def from_state(cls, state: Arrays) -> Self:
        """Return the running sums that `state` describes.

        Raises
        ------
        InvalidSnapshot
            If an array is absent or has another type or length.

        Examples
        --------
        >>> validity = CumulativeValidity(intervals=True)
        >>> CumulativeValidity.from_state(validity.state()).report() == validity.report()
        True
        """
        restored = cls(intervals=False)
        _FIELDS.fill(restored, None, state)
        return restored

    def _check_interval(
        self, values: Floats, lower: ArrayLike | None, upper: ArrayLike | None
    ) -> tuple[Floats, Floats]:
        if not self.intervals:
            if lower is not None or upper is not None:
                raise InvalidInput("lower: this method was declared to have no intervals")
            return NO_INTERVAL, NO_INTERVAL
        below = np.ascontiguousarray(lower, dtype=np.float64)
        above = np.ascontiguousarray(upper, dtype=np.float64)
        if below.shape != values.shape or above.shape != values.shape:
            raise InvalidInput(
                f"lower, upper: expected shape {values.shape} as the probabilities have, got "
                f"{below.shape} and {above.shape}"
            )
        return below, above

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


def _check_indices(indices: ArrayLike, name: str, m: int) -> Ints:
    values = np.ascontiguousarray(indices, dtype=np.int64)
    if values.shape != (m,):
        raise InvalidInput(f"{name}: expected {m} indices, one a row, got shape {values.shape}")
    return values


@jit
def _in_range(label: Ints, svm_label: Ints, truth: Ints, n_classes: int) -> bool:
    for i in range(len(truth)):
        if truth[i] == -1:
            continue
        low = min(label[i], svm_label[i], truth[i])
        if low < 0 or max(label[i], svm_label[i], truth[i]) >= n_classes:
            return False
    return True


@jit
def _add(sums: Floats, counts: Ints, answers: MethodAnswers, truth: Ints) -> None:
    """Add each labelled row to the sums, in order."""
    probabilities, lower, upper, label, svm_label = answers
    for i in range(len(truth)):
        true = truth[i]
        if true < 0:
            continue
        counts[SCORED] += 1
        # 1. The predicted label, then the SVM's own: hits, probability, variance and bounds.
        for part in range(2):
            chosen = label[i] if part == 0 else svm_label[i]
            p = probabilities[i, chosen]
            counts[PREDICTED_HITS + part] += chosen == true
            sums[4 * part + PROBABILITY] += p
            sums[4 * part + VARIANCE] += p * (1.0 - p)
            if lower.size:
                sums[4 * part + LOWER] += lower[i, chosen]
                sums[4 * part + UPPER] += upper[i, chosen]
        # 2. Log loss and Brier score of the true label.
        p = probabilities[i, true]
        counts[CLIPPED] += p < CLIP
        sums[LOG_LOSS] -= log(max(p, CLIP))
        sums[BRIER] += _brier(probabilities[i], true)


@inner
def _brier(probabilities: Floats, true: int) -> float:
    first = 1 if len(probabilities) == 2 else 0  # of two equal squares only one counts
    total = 0.0
    for j in range(first, len(probabilities)):
        miss = probabilities[j] - (j == true)
        total += miss * miss
    return total
