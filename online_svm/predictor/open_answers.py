"""OpenAnswers: bounds on accuracy and Brier score while labels are still to come.

Their true labels are unknown, but not what follows from each: at best and at worst, and on average
if the announced probabilities are those of the labels. The last is the estimate that NannyML calls
confidence-based performance estimation.
"""

import numpy as np

from online_svm.stream.prediction import MeanBounds, MethodReport, PredictionBlock
from online_svm.types import Floats, Ints

_UNIT = 1 << 32
"""Terms are integers in this unit: their sums are exact, so that terms can be taken away again."""

COUNT, TOP, BEST, WORST, EXPECTED = range(5)


def possible_terms(block: PredictionBlock) -> Ints:
    """Return what each row of a block adds to the sums of `OpenAnswers`, shape (m, 5).

    While warming a row adds nothing: it will not be scored.
    """
    terms = np.zeros((len(block), 5), dtype=np.int64)
    if block.status != "ok":
        return terms
    scores = _brier_by_outcome(block.point)
    expected = _sum_of_columns(block.point * scores)
    own = block.point[np.arange(len(block)), block.label]
    columns = (own, scores.min(axis=1), scores.max(axis=1), expected)
    terms[:, COUNT] = 1
    terms[:, TOP:] = np.rint(np.column_stack(columns) * _UNIT).astype(np.int64)
    return terms


class OpenAnswers:
    """Sums over the answers of a model whose labels have not come.

    Examples
    --------
    >>> OpenAnswers().count
    0
    """

    def __init__(self) -> None:
        self._sums = np.zeros(5, dtype=np.int64)

    @property
    def count(self) -> int:
        """Number of the answers."""
        return int(self._sums[COUNT])

    def add(self, terms: Ints) -> None:
        """Add terms of answers; negative ones take them away."""
        self._sums += terms

    def accuracy(self, scored: int, report: MethodReport) -> MeanBounds | None:
        """Return the least, the expected and the largest accuracy of scored and open answers."""
        found = 0.0 if report.predicted.accuracy is None else report.predicted.accuracy
        return self._bounds(scored, found, 0.0, self._value(TOP), float(self.count))

    def brier(self, scored: int, report: MethodReport) -> MeanBounds | None:
        """Return the same of the Brier score, where less is better."""
        found = 0.0 if report.brier is None else report.brier
        values = (self._value(BEST), self._value(EXPECTED), self._value(WORST))
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


def _brier_by_outcome(probabilities: Floats) -> Floats:
    """Return the Brier score of each row for each label that may turn out to be true.

    Examples
    --------
    >>> _brier_by_outcome(np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])).tolist()
    [[0.5, 0.5, 1.5], [0.0, 2.0, 2.0]]
    >>> _brier_by_outcome(np.array([[0.25, 0.75]])).tolist()
    [[0.5625, 0.0625]]
    """
    if probabilities.shape[1] == 2:
        second = probabilities[:, 1:]
        first = 1.0 - second
        return np.concatenate([second * second, first * first], axis=1)
    squares = _sum_of_columns(probabilities * probabilities)
    scores: Floats = squares[:, None] - 2.0 * probabilities + 1.0
    return scores


def _sum_of_columns(values: Floats) -> Floats:
    """Return the sum of each row, added in order: the same bits whatever the number of rows."""
    total = np.zeros(len(values))
    for k in range(values.shape[1]):
        total += values[:, k]
    return total
