"""The calibration set of one active model: scores, categories, labels, and their counts."""

from typing import TypeVar

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.types import Arrays, Floats, Ints

A = TypeVar("A", Floats, Ints)


class CalibrationSet:
    """Calibration examples in order of arrival, the oldest dropped beyond `limit`.

    Parameters
    ----------
    scores : ndarray of shape (n, n_scores)
        Scores by the active model.
    categories, codes : ndarray of shape (n,)
        Category and label code of each example.
    shape : tuple of int
        Number of categories, number of classes.
    limit : int, optional
        The newest that are kept; all without it.

    Attributes
    ----------
    counts : ndarray of int, shape (n_categories, n_classes)
        N_k[y] of the Venn taxonomy.

    Examples
    --------
    >>> held = CalibrationSet(np.zeros((3, 1)), np.array([0, 0, 1]), np.array([0, 1, 1]), (2, 2), 3)
    >>> held.counts.tolist()
    [[1, 1], [0, 1]]
    >>> held.answer(np.ones((2, 1)), np.array([1, 0]), np.array([1, -1])).tolist()
    [[0, 1], [0, 1]]
    >>> held.counts.tolist()  # the first example, category 0 and label 0, has left
    [[0, 1], [0, 2]]
    """

    def __init__(
        self,
        scores: Floats,
        categories: Ints,
        codes: Ints,
        shape: tuple[int, int],
        limit: int | None,
    ) -> None:
        first = 0 if limit is None else max(0, len(codes) - limit)
        self.limit = limit
        self._begin, self._end = 0, len(codes) - first
        self._scores = scores[first:].copy()
        self._categories = categories[first:].copy()
        self._codes = codes[first:].copy()
        cells = np.bincount(
            self._categories * shape[1] + self._codes, minlength=shape[0] * shape[1]
        )
        self.counts: Ints = cells.reshape(shape)

    def __len__(self) -> int:
        return self._end - self._begin

    @property
    def scores(self) -> Floats:
        """Scores held, shape (len, n_scores)."""
        return self._scores[self._begin : self._end]

    @property
    def categories(self) -> Ints:
        """Categories held, shape (len,)."""
        return self._categories[self._begin : self._end]

    @property
    def codes(self) -> Ints:
        """Label codes held, shape (len,)."""
        return self._codes[self._begin : self._end]

    def answer(self, scores: Floats, categories: Ints, codes: Ints) -> Ints:
        """Return the counts each example meets, in turn, then let it join if it has a label.

        Parameters
        ----------
        scores : ndarray of shape (m, n_scores)
        categories : ndarray of shape (m,)
        codes : ndarray of shape (m,)
            Label codes; -1 where there is no label.

        Returns
        -------
        ndarray of int, shape (m, n_classes)
            N_k of each example's category before its own label is counted.
        """
        joining = int(np.count_nonzero(codes >= 0))
        if joining == 0:
            return self.counts[categories]
        self._reserve(joining)
        met = np.empty((len(codes), self.counts.shape[1]), dtype=np.int64)
        limit = -1 if self.limit is None else self.limit
        self._begin, self._end = _answer(
            scores, categories, codes, self._scores, self._categories, self._codes,
            self._begin, self._end, limit, self.counts, met,
        )  # fmt: skip
        return met

    def state(self) -> Arrays:
        """Return the examples held; they suffice to count them again."""
        return {"scores": self.scores, "categories": self.categories, "codes": self.codes}

    def _reserve(self, more: int) -> None:
        """Make room at the end for `more` examples; amortised, and what left is given up."""
        if self._end + more <= len(self._codes):
            return
        size = 2 * len(self) + more + 64
        self._scores = _moved(self.scores, size)
        self._categories = _moved(self.categories, size)
        self._codes = _moved(self.codes, size)
        self._begin, self._end = 0, self._end - self._begin


def _moved(held: A, size: int) -> A:
    """Return `held` at the front of a new array of `size` rows."""
    grown = np.zeros_like(held, shape=(size, *held.shape[1:]))
    grown[: len(held)] = held
    return grown


@jit
def _answer(
    scores: Floats, categories: Ints, codes: Ints,
    held_scores: Floats, held_categories: Ints, held_codes: Ints,
    begin: int, end: int, limit: int, counts: Ints, met: Ints,
) -> tuple[int, int]:  # fmt: skip
    for i in range(len(codes)):
        # 1. Answer: the label counts of its category.
        k = categories[i]
        for y in range(counts.shape[1]):
            met[i, y] = counts[k, y]
        if codes[i] < 0:
            continue
        # 2. Join the calibration set.
        for s in range(scores.shape[1]):
            held_scores[end, s] = scores[i, s]
        held_categories[end], held_codes[end] = k, codes[i]
        counts[k, codes[i]] += 1
        end += 1
        # 3. The oldest leaves where the window is full.
        if limit >= 0 and end - begin > limit:
            counts[held_categories[begin], held_codes[begin]] -= 1
            begin += 1
    return begin, end
