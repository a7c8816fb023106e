"""How often an event happens, where few answers ever get a label.

The announced probability stands in for the label (Angelopoulos et al. 2023, "Prediction-powered
inference"): the mean of y is that of p, which is known for every answer, plus the mean of y - p,
which is estimated from those that were labelled. The second varies less than y does, the less the
sharper p is; a p that is wrong costs width, and no validity.
"""

from typing import Self

import numpy as np

from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.metrics.sequential.mixture_boundary import boundary
from online_svm.storage.arrays import check_floats
from online_svm.types import Arrays, Floats


class PredictionPoweredMean:
    """Mean of y over all answers, from the probabilities of all and the labels of some.

    Parameters
    ----------
    rate : float
        Probability that an answer is labelled, in (0, 1]; whether it is must not depend on y.
    level : float
        One minus the confidence.

    Raises
    ------
    InvalidInput
        If a parameter is out of range.

    Examples
    --------
    >>> mean = PredictionPoweredMean(rate=0.5, level=0.05)
    >>> mean.update(np.full(4000, 0.25), np.tile([1.0, np.nan, 0.0, np.nan], 1000))
    >>> lower, estimate, upper = mean.interval()
    >>> estimate, lower < 0.5 < upper
    (0.5, True)
    """

    def __init__(self, rate: float, level: float) -> None:
        if not (0.0 < rate <= 1.0 and 0.0 < level < 1.0):
            raise InvalidInput(
                f"rate, level: must lie in (0, 1] and (0, 1), got {rate} and {level}"
            )
        self.rate, self.level = rate, level
        self._sums = np.zeros(4)  # answers, sum of p, sums of y - p and of its square where known

    def update(self, probabilities: Floats, labels: Floats) -> None:
        """Add answers: P(y = 1), and y where it is known, else NaN; both of shape (m,)."""
        misses = labels - probabilities
        known = misses[~np.isnan(misses)]
        added = (np.ones(len(labels)), probabilities, known, known * known)
        self._sums[:] = [_in_order(*part) for part in zip(self._sums, added, strict=True)]

    def interval(self) -> tuple[float, float, float]:
        """Return lower end, estimate and upper end of the mean of y; holds at all times."""
        count, announced, misses, squares = self._sums.tolist()
        if not count:
            return 0.0, 0.5, 1.0
        estimate = (announced + misses / self.rate) / count
        reach = boundary(squares, self.level / 2) / (self.rate * count)
        return max(0.0, estimate - reach), estimate, min(1.0, estimate + reach)

    def state(self) -> Arrays:
        """Return the sums."""
        return {"sums": self._sums.copy()}

    @classmethod
    def from_state(cls, state: Arrays, rate: float, level: float) -> Self:
        """Return the mean that `state` describes.

        Raises
        ------
        InvalidSnapshot
            If the array is absent or does not fit.
        """
        restored = cls(rate, level)
        try:
            check_floats(state, "sums", (4,))
        except (KeyError, ValueError) as error:
            raise InvalidSnapshot(f"mean: {error}") from error
        restored._sums = state["sums"].copy()
        return restored


def _in_order(total: float, values: Floats) -> float:
    """Return the sum of all, added one by one: the same bits however values are cut into calls."""
    return float(np.add.accumulate(np.append(total, values))[-1])
