"""The headline: the probability and the interval that an answer puts first."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from online_svm.types import Arrays, Floats, Ints
from online_svm.venn.protocol import VennAnswers


@dataclass(frozen=True, slots=True, eq=False)
class HeadlineAnswers:
    """Headline of m examples over c classes.

    Attributes
    ----------
    point, lower, upper : ndarray of shape (m, c)
        Probability and interval of each class; `lower <= point <= upper`, rows of `point` sum to
        one.
    """

    point: Floats
    lower: Floats
    upper: Floats

    def labels(self) -> Ints:
        """Return the column of the largest probability of each row, shape (m,).

        Examples
        --------
        >>> half = np.array([[0.25, 0.75]])
        >>> HeadlineAnswers(half, half, half).labels().tolist()
        [1]
        """
        labels: Ints = self.point.argmax(axis=1).astype(np.int64, copy=False)
        return labels


def held_answers(point: Floats, venn: VennAnswers) -> HeadlineAnswers:
    """Return points with the Venn hull as interval, widened to hold them.

    Examples
    --------
    >>> venn = VennAnswers.counted(np.array([[1, 2]]), np.array([0]))
    >>> held_answers(np.array([[0.1, 0.9]]), venn).lower.tolist()
    [[0.1, 0.5]]
    """
    return HeadlineAnswers(point, np.minimum(venn.lower, point), np.maximum(venn.upper, point))


class Headline(Protocol):
    """A way to make the headline of an answer from scores and the Venn predictor's answer."""

    @property
    def method(self) -> str:
        """Its name, as answers give it."""

    @property
    def interval_level(self) -> float | None:
        """Stated coverage of the interval; None where it is the Venn hull."""

    def fit(self, scores: Floats, columns: Ints) -> None:
        """Fit to the calibration set: its scores and class columns, of known classes."""

    def follow(self, before: "Headline") -> None:
        """Take over what outlives a model from the headline of the model before."""

    def answer(self, scores: Floats, venn: VennAnswers, columns: Ints) -> HeadlineAnswers:
        """Answer rows in turn; each labelled one may be learned after its answer.

        Parameters
        ----------
        scores : ndarray of shape (m, n_scores)
        venn : VennAnswers
            Of the same rows.
        columns : ndarray of shape (m,)
            Class columns of the labels; -1 where there is none.
        """

    def state(self) -> Arrays:
        """Return what a snapshot needs of it."""


class VennHeadline:
    """The Venn predictor's own: the mean over the multiprobability, and its hull.

    Examples
    --------
    >>> venn = VennAnswers.counted(np.array([[1, 2]]), np.array([0]))
    >>> said = VennHeadline().answer(np.array([[0.5]]), venn, np.array([-1]))
    >>> said.lower.tolist(), said.point.tolist(), said.upper.tolist()
    ([[0.25, 0.5]], [[0.375, 0.625]], [[0.5, 0.75]])
    """

    method = "venn"
    interval_level = None

    def fit(self, _scores: Floats, _columns: Ints) -> None:
        """Do nothing: the calibration set itself answers."""

    def follow(self, _before: Headline) -> None:
        """Do nothing: there is nothing to take over."""

    def answer(self, _scores: Floats, venn: VennAnswers, _columns: Ints) -> HeadlineAnswers:
        """Return the Venn predictor's answers as they are."""
        return HeadlineAnswers(venn.point, venn.lower, venn.upper)

    def state(self) -> Arrays:
        """Return nothing."""
        return {}
