"""Label history: an expert that corrects probabilities by what the last labels were.

Where labels depend on the ones before them, a model that knows only the features is too cautious.
The expert is a softmax regression over the classes. Its features of a class are

- the logarithm of the given probability,
- the logarithms of the frequency of the class, at half-lives of 1, 5 and 50 labels,
- the mean of label (0 or 1) minus probability, at half-lives of 5 and 50 labels, and
- the logarithm of its frequency after the last label.

All classes share the weights. They start at the unchanged probability, and each label moves them by
a Newton step with a memory of 1,000 labels.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.predictor.expert import Expert, RowsToLearn
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, floats, ints
from online_svm.types import Floats, Ints

N_FEATURES = 7

RIDGE = 10.0
"""Precision of the prior of each weight; as in label_history.c."""


class HistoryState(NamedTuple):
    """Statistics of the labels, and the weights; updated in place."""

    frequencies: Floats  # shape (3, n_classes); each row sums to one
    residuals: Floats  # shape (2, n_classes)
    transitions: Floats  # shape (n_classes, n_classes); counts of each label after another
    weights: Floats  # shape (N_FEATURES,)
    precision: Floats  # shape (N_FEATURES, N_FEATURES); of the weights
    last: Ints  # shape (1,); column of the last label, or -1


class LabelHistory(Expert):
    """The expert of a stream with `n_classes` classes.

    Examples
    --------
    >>> history, columns = LabelHistory(2), np.arange(300) % 2  # the label alternates
    >>> rows = RowsToLearn(np.empty((300, 0)), None, columns, None, sources=np.full(300, -1))
    >>> history.answer(rows, {"average": np.full((300, 2), 0.5)})[0][-1].round(2).tolist()
    [0.01, 0.99]
    """

    outputs = ("label-history",)
    corrects = True
    n_stored = N_FEATURES
    _stored = StateSchema(
        floats("_state.frequencies", least=0.0), floats("_state.residuals"),
        floats("_state.transitions", least=0.0), floats("_state.weights"),
        floats("_state.precision"), ints("_state.last", least=-1, below="._n_classes"),
    )  # fmt: skip

    def __init__(self, n_classes: int) -> None:
        self._n_classes = n_classes
        weights = np.zeros(N_FEATURES)
        weights[0] = 1.0
        self._state = HistoryState(
            np.full((3, n_classes), 1.0 / n_classes),
            np.zeros((2, n_classes)),
            np.zeros((n_classes, n_classes)),
            weights,
            RIDGE * np.eye(N_FEATURES),
            np.full(1, -1, dtype=np.int64),
        )

    def answer(self, rows: RowsToLearn, before: Mapping[str, Floats]) -> Sequence[Floats]:
        """Return the corrected average; the features of a row are stored."""
        points, features = np.ascontiguousarray(before["average"]), rows.stored
        if features is None:
            features = np.empty((1, points.shape[1], N_FEATURES))
        outputs = np.empty(points.shape)
        _answer(self._state, points, rows.columns, rows.sources, features, outputs)
        return [outputs]

    def moved(self, places: Sequence[int], n_classes: int) -> "LabelHistory":
        """Return the expert of other classes: column i becomes `places[i]` of `n_classes`."""
        other, old = LabelHistory(n_classes), self._state
        new, columns = other._state, np.array(places, dtype=np.int64)
        new.frequencies[:] = 0.0
        for held, onto in ((old.frequencies, new.frequencies), (old.residuals, new.residuals)):
            for i, place in enumerate(places):
                onto[:, place] += held[:, i]
        np.add.at(new.transitions, (columns[:, None], columns[None, :]), old.transitions)
        new.weights[:], new.precision[:] = old.weights, old.precision
        new.last[:] = -1 if old.last[0] < 0 else columns[old.last[0]]
        return other

    def _on_restored(self) -> None:
        # A step solves a system with it.
        require(_is_positive_definite(self._state.precision), "precision")


def _is_positive_definite(matrix: Floats) -> bool:
    """Return whether the pivots of the lower triangle are positive."""
    rest = matrix.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        while len(rest):
            pivot, column = rest[0, 0], rest[1:, 0]
            if not pivot > 0.0:
                return False
            rest = rest[1:, 1:] - column[:, None] * column / pivot
    return True


@kernel
def _answer(
    state: HistoryState,
    points: Floats,
    columns: Ints,
    sources: Ints,
    features: Floats,
    outputs: Floats,
) -> None:
    """Write the answers and features of rows, and learn each label after the answer to its row.

    A row with a source is learned with the features of that row. `features`, shape (m, n_classes,
    N_FEATURES), has one row if no row has a source.
    """
