"""The protocols of a Venn predictor and of its answers."""

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from online_svm.types import Arrays, Floats, Ints
from online_svm.venn.multiprobability import intervals, mean_points


@dataclass(frozen=True, slots=True, eq=False)
class VennAnswers:
    """Answers to m examples over c classes, each given before its own label joined.

    Attributes
    ----------
    point, lower, upper : ndarray of shape (m, c)
        Mean over the multiprobability, and its least and greatest value, for each class.
    category, size : ndarray of shape (m,)
        Category of each example, and N, the calibration examples in it.
    """

    point: Floats
    lower: Floats
    upper: Floats
    category: Ints
    size: Ints

    @classmethod
    def counted(cls, met: Ints, categories: Ints) -> Self:
        """Return the answers of a count taxonomy from the label counts each category held.

        Parameters
        ----------
        met : ndarray of shape (m, c)
        categories : ndarray of shape (m,)

        Examples
        --------
        >>> answers = VennAnswers.counted(np.array([[1, 2]]), np.array([0]))
        >>> answers.lower.tolist(), answers.upper.tolist(), answers.size.tolist()
        ([[0.25, 0.5]], [[0.5, 0.75]], [3])
        """
        size = met.sum(axis=1)
        bounds = intervals(met, size)
        return cls(mean_points(met, size), bounds[:, :, 0], bounds[:, :, 1], categories, size)

    @classmethod
    def vacuous(cls, m: int, n_classes: int) -> Self:
        """Return the answers of empty categories: [0, 1] for every class.

        Examples
        --------
        >>> VennAnswers.vacuous(1, 2).upper.tolist()
        [[1.0, 1.0]]
        """
        return cls.counted(np.zeros((m, n_classes), dtype=np.int64), np.zeros(m, dtype=np.int64))


class VennSet(Protocol):
    """A calibration set that answers examples by one taxonomy, and grows by those with labels."""

    @property
    def reason(self) -> str | None:
        """Why the answers are no multiprobability; None where they are."""

    @property
    def scores(self) -> Floats:
        """Scores held in order of arrival, shape (n, n_scores)."""

    @property
    def codes(self) -> Ints:
        """Label codes held in order of arrival, shape (n,)."""

    def answer(self, scores: Floats, codes: Ints) -> VennAnswers:
        """Answer rows of `scores` in turn; each joins after its answer, unless its code is -1."""

    def multiprobabilities(self, scores: Floats) -> Floats:
        """Return p^j(y) at [row, j, y], shape (m, c, c); nothing joins.

        Raises
        ------
        InvalidInput
            If the taxonomy has no multiprobability for this number of classes.
        """

    def state(self) -> Arrays:
        """Return the examples held: arrays that `VennScheme.from_state` continues from."""
