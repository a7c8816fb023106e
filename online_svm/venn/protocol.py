"""Venn predictors, their answers, and the probabilities that counts stand for.

For category k with label counts N_k[y], N their sum and c classes, the distribution for the
assumed label j is p^j(y) = (N_k[y] + [y = j]) / (N + 1) (Lambrou et al. 2012, eq. 2, with the
example itself counted). Lower, upper and point probabilities follow from it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np

from online_svm.stream.tail import Tail
from online_svm.types import Arrays, Floats, Ints


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


class VennSet(ABC):
    """A calibration set that answers examples by one taxonomy, and grows by those with labels.

    Parameters
    ----------
    scores : ndarray of shape (n, n_scores)
        Of the calibration examples, in order of arrival.
    codes : ndarray of shape (n,)
        Their label codes.
    limit : int, optional
        The newest examples that are kept; all without it.
    """

    def __init__(self, scores: Floats, codes: Ints, limit: int | None) -> None:
        first = 0 if limit is None else max(0, len(codes) - limit)
        self._scores, self._codes = Tail(scores[first:]), Tail(codes[first:])
        self._limit = -1 if limit is None else limit

    @property
    def reason(self) -> str | None:
        """Why the answers are no multiprobability; None where they are."""
        return None

    @property
    def scores(self) -> Floats:
        """Scores held in order of arrival, shape (n, n_scores)."""
        return self._scores.held

    @property
    def codes(self) -> Ints:
        """Label codes held in order of arrival, shape (n,)."""
        return self._codes.held

    @abstractmethod
    def answer(self, scores: Floats, codes: Ints) -> VennAnswers:
        """Answer rows of `scores` in turn; each joins after its answer, unless its code is -1."""

    @abstractmethod
    def multiprobabilities(self, scores: Floats) -> Floats:
        """Return p^j(y) at [row, j, y], shape (m, c, c); nothing joins.

        Raises
        ------
        InvalidInput
            If the taxonomy has no multiprobability for this number of classes.
        """

    def state(self) -> Arrays:
        """Return the examples held: arrays that `VennScheme.from_state` continues from."""
        return {"scores": self.scores, "codes": self.codes}

    def _join(self, scores: Floats, codes: Ints) -> int:
        """Hold the rows that have a label too; return how many were held before."""
        held, joins = len(self._codes), codes >= 0
        self._scores.append(scores[joins])
        self._codes.append(codes[joins])
        return held

    def _leave(self, count: int) -> None:
        """Give up the oldest examples."""
        self._scores.drop_before(self._scores.first + count)
        self._codes.drop_before(self._codes.first + count)


def intervals(counts: Ints, size: Ints | None = None) -> Floats:
    """Return lower and upper probabilities, shape (n, c, 2), for rows of counts, shape (n, c).

    An empty category gives [0, 1]. `size` is N of each row, where it is known already.

    Examples
    --------
    >>> intervals(np.array([[1, 2], [0, 0]])).tolist()
    [[[0.25, 0.5], [0.5, 0.75]], [[0.0, 1.0], [0.0, 1.0]]]
    """
    total = _totals(counts, size)
    bounds = np.empty((*counts.shape, 2))
    np.divide(counts, total, out=bounds[:, :, 0])
    np.divide(counts + 1, total, out=bounds[:, :, 1])
    return bounds


def multiprobabilities(counts: Ints) -> Floats:
    """Return p^j(y) at [row, j, y], shape (n, c, c), for rows of counts, shape (n, c).

    Examples
    --------
    >>> multiprobabilities(np.array([[1, 2]])).tolist()
    [[[0.5, 0.5], [0.25, 0.75]]]
    """
    c = counts.shape[1]
    total = counts.sum(axis=1)[:, None, None] + 1
    joined: Floats = (counts[:, None, :] + np.eye(c, dtype=np.int64)) / total
    return joined


def mean_points(counts: Ints, size: Ints | None = None) -> Floats:
    """Return the mean over the c distributions, (N_k[y] + 1/c) / (N + 1), shape (n, c).

    This is the paper's point probability (its eq. 3). `size` is N of each row, where it is known.

    Examples
    --------
    >>> mean_points(np.array([[1, 2]])).tolist()
    [[0.375, 0.625]]
    """
    c = counts.shape[1]
    points: Floats = (counts + 1.0 / c) / _totals(counts, size)
    return points


def _totals(counts: Ints, size: Ints | None) -> Ints:
    """Return N + 1 of each row, shape (n, 1)."""
    totals: Ints = (counts.sum(axis=1) if size is None else size)[:, None] + 1
    return totals
