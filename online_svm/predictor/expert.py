"""The protocol of the experts, and the outputs that count for a row whose label is late."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import numpy as np

from online_svm.predictor.pending_examples import AnswerTimeOutputs
from online_svm.refit.scaling import Scaling
from online_svm.storage.state_schema import StateSchema, Stored
from online_svm.types import Floats, Ints


class RowsToLearn(NamedTuple):
    """Rows in order; a labelled row is learned after its answer."""

    X: Floats  # shape (m, n_features)
    scaled: Floats | None  # shape (m, n_columns); rows scaled by the model, if there is one
    columns: Ints  # shape (m,); class columns of the labels; -1 for a row without a label
    earlier: AnswerTimeOutputs | None  # of rows that are learned, with delayed labels
    # Of each expert of the model and of the recent stacks, shape (m, n_classes); NaN: asleep.
    model: Mapping[str, Floats] = MappingProxyType({})
    sources: Ints = np.empty(0, dtype=np.int64)  # shape (m,); see `Sources`
    stored: Floats | None = None  # shape (m, n_classes, n_stored); with delayed labels


class Expert(Stored):
    """An expert of a stream, which spans models; a subclass defines what it needs.

    Its answers and state do not depend on how rows are cut into calls.
    """

    outputs: ClassVar[tuple[str, ...]]  # names of its probabilities; each has a weight
    group: ClassVar[str] = "labels"  # whose credit they have; see `expert_average.GROUPS`
    corrects: ClassVar[bool] = False  # whether it corrects "average", which the others make
    n_stored: ClassVar[int] = 0  # numbers of each class that are stored until a label comes
    _stored = StateSchema()

    @abstractmethod
    def answer(self, rows: RowsToLearn, before: Mapping[str, Floats]) -> Sequence[Floats]:
        """Return probabilities in order, for each output an array of shape (m, n_classes).

        A labelled row is learned after its answer. A row with a source may get any answer: its
        answer-time outputs replace it. If `n_stored` is not 0, the expert writes `rows.stored` for
        the rows without a source, and learns the others with what their source stored.

        `before`, each of shape (m, n_classes): the outputs of experts above it in the table.
        """

    def fit(self, _X: Floats, _columns: Ints, _scaling: Scaling) -> None:
        """Fit to labelled rows and their class columns, at the dates of `next_fit`."""
        return

    def scales_like(self, _scaling: Scaling) -> bool:
        """Return whether it can answer rows that are scaled so; else it is fitted again."""
        return True

    def moved(self, _places: Sequence[int], _n_classes: int) -> "Expert":
        """Return what it is for other classes: column i becomes `places[i]` of `n_classes`."""
        return self


class Sources:
    """Where the outputs of m rows come from, with delayed labels.

    A row that is learned has the outputs of its answer, which came earlier in the same call or were
    stored. Without outputs for these experts and classes, it is learned with those of now.

    `rows`, shape (m,): the row that has the outputs: an earlier one, or itself if they were stored;
        -1 for a row that is answered now.
    """

    def __init__(
        self, earlier: AnswerTimeOutputs | None, m: int, shapes: Mapping[str, tuple[int, ...]]
    ) -> None:
        self.rows: Ints = np.full(m, -1, dtype=np.int64)
        self._stored: dict[int, dict[str, Floats]] = {}
        if earlier is None:
            return
        for row in np.flatnonzero(earlier.learns).tolist():
            self.rows[row], found = earlier.rows[row], earlier.answers[row] or {}
            fits = all(name in found and found[name].shape == shapes[name] for name in shapes)
            if self.rows[row] < 0 and fits:
                self.rows[row], self._stored[row] = row, found

    def of(self, name: str, values: Floats, rows: Ints) -> Floats:
        """Return the outputs of some rows that have a source, shape (len(rows), ...).

        `values`, shape (m, ...): the outputs of all rows by the same name.
        """
        return np.array([
            self._stored[row][name] if row in self._stored else values[self.rows[row]]
            for row in rows.tolist()
        ])  # fmt: skip

    def fill(self, name: str, values: Floats) -> Floats:
        """Replace the outputs of rows that have a source; return `values`, shape (m, ...)."""
        rows = np.flatnonzero(self.rows >= 0)
        if len(rows):
            values[rows] = self.of(name, values, rows)
        return values
