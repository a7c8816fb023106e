"""ScoredRows: answers beside the labels that came for them, as windows and monitors take them."""

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Answers of m labelled examples, in the order in which the examples were learned.

    All rows were answered by one model. Where a stream of rows is cut into such pieces must change
    nothing: who consumes them gives the same bits however they are cut.

    Attributes
    ----------
    n : ndarray of shape (m,)
        Examples learned before each row was answered.
    classes : tuple of (str or None)
        The K labels, sorted; a last None is the slot of labels not seen yet.
    columns : ndarray of shape (m,)
        Index of the true label in `classes`; never negative.
    point, lower, upper : ndarray of shape (m, K)
        Probability and interval of each class that were announced first.
    venn_point : ndarray of shape (m, K)
        Mean over the distributions of the Venn predictor.
    scores : ndarray of shape (m, S)
        Decision values of the model that answered.
    category : ndarray of shape (m,)
        Category of the taxonomy.
    model : int
        Version of the model that answered.
    slices : ndarray of int of shape (m, n_slices), or None
        Codes of the named slices.
    X : ndarray of shape (m, n_features), or None
        The features, where they are still held.

    Examples
    --------
    >>> both = np.array([[0.2, 0.8], [0.6, 0.4]])
    >>> rows = ScoredRows(np.array([5, 6]), ("a", "b"), np.array([1, 0]), both, both, both, both,
    ...                   np.zeros((2, 1)), np.zeros(2, dtype=np.int64), model=1)
    >>> len(rows), rows.part(1, 2).n
    (2, array([6]))
    """

    n: Ints
    classes: tuple[str | None, ...]
    columns: Ints
    point: Floats
    lower: Floats
    upper: Floats
    venn_point: Floats
    scores: Floats
    category: Ints
    model: int
    slices: Ints | None = None
    X: Floats | None = None

    def __len__(self) -> int:
        return len(self.n)

    @property
    def own(self) -> Ints:
        """Index of the class that the scores name, shape (m,).

        No calibration data chose it, as they choose the most probable one. Where the machines are
        not of all known classes it is that one.
        """
        known = len(self.classes) - (self.classes[-1] is None)
        if self.scores.shape[1] == 1 and known == 2:
            return np.asarray(self.scores[:, 0] > 0.0, dtype=np.int64)
        of = self.scores if self.scores.shape[1] == known else self.point
        return np.asarray(np.argmax(of, axis=1), dtype=np.int64)

    @classmethod
    def of(
        cls,
        block: PredictionBlock,
        columns: Ints,
        slices: Ints | None = None,
        X: Floats | None = None,
    ) -> Self:
        """Return the labelled rows of a block that a model answered.

        Parameters
        ----------
        block : PredictionBlock
            With status "ok".
        columns : ndarray of shape (m,)
            Index of the true label in `block.classes`; -1 for rows that have none.
        slices, X : ndarray with one row an example of the block, optional
        """
        rows = cls(
            block.n,
            block.classes,
            columns,
            block.point,
            block.lower,
            block.upper,
            block.venn_point,
            block.scores,
            block.category,
            block.model,
            slices,
            X,
        )
        has_label = columns >= 0
        return rows if has_label.all() else rows.taken(has_label)

    def part(self, begin: int, stop: int) -> Self:
        """Return rows begin ... stop - 1; the arrays are views."""
        return self.taken(slice(begin, stop))

    def taken(self, chosen: slice | Bools) -> Self:
        """Return some rows, in their order."""
        given = {name: getattr(self, name) for name in _ARRAYS}
        return replace(self, **{k: a[chosen] for k, a in given.items() if a is not None})


_ARRAYS = tuple(
    f.name for f in fields(ScoredRows) if f.type in (Floats, Ints, Floats | None, Ints | None)
)
"""Attributes that have one row an example."""
