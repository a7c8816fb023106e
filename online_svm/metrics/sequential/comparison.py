"""Which of two predictors loses less, looked at as often as one likes.

The e-process of Choe & Ramdas (2023, "Comparing sequential forecasters"), with the mixture of
`mixture_boundary`. Its null: up to each example, the first has lost no more on average, given what
came before. That needs no i.i.d. examples, and says nothing of examples to come.
"""

from dataclasses import dataclass

import numpy as np

from online_svm.metrics.sequential.bounded_mean import BoundedMean
from online_svm.types import Bools, Floats


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """Mean of the first's losses less the second's, with its confidence sequence."""

    lower: float
    estimate: float
    upper: float


class ScoreComparison:
    """Tests of whether the first or the second of two loses less.

    Parameters
    ----------
    bound : float
        Both losses lie in [0, bound].
    level : float
        Of each test; and one minus the confidence of the difference.

    Raises
    ------
    InvalidInput
        If a parameter is out of range.

    Examples
    --------
    >>> comparison = ScoreComparison(bound=1.0, level=0.05)
    >>> comparison.update(np.full(400, 0.30), np.full(400, 0.20))
    >>> comparison.rejected  # is the first better? is the second?
    array([False,  True])
    >>> round(comparison.difference.estimate, 2)
    0.1
    """

    def __init__(self, bound: float, level: float) -> None:
        self._first_loses = BoundedMean(-bound, bound, level)
        self._second_loses = BoundedMean(-bound, bound, level)

    def update(self, first: Floats, second: Floats) -> None:
        """Add the losses of both on the same examples, in order, shape (m,).

        Raises
        ------
        InvalidInput
            If a difference is beyond the bound; nothing is then added.
        """
        self._first_loses.update(first - second)
        self._second_loses.update(second - first)

    @property
    def count(self) -> int:
        """Examples so far."""
        return self._first_loses.count

    @property
    def difference(self) -> MeanDifference:
        """Mean of the first's losses less the second's."""
        return MeanDifference(*self._first_loses.interval())

    @property
    def log_wealth(self) -> Floats:
        """Natural logarithms: that the first is better, that the second is; shape (2,)."""
        return np.concatenate([self._second_loses.log_wealth, self._first_loses.log_wealth])

    @property
    def rejected(self) -> Bools:
        """Whether the first was found better, and whether the second was; shape (2,)."""
        return np.concatenate([self._second_loses.rejected, self._first_loses.rejected])
