"""The order in which rows are answered and learned."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from online_svm.types import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class LearningOrder:
    """Rows in the order in which they are answered and learned: each is answered, then learned.

    Attributes
    ----------
    X : ndarray of shape (m, n_features)
    codes : ndarray of shape (m,)
        Label codes; -1 where there is no label.
    probs : ndarray of shape (m,)
        Probabilities in the place of labels; NaN where there is none.
    learns : ndarray of bool, shape (m,)
        Whether a row has a label or a probability.
    before : ndarray of shape (m,)
        Examples learned before each row.

    Examples
    --------
    >>> codes, probs = np.array([0, -1, 1]), np.full(3, np.nan)
    >>> order = LearningOrder.at_once(np.zeros((3, 2)), codes, probs, n=7)
    >>> order.before.tolist(), order.part(1, 3).learns.tolist(), order.part(0, 2).after
    ([7, 8, 8], [False, True], 8)
    """

    X: Floats
    codes: Ints
    probs: Floats
    learns: Bools
    before: Ints

    @classmethod
    def at_once(cls, X: Floats, codes: Ints, probs: Floats, n: int) -> Self:
        """Return the order in which a row is learned right after its answer; n were before."""
        learns = (codes >= 0) | ~np.isnan(probs)
        return cls(X, codes, probs, learns, n + np.cumsum(learns) - learns)

    def __len__(self) -> int:
        return len(self.before)

    @property
    def after(self) -> int:
        """Examples learned with the last row, of which there must be one."""
        return int(self.before[-1]) + int(self.learns[-1])

    def part(self, begin: int, stop: int) -> "LearningOrder":
        """Return rows begin ... stop - 1; the arrays are views."""
        rows = slice(begin, stop)
        return LearningOrder(
            self.X[rows], self.codes[rows], self.probs[rows], self.learns[rows], self.before[rows]
        )

    def learned(self) -> "LearningOrder":
        """Return the rows that are learned."""
        if self.learns.all():
            return self
        rows = self.learns
        return LearningOrder(
            self.X[rows], self.codes[rows], self.probs[rows], self.learns[rows], self.before[rows]
        )
