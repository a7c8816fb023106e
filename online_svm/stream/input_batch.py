"""Define the input of the predictor: an example, its slices, and a batch in order of arrival."""

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.errors import SHOWN, InvalidExample, InvalidInput
from online_svm.stream.schema import FeatureSchema
from online_svm.stream.scores import Score
from online_svm.types import Bools, Floats

SliceValue = tuple[str | None, ...]
"""The value of one example for each slice of the feed; None for an absent value."""

MAX_SLICE = 64  # maximum length of a slice value in characters, because reports repeat it


def checked_slices(sent: object, names: tuple[str, ...]) -> SliceValue | None:
    """Return the values of an example in the order of the feed's slices.

    `sent`: the slices of the example; names may be absent.
    `names`: the slices of the feed.

    Raises InvalidExample if the feed has no such slice, or a value is not text of at most 64
    characters.

    Examples
    --------
    >>> checked_slices({"country": "DE"}, ("age", "country"))
    (None, 'DE')
    >>> checked_slices({"land": "DE"}, ("age", "country"))
    Traceback (most recent call last):
    online_svm.errors.InvalidExample: s: the feed has no slice 'land'; it has age, country
    """
    if sent is None:
        return None
    if not isinstance(sent, Mapping):
        raise InvalidExample("s_no_object")
    if not names:
        raise InvalidExample("s_without_slices")
    for name, value in sent.items():
        if name not in names:
            raise InvalidExample("slice_unknown", slice=str(name)[:SHOWN], known=list(names))
        if value is not None and not isinstance(value, str):
            raise InvalidExample("slice_no_text", slice=name)
        if value is not None and len(value) > MAX_SLICE:
            raise InvalidExample("slice_characters", slice=name, most=MAX_SLICE)
    return tuple(sent.get(name) for name in names)


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
        An annotator's probability that the label is the second of two classes; it replaces the
        label for the learner "psvm". An example with neither is answered but not learned.
    id : str, optional
        Identifies the example when its label is sent later; needs a horizon.
    time : int, optional
        Milliseconds, for a horizon in time.
    slices : mapping from str to str, optional
        Values of the slices that the configuration names. Slices are not features.
    score : float, or one number a class, optional
        The output of another model, with the setting `scores`: for two classes a number, about the
        second one; else a sequence in the order of the sorted classes, or a mapping. The features
        may then be absent.
    score_version : str or int, optional
        The version of that model. Scores of each version are calibrated by themselves.

    Examples
    --------
    >>> Example([0.5, 1.0], "spam").y
    'spam'
    """

    x: Sequence[float | None] | Floats | Mapping[str, float | None] | None = None
    y: str | int | None = None
    p: float | None = None
    id: str | None = None
    time: int | None = None
    slices: Mapping[str, str | None] | None = None
    score: Score | None = None
    score_version: str | int | None = None


class DelayedLabel(NamedTuple):
    """A label that arrives after its example."""

    example: str  # the producer's id of the example
    label: str


class AnsweredIds(Protocol):
    """Producers' ids of the examples that were answered."""

    @property
    def is_used(self) -> bool:
        """Whether any id is remembered."""

    def first(self, producer_id: str) -> int | None:
        """Return the number of the item with this id, or None."""

    def add(self, producer_id: str, seq: int, waiting: Collection[str]) -> None:
        """Remember the id of an item; `waiting` has the ids of the items that wait for a label."""


@dataclass(frozen=True, slots=True, eq=False)
class InputBatch:
    """Examples in columns, with delayed labels of earlier examples between them.

    The indices of examples and delayed labels give their order; an index may have neither.
    """

    X: Floats  # shape (m, n_features); rows accepted by `schema.row`
    labels: Sequence[str | None]
    indices: Sequence[int]  # ascending indices of the examples
    # Delayed labels by index; only with a horizon.
    delayed: Mapping[int, DelayedLabel] = field(default_factory=dict)
    first: int = 0  # number of items of the stream before index 0
    # Shape (m,); probabilities that replace labels; NaN for a row without one.
    probabilities: Floats | None = None
    schema: FeatureSchema | None = None  # the schema that checked the rows
    ids: Sequence[str | None] | None = None  # the producer's ids
    times: Sequence[int] | None = None  # milliseconds
    slices: Sequence[SliceValue | None] | None = None

    def __post_init__(self) -> None:
        # Kernels need row-major arrays; estimators may pass column-major ones.
        object.__setattr__(self, "X", np.ascontiguousarray(self.X))

    def __len__(self) -> int:
        return len(self.X)

    def id_of(self, row: int) -> str | None:
        """Return the producer's id of an example."""
        return None if self.ids is None else self.ids[row]

    def checked(self, config: PredictorConfig) -> "InputBatch":
        """Return the batch with a probability for each row; see `checked_probabilities`.

        Raises InvalidInput if its columns have other lengths, or are none of this configuration.
        """
        if len(self.X) != len(self.labels):
            raise InvalidInput(
                f"labels: {len(self.labels)} for {len(self.X)} rows; give one for each row"
            )
        are_taken = config.learner == "psvm"
        probs = checked_probabilities(self.probabilities, self.labels, are_taken=are_taken)
        return replace(self, probabilities=probs)

    def without(self, left_out: Container[int]) -> "InputBatch":
        """Return the batch without the examples at these indices."""
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
        )


def checked_probabilities(
    probabilities: Floats | None, labels: Sequence[str | None], *, are_taken: bool
) -> Floats:
    """Return the probability of each row; NaN for a row without one.

    `probabilities`, shape (m,).
    `labels`, length m.
    `are_taken`: whether the learner can learn from probabilities.

    Raises InvalidInput if the number of probabilities is wrong, a probability is outside [0, 1] or
    in a row with a label, or the learner accepts none.

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
