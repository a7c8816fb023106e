"""Answers of the model or given with the input, and their labels, for windows and monitors."""

from dataclasses import dataclass, fields, replace
from typing import NamedTuple, Self

import numpy as np

from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Bools, Floats, Ints


class SettledRows(NamedTuple):
    """Examples that were learned or never will be, in this order, with the answers they got."""

    block: PredictionBlock  # the original answers
    codes: Ints  # shape (m,); codes of the labels; -1 without a label
    # Shape (m,); column of the true label in the classes of the block; -1 without a label.
    columns: Ints
    slices: Ints  # shape (m, n_slices); codes of the slice values
    X: Floats  # shape (m, n_features)
    before: Ints  # shape (m,); examples learned before each row

    def taken(self, chosen: Bools) -> "SettledRows":
        """Return the chosen rows."""
        return SettledRows(
            self.block.taken(chosen),
            self.codes[chosen],
            self.columns[chosen],
            self.slices[chosen],
            self.X[chosen],
            self.before[chosen],
        )


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Answers of one model to m labelled examples, in the order in which these were learned.

    The division of examples into such blocks must not change a bit of any result.
    """

    n: Ints  # shape (m,); examples learned before each row was answered
    # The K labels, sorted; a last None is the slot of unseen labels.
    classes: tuple[str | None, ...]
    columns: Ints  # shape (m,); index of the true label in `classes`; never negative
    point: Floats  # shape (m, K); published probability of each class
    lower: Floats  # shape (m, K); its interval
    upper: Floats
    venn_point: Floats  # shape (m, K); mean over the multiprobability of the Venn predictor
    scores: Floats  # shape (m, S); decision values of the model that answered
    category: Ints  # shape (m,); category of the taxonomy
    model: int  # version of the model that answered
    slices: Ints | None = None  # shape (m, n_slices); codes of the named slices
    X: Floats | None = None  # shape (m, n_features); the features, if they are still held
    # With a label budget, both of shape (m,): the number of examples for which each label stands,
    # and the draw that decided that the label is wanted.
    weights: Floats | None = None
    draws: Floats | None = None
    # Shape (m,); calibration examples in the category; None if no count is behind the probabilities
    category_size: Ints | None = None

    def __len__(self) -> int:
        return len(self.n)

    @property
    def own(self) -> Ints:
        """Index of the SVM's own class, which does not depend on calibration data, shape (m,).

        If a known class has no machine, it is the most probable class instead.
        """
        known = len(self.classes) - (self.classes[-1] is None)
        if self.scores.shape[1] == 1 and known == 2:
            return np.asarray(self.scores[:, 0] > 0.0, dtype=np.int64)
        values = self.scores if self.scores.shape[1] == known else self.point
        return np.asarray(np.argmax(values, axis=1), dtype=np.int64)

    @classmethod
    def of(
        cls,
        block: PredictionBlock,
        columns: Ints,
        slices: Ints | None = None,
        X: Floats | None = None,
    ) -> Self:
        """Return the labelled rows of a block that a model answered.

        `block`: with status "ok".
        `columns`, shape (m,): index of the true label in `block.classes`; -1 for unlabelled rows.
        """
        rows = cls(
            block.n, block.classes, columns, block.point, block.lower, block.upper,
            block.venn_point, block.scores, block.category, block.model, slices, X,
            None if block.label_probability is None else np.rint(1.0 / block.label_probability),
            block.label_draw, block.category_size,
        )  # fmt: skip
        has_label = columns >= 0
        return rows if has_label.all() else rows.taken(has_label)

    def repeated(self) -> Self:
        """Return each row as often as its label stands for examples; self without weights."""
        if self.weights is None:
            return self
        return self.taken(np.repeat(np.arange(len(self)), self.weights.astype(np.int64)))

    def part(self, begin: int, stop: int) -> Self:
        """Return rows begin ... stop - 1 as views."""
        return self.taken(slice(begin, stop))

    def taken(self, chosen: slice | Bools | Ints) -> Self:
        """Return the chosen rows in order."""
        given = {name: getattr(self, name) for name in _ARRAYS}
        return replace(self, **{k: a[chosen] for k, a in given.items() if a is not None})


_ARRAYS = tuple(
    f.name for f in fields(ScoredRows) if f.type in (Floats, Ints, Floats | None, Ints | None)
)
"""Attributes with one row per example."""
