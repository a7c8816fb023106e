"""The protocol of the experts, and the rows that they answer and learn."""

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
    at_answer: AnswerTimeOutputs | None  # of rows that are learned, with delayed labels
    # Of each expert of the model and of the recent stacks, shape (m, n_classes); NaN: asleep.
    model: Mapping[str, Floats] = MappingProxyType({})
    sources: Ints = np.empty(0, dtype=np.int64)  # shape (m,); see `AnswerTimeOutputs.sources`
    stored: Floats | None = None  # shape (m, n_classes, n_stored); with delayed labels


class Expert(Stored):
    """An expert of a stream, which spans models; a subclass defines what it needs.

    Its answers and state do not depend on how rows are cut into calls.
    """

    outputs: tuple[str, ...]  # names of its probabilities; each has a weight
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
