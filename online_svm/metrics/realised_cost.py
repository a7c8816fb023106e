"""RealisedCost: what decisions came to, beside what simple rules would have."""

from typing import Self

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.config import PredictorConfig
from online_svm.metrics.cost_matrix import CostMatrix
from online_svm.storage.fields import Fields, floats, ints, one
from online_svm.stream.prediction import CostReport
from online_svm.types import Arrays, Floats, Ints

_FIELDS = Fields(floats("_always"), ints("_taken"), floats("_sums"), one("_scored"))

_OWN, _BY_LABEL = range(2)


class RealisedCost:
    """Running sums of what actions cost, added one example after the other.

    Parameters
    ----------
    matrix : CostMatrix

    Attributes
    ----------
    matrix : CostMatrix

    Examples
    --------
    >>> costs = {"bad": {"bad": 0, "good": 5}, "good": {"bad": 1, "good": 0}}
    >>> realised = RealisedCost(CostMatrix(costs, ("bad", "good")))
    >>> p = np.array([[0.25, 0.75], [0.1, 0.9]])
    >>> realised.update(p, p, p, np.array([0, 1]))
    >>> report = realised.report()
    >>> report.mean, report.by_label, report.always
    (0.0, 2.5, {'bad': 0.5, 'good': 2.5})
    """

    def __init__(self, matrix: CostMatrix) -> None:
        self.matrix = matrix
        self._scored = 0
        self._always = np.zeros(len(matrix.actions))
        self._taken = np.zeros(len(matrix.actions), dtype=np.int64)
        self._sums = np.zeros(2)

    @classmethod
    def of(cls, config: PredictorConfig) -> "RealisedCost | None":
        """Return the sums of a configuration at their beginning; None if it has no costs.

        Examples
        --------
        >>> RealisedCost.of(PredictorConfig()) is None
        True
        """
        matrix = CostMatrix.of(config)
        return None if matrix is None else cls(matrix)

    def update(self, point: Floats, lower: Floats, upper: Floats, columns: Ints) -> None:
        """Add examples in the order in which they are learned.

        Parameters
        ----------
        point, lower, upper : ndarray of shape (m, n_classes)
            As they were announced.
        columns : ndarray of int of shape (m,)
            Index of the true label; never negative.
        """
        action = self.matrix.decide(point, lower, upper).action
        label = np.asarray(point.argmax(axis=1), dtype=np.int64)
        taken = np.stack([action, label, columns], axis=1)
        _add(self.matrix.costs, taken, self._always, self._taken, self._sums)
        self._scored += len(columns)

    def report(self) -> CostReport:
        """Return the means so far; they are None before the first example.

        Examples
        --------
        >>> costs = {"a": {"a": 0, "b": 1}, "b": {"a": 1, "b": 0}}
        >>> RealisedCost(CostMatrix(costs, ("a", "b"))).report().mean is None
        True
        """
        actions, scored = self.matrix.actions, self._scored
        return CostReport(
            scored=scored,
            mean=self._mean(self._sums[_OWN]),
            by_label=self._mean(self._sums[_BY_LABEL]),
            always={name: self._mean(self._always[i]) for i, name in enumerate(actions)},
            taken={name: int(self._taken[i]) for i, name in enumerate(actions)},
        )

    def state(self) -> Arrays:
        """Return the sums as arrays."""
        return _FIELDS.arrays_of(self)

    @classmethod
    def from_state(cls, state: Arrays, matrix: CostMatrix) -> Self:
        """Return the sums that `state` describes.

        Raises
        ------
        InvalidSnapshot
            If an array is absent or has another type or length.
        """
        restored = cls(matrix)
        _FIELDS.fill(restored, None, state)
        return restored

    def _mean(self, total: float) -> float | None:
        return float(total) / self._scored if self._scored else None


@jit
def _add(costs: Floats, rows: Ints, always: Floats, taken: Ints, sums: Floats) -> None:
    """Add what each row came to, in order: rows of action, predicted label and true label."""
    for i in range(len(rows)):
        action, label, true = rows[i]
        taken[action] += 1
        sums[_OWN] += costs[true, action]
        sums[_BY_LABEL] += costs[true, label]
        for other in range(costs.shape[1]):
            always[other] += costs[true, other]
