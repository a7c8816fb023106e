"""Define the answers of Venn sets, and predict by label counts in categories fixed given T.

For a category k with label counts N_k[y], their sum N and c classes, the distribution for the
assumed label j is p^j(y) = (N_k[y] + [y = j]) / (N + 1) (Lambrou et al. 2012, eq. 2, including the
example itself). Lower, upper and point probabilities are minimum, maximum and mean over j.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from typing_extensions import override

from online_svm.calibration.diagram import equal_count_bins, midpoints, pool_ties
from online_svm.compiled.kernel import kernel
from online_svm.stream.available_examples import SlidingArray
from online_svm.types import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class VennAnswers:
    """Answers to m examples over c classes, each before the example is added."""

    point: Floats  # shape (m, c): mean over the multiprobability, for each class
    lower: Floats  # shape (m, c): minimum
    upper: Floats  # shape (m, c): maximum
    category: Ints  # shape (m,): category of each example
    size: Ints  # shape (m,): N, the number of calibration examples in it

    @classmethod
    def counted(cls, label_counts: Ints, categories: Ints) -> Self:
        """Return the answers by label counts.

        `label_counts`, shape (m, c), are those in the category of each example before it is added.
        """
        size = label_counts.sum(axis=1)
        bounds = intervals(label_counts, size)
        return cls(
            mean_points(label_counts, size), bounds[:, :, 0], bounds[:, :, 1], categories, size
        )

    @classmethod
    def vacuous(cls, m: int, n_classes: int) -> Self:
        """Return the answers of empty categories: [0, 1] for every class."""
        return cls.counted(np.zeros((m, n_classes), dtype=np.int64), np.zeros(m, dtype=np.int64))


class VennSet(ABC):
    """A calibration set that answers examples by a taxonomy, and adds the labelled ones.

    The examples, with scores of shape (n, n_scores), are in order of arrival; the newest `limit`
    are kept, or all if `limit` is None.
    """

    def __init__(self, scores: Floats, codes: Ints, limit: int | None) -> None:
        first = 0 if limit is None else max(0, len(codes) - limit)
        self._scores, self._codes = SlidingArray(scores[first:]), SlidingArray(codes[first:])
        self._limit = -1 if limit is None else limit

    @property
    def is_multiprobability(self) -> bool:
        """Whether an answer has one distribution for each assumed label."""
        return True

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
        """Answer rows of `scores` in turn; add each after its answer, unless its code is -1."""

    @abstractmethod
    def multiprobabilities(self, scores: Floats) -> Floats:
        """Return p^j(y) at [row, j, y], shape (m, c, c); no row is added.

        Raises InvalidInput if the taxonomy has no multiprobability for this number of classes.
        """

    def _join(self, scores: Floats, codes: Ints) -> int:
        """Add the labelled rows; return the number of examples before."""
        held, joins = len(self._codes), codes >= 0
        self._scores.append(scores[joins])
        self._codes.append(codes[joins])
        return held

    def _leave(self, count: int) -> None:
        self._scores.drop_before(self._scores.first + count)
        self._codes.drop_before(self._codes.first + count)


def intervals(counts: Ints, size: Ints | None = None) -> Floats:
    """Return lower and upper probabilities, shape (n, c, 2), for rows of counts, shape (n, c).

    An empty category gives [0, 1]. `size` is N of each row, if already known.
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

    This is the paper's point probability (its eq. 3).
    """
    c = counts.shape[1]
    points: Floats = (counts + 1.0 / c) / _totals(counts, size)
    return points


def _totals(counts: Ints, size: Ints | None) -> Ints:
    totals: Ints = (counts.sum(axis=1) if size is None else size)[:, None] + 1
    return totals


class Taxonomy:
    """The SVM's own class, divided by the quantile of a strength among the examples of T.

    The class is given by the sign of a single score, or of the largest score; ties go to the first
    class. Without a strength this is the taxonomy of Lambrou et al. (2012, section 3.2). A
    `strength`, `class_scores` or `margins`, is a function with one value for each row.

    The edges between the quantiles come from the scores of T, so that the taxonomy is fixed given
    T. These scores are optimistic: if the machine fits T closely, most other examples have a lower
    strength than nearly all of T and share the lowest quantile. `RankedSet` has no such bias.
    """

    def __init__(
        self,
        n_classes: int,
        n_bins: int = 1,
        strength: Callable[[Floats], Floats] | None = None,
        training_scores: Floats | None = None,
    ) -> None:
        self.n_categories = n_classes * n_bins
        self._n_bins = n_bins
        self._strength = strength
        self._edges: list[Floats] = []
        if strength is not None and training_scores is not None:
            own, values = svm_classes(training_scores), strength(training_scores)
            self._edges = [_edges(values[own == k], n_bins) for k in range(n_classes)]

    def categories(self, scores: Floats) -> Ints:
        """Return class times `n_bins` plus quantile, for rows of shape (n, 1) or (n, K)."""
        own = svm_classes(scores)
        if self._strength is None:
            return own
        values, categories = self._strength(scores), own * self._n_bins
        for k, edges in enumerate(self._edges):
            is_own = own == k
            categories[is_own] += np.searchsorted(edges, values[is_own])
        return categories


def svm_classes(scores: Floats) -> Ints:
    """Return the index of the SVM's own class for scores of shape (n, 1) or (n, K)."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.int64)
    largest: Ints = scores.argmax(axis=1).astype(np.int64, copy=False)
    return largest


def class_scores(scores: Floats) -> Floats:
    """Return the score of the SVM's own class, shape (n,): the absolute value of a single score."""
    single = scores.shape[1] == 1
    strength: Floats = np.abs(scores[:, 0]) if single else scores.max(axis=1)
    return strength


def margins(scores: Floats) -> Floats:
    """Return the largest score minus the second-largest, shape (n,); the size of a single score."""
    if scores.shape[1] == 1:
        return class_scores(scores)
    best_two = np.sort(scores, axis=1)[:, -2:]
    ahead: Floats = best_two[:, 1] - best_two[:, 0]
    return ahead


def _edges(values: Floats, n_bins: int) -> Floats:
    """Return the inclusive upper edges of all bins but the last; ties reduce their number."""
    bins = equal_count_bins(pool_ties(values, np.zeros(len(values), dtype=np.bool_)), n_bins)
    return midpoints(bins.upper[:-1], bins.lower[1:])


class CountedSet(VennSet):
    """Counts labels by category (Lambrou et al. 2012, eq. 2).

    `counts`, shape (n_categories, n_classes), are the N_k[y].
    """

    def __init__(
        self, taxonomy: Taxonomy, scores: Floats, codes: Ints, n_classes: int, limit: int | None
    ) -> None:
        super().__init__(scores, codes, limit)
        self.taxonomy = taxonomy
        self._categories = SlidingArray(taxonomy.categories(self.scores))
        cells = self._categories.held * n_classes + self.codes
        shape = (taxonomy.n_categories, n_classes)
        self.counts: Ints = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)

    @override
    def answer(self, scores: Floats, codes: Ints) -> VennAnswers:
        categories = self.taxonomy.categories(scores)
        if (codes < 0).all():
            return VennAnswers.counted(self.counts[categories], categories)
        size = self._join(scores, codes)
        self._categories.append(categories[codes >= 0])
        label_counts = np.empty((len(codes), self.counts.shape[1]), dtype=np.int64)
        held = self._categories.held, self.codes, size, self._limit
        gone = _answer((categories, codes), held, self.counts, label_counts)
        self._leave(gone)
        self._categories.drop_before(self._categories.first + gone)
        return VennAnswers.counted(label_counts, categories)

    @override
    def multiprobabilities(self, scores: Floats) -> Floats:
        return multiprobabilities(self.counts[self.taxonomy.categories(scores)])


@kernel
def _answer(
    rows: tuple[Ints, Ints], held: tuple[Ints, Ints, int, int], counts: Ints, label_counts: Ints
) -> int:
    """Answer and add rows in turn; return how many of the held examples left.

    `rows` are categories and label codes, shape (m,). `held` are categories and label codes of the
    held and then of the added examples, the number of the former, and the limit. `label_counts`,
    shape (m, n_classes), receives the counts of the category before each example is added.
    """
