"""Cumulative validity: accuracy and mean probability of all examples so far, in constant memory.

While labels are missing, the open answers bound accuracy and Brier score from below and above. The
expectation of each score under the announced probabilities is the estimate that NannyML calls
confidence-based performance estimation.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from online_svm.compiled.elementary import log
from online_svm.compiled.kernel import kernel
from online_svm.compiled.special import erfc
from online_svm.metrics.scores import MIN_SCORED_PROBABILITY, brier_factor
from online_svm.metrics.sequential.comparison import mean_bounds
from online_svm.storage.state_schema import StateSchema, StoredArrays, floats, ints, one, part
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.validity_report import (
    FigureBounds,
    LabelReport,
    MeanBounds,
    MethodReport,
    ValidityReport,
)
from online_svm.types import Floats, Ints

# Columns of the running sums: four for the predicted label, four for the SVM's class, two scores,
# and the squares of hits and scores about the means before.
LOWER, PROBABILITY, UPPER, VARIANCE = range(4)
LOG_LOSS, BRIER, HIT_SQUARES, LOG_LOSS_SQUARES, BRIER_SQUARES, N_SUMS = range(8, 14)
SCORED, PREDICTED_HITS, SVM_HITS, CLIPPED, N_COUNTS = range(5)
NO_INTERVAL = np.empty((0, 0))


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


class CumulativeValidity(StoredArrays):
    """Running sums over the predictions of one method; the division into blocks has no effect.

    `intervals`: whether the method has lower and upper probabilities.
    """

    _stored = StateSchema(floats("_sums"), ints("_counts"), one("intervals", below=2))

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

    def report(self, n_known: int) -> MethodReport:
        """Return the means so far; all are None before the first labelled example.

        `n_known`: number of classes without the slot of unseen labels.
        """
        return MethodReport(
            predicted=self._label_report(self._sums[:4], int(self._counts[PREDICTED_HITS])),
            svm=self._label_report(self._sums[4:8], int(self._counts[SVM_HITS])),
            log_loss=self._mean(self._sums[LOG_LOSS]),
            brier=self._mean(brier_factor(n_known) * self._sums[BRIER]),
            clipped=int(self._counts[CLIPPED]),
        )

    def bounds(self, n_known: int, most: int) -> FigureBounds | None:
        """Return the intervals of the means, at all times together; None before the first example.

        `most`: number of examples for which a label may stand.
        """
        if not self.scored:
            return None
        hits, sums, factor = float(self._counts[PREDICTED_HITS]), self._sums, brier_factor(n_known)
        worst = -log(MIN_SCORED_PROBABILITY)
        lower, upper = mean_bounds(self.scored, sums[BRIER], sums[BRIER_SQUARES], (0.0, 2.0), most)
        return FigureBounds(
            accuracy=mean_bounds(self.scored, hits, sums[HIT_SQUARES], (0.0, 1.0), most),
            log_loss=mean_bounds(
                self.scored, sums[LOG_LOSS], sums[LOG_LOSS_SQUARES], (0.0, worst), most
            ),
            brier=(factor * lower, factor * upper),
        )

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


class StreamValidity(StoredArrays):
    """Running sums over every scored example, in constant memory.

    `maps`: names of the published calibrators. `most`: examples for which a label may stand.
    """

    _stored = StateSchema(one("scored"), one("n_known"), part("_sums"), part("_maps"))

    def __init__(self, maps: Sequence[str], most: int = 1) -> None:
        self._most = most
        self.scored = 0
        self.n_known = 0  # classes of the scored answers so far, without the slot of unseen labels
        self._sums = {name: CumulativeValidity(intervals=True) for name in ("headline", "venn")}
        self._maps = {name: CumulativeValidity(intervals=False) for name in maps}

    def update(self, block: PredictionBlock, columns: Ints) -> None:
        """Add the labelled rows of `block`; `columns` holds their true class columns, or -1.

        With a label budget each row is counted for each example for which its label stands.
        """
        self.scored += int(np.count_nonzero(columns >= 0))
        self.n_known = max(self.n_known, sum(label is not None for label in block.classes))
        rows = block.repetitions
        if rows is not None:
            block, columns = block.taken(rows), columns[rows]
        own, none, flat = block.svm_label, NO_INTERVAL, np.ascontiguousarray
        primary = MethodAnswers(block.point, flat(block.lower), flat(block.upper), block.label, own)
        least, most = flat(block.venn_lower), flat(block.venn_upper)
        label = block.venn_point.argmax(axis=1)
        venn = MethodAnswers(block.venn_point, least, most, label, own)
        self._sums["headline"].update(primary, columns)
        self._sums["venn"].update(venn, columns)
        for name, point in block.maps.items():
            answers = MethodAnswers(point, none, none, point.argmax(axis=1), own)
            self._maps[name].update(answers, columns)

    def report(self, n: int) -> ValidityReport:
        """Return the report after `n` learned examples."""
        headline, venn = (sums.report(self.n_known) for sums in self._sums.values())
        maps = {name: sums.report(self.n_known) for name, sums in self._maps.items()}
        bounds = self._sums["headline"].bounds(self.n_known, self._most)
        return ValidityReport(n, self.scored, headline, venn, maps, bounds)


_UNIT = 1 << 32
"""Fixed-point unit of the terms: integer sums are exact, so terms can be subtracted again."""

COUNT, TOP, BEST, WORST, EXPECTED = range(5)


def possible_terms(block: PredictionBlock) -> Ints:
    """Return the terms of each row of a block for the sums of `OpenAnswers`, shape (m, 5).

    Warm-up rows are never scored: their terms are zero.
    """
    terms = np.zeros((len(block), 5), dtype=np.int64)
    if block.status != "ok":
        return terms
    scores = _brier_sum_by_outcome(block.point)
    expected = _sum_of_columns(block.point * scores)
    own = block.point[np.arange(len(block)), block.label]
    columns = (own, scores.min(axis=1), scores.max(axis=1), expected)
    terms[:, COUNT] = 1
    terms[:, TOP:] = np.rint(np.column_stack(columns) * _UNIT).astype(np.int64)
    return terms


class OpenAnswers:
    """Sums over the answers of a model whose labels are missing."""

    def __init__(self) -> None:
        self._sums = np.zeros(5, dtype=np.int64)

    @property
    def count(self) -> int:
        """Number of answers without a label."""
        return int(self._sums[COUNT])

    def add(self, terms: Ints) -> None:
        """Add terms of answers; negated terms remove an answer."""
        self._sums += terms

    def accuracy(self, scored: int, report: MethodReport) -> MeanBounds | None:
        """Return the lowest, expected and highest accuracy of scored and open answers."""
        found = 0.0 if report.predicted.accuracy is None else report.predicted.accuracy
        return self._bounds(scored, found, 0.0, self._value(TOP), float(self.count))

    def brier(self, scored: int, report: MethodReport, n_known: int) -> MeanBounds | None:
        """Return the best, expected and worst Brier score of scored and open answers."""
        found = 0.0 if report.brier is None else report.brier
        factor = brier_factor(n_known)
        values = (factor * self._value(place) for place in (BEST, EXPECTED, WORST))
        return self._bounds(scored, found, *values)

    def _bounds(
        self, scored: int, found: float, least: float, expected: float, most: float
    ) -> MeanBounds | None:
        total = scored + self.count
        if not total:
            return None
        known = found * scored
        return MeanBounds(
            (known + least) / total, (known + expected) / total, (known + most) / total
        )

    def _value(self, place: int) -> float:
        return int(self._sums[place]) / _UNIT


def _brier_sum_by_outcome(probabilities: Floats) -> Floats:
    """Return the sum over classes of the squared error, of each row for each possible label."""
    if probabilities.shape[1] == 2:
        second = probabilities[:, 1:]
        first = 1.0 - second
        return 2.0 * np.concatenate([second * second, first * first], axis=1)
    squares = _sum_of_columns(probabilities * probabilities)
    scores: Floats = squares[:, None] - 2.0 * probabilities + 1.0
    return scores


def _sum_of_columns(values: Floats) -> Floats:
    """Return row sums, added in column order: the bits do not depend on the number of rows."""
    total = np.zeros(len(values))
    for k in range(values.shape[1]):
        total += values[:, k]
    return total
