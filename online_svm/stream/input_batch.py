"""Examples and labels: one, and a batch in the order in which they came."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np

from online_svm.errors import InvalidInput
from online_svm.stream.given_answer import GivenAnswer
from online_svm.stream.schema import FeatureSchema
from online_svm.stream.slices import SliceValue
from online_svm.types import Bools, Floats


@dataclass(frozen=True, slots=True)
class Example:
    """One entry of the stream.

    Parameters
    ----------
    x : sequence of float, or mapping from feature name to float
        The features: an array in the declared order, or named values. None is a missing value.
    y : str or int, optional
        The label.
    p : float, optional
        In its place, an annotator's probability that the label is the second of the two classes,
        for a learner that takes it ("psvm"). With neither the example is answered, not learned.
    id : str, optional
        By which its label can be sent later, where there is a horizon.
    time : int, optional
        Milliseconds, where the horizon counts time.
    slices : mapping from str to str, optional
        Values of the slices that the configuration names. They are no features.

    Examples
    --------
    >>> Example([0.5, 1.0], "spam").y
    'spam'
    """

    x: Sequence[float | None] | Floats | Mapping[str, float | None]
    y: str | int | None = None
    p: float | None = None
    id: str | None = None
    time: int | None = None
    slices: Mapping[str, str | None] | None = None


class LateLabel(NamedTuple):
    """The label of an example that came before.

    Attributes
    ----------
    example : str
        The producer's id of the example.
    label : str
    """

    example: str
    label: str


class AnsweredIds(Protocol):
    """The ids of examples that were answered before."""

    @property
    def window(self) -> int:
        """How many are remembered; 0 for none."""

    def first(self, producer_id: str) -> int | None:
        """Return the number of the item that had this id, or None."""

    def add(self, producer_id: str, seq: int) -> None:
        """Remember the id of an item."""


@dataclass(frozen=True, slots=True, eq=False)
class InputBatch:
    """Examples in columns, and the labels of earlier examples among them.

    Examples and labels have indices, which say their order; an index may have neither.

    Attributes
    ----------
    X : ndarray of shape (m, n_features)
        Rows that `schema.row` accepted.
    labels : sequence of (str or None), length m
    indices : sequence of int, length m
        Of the examples, ascending.
    late : mapping of int to LateLabel
        The labels of earlier examples, by index; where there is a horizon.
    first : int
        Items of the stream before index 0.
    probabilities : ndarray of shape (m,), optional
        In the place of labels; NaN where there is none.
    schema : FeatureSchema, optional
        The one the rows were checked by.
    ids : sequence of (str or None), length m, optional
        The producer's.
    times : sequence of int, length m, optional
        Milliseconds.
    slices : sequence of (SliceValue or None), length m, optional
    given : sequence of (GivenAnswer or None), length m, optional
        Answers that were given elsewhere.

    Examples
    --------
    >>> batch = InputBatch(np.zeros((2, 1)), ["a", None], [0, 2], {1: LateLabel("i", "b")})
    >>> batch.without({0}).indices, batch.id_of(1)
    ([2], None)
    """

    X: Floats
    labels: Sequence[str | None]
    indices: Sequence[int]
    late: Mapping[int, LateLabel] = field(default_factory=dict)
    first: int = 0
    probabilities: Floats | None = None
    schema: FeatureSchema | None = None
    ids: Sequence[str | None] | None = None
    times: Sequence[int] | None = None
    slices: Sequence[SliceValue | None] | None = None
    given: Sequence[GivenAnswer | None] | None = None

    def __len__(self) -> int:
        return len(self.X)

    def id_of(self, row: int) -> str | None:
        """Return the producer's id of an example."""
        return None if self.ids is None else self.ids[row]

    def without(self, left_out: Container[int]) -> "InputBatch":
        """Return the batch without the examples at some indices."""
        kept = [row for row, index in enumerate(self.indices) if index not in left_out]
        rows = np.array(kept, dtype=np.int64)
        return replace(
            self,
            X=self.X[rows],
            labels=[self.labels[row] for row in kept],
            indices=[self.indices[row] for row in kept],
            probabilities=None if self.probabilities is None else self.probabilities[rows],
            ids=None if self.ids is None else [self.ids[row] for row in kept],
            times=None if self.times is None else [self.times[row] for row in kept],
            slices=None if self.slices is None else [self.slices[row] for row in kept],
            given=None if self.given is None else [self.given[row] for row in kept],
        )


def checked_probabilities(
    probabilities: Floats | None, labels: Sequence[str | None], *, are_taken: bool
) -> Floats:
    """Return the probability of each row, NaN where it has none.

    Parameters
    ----------
    probabilities : ndarray of shape (m,), optional
    labels : sequence of (str or None), length m
    are_taken : bool
        Whether the learner can learn from a probability.

    Raises
    ------
    InvalidInput
        If there is not one for each row, one is not in [0, 1] or stands beside a label, or the
        learner takes none.

    Examples
    --------
    >>> checked_probabilities(None, ["a", None], are_taken=False)
    array([nan, nan])
    >>> checked_probabilities(np.array([0.5, 0.5]), ["a", None], are_taken=True)
    Traceback (most recent call last):
    online_svm.errors.InvalidInput: probabilities: row 0 has a label as well; give one of the two
    """
    if probabilities is None:
        return np.full(len(labels), np.nan)
    has_label = np.array([label is not None for label in labels], dtype=np.bool_)
    probs = np.asarray(probabilities, dtype=np.float64)
    if probs.shape != has_label.shape:
        raise InvalidInput(
            f"probabilities: shape {probs.shape} for {len(has_label)} rows; NaN stands for none"
        )
    given = ~np.isnan(probs)
    if given.any() and not are_taken:
        raise InvalidInput("probabilities: the learner takes labels only; use learner psvm")
    _refuse(given & has_label, "has a label as well; give one of the two")
    _refuse(given & ~((probs >= 0.0) & (probs <= 1.0)), "has one that is not in [0, 1]")
    return probs


def _refuse(wrong: Bools, why: str) -> None:
    if wrong.any():
        raise InvalidInput(f"probabilities: row {int(np.argmax(wrong))} {why}")
