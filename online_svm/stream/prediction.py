"""Define the predictions of consecutive examples as columns, a single one, and labelled rows."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np

from online_svm.stream.answer_columns import COLUMNS, Column, Guarantee, Kind, Status
from online_svm.stream.guarantee_reason import GuaranteeReason, sentence_of
from online_svm.types import Bools, Floats, Ints

Intervals = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class PredictionBlock:
    """Predictions for m consecutive examples answered by one model and one calibration.

    Attributes
    ----------
    status : {"ok", "warming"}
        "warming" until a proper training set has two classes. While warming, `svm_label` and
        `category` are -1; `venn_point`, `venn_lower`, `venn_upper`, `maps` and `scores` are empty.
        Before a class is known, `label` is -1, and `point`, `lower` and `upper` are empty too.
    classes : tuple of (str or None)
        The K labels, sorted; a last None is the slot of unseen labels.
    n : ndarray of shape (m,)
        Examples learned before each prediction.
    label : ndarray of shape (m,)
        Index of the predicted label in `classes` (largest of `point`); -1 without `point`.
    svm_label : ndarray of shape (m,)
        Index of the SVM's own class: the sign of the score, or the largest score.
    point, lower, upper : ndarray of shape (m, K)
        Probability and interval of each class, by `method`; `lower <= point <= upper`.
    venn_point, venn_lower, venn_upper : ndarray of shape (m, K)
        Mean, minimum and maximum over the multiprobability of the Venn predictor. The mean is
        scored but not published.
    maps : dict of str to ndarray of shape (m, K)
        Probabilities by each published map, normalised over the classes.
    map_intervals : dict of str to ndarray of shape (m, K, 2), or None
        Lower and upper probability of each class, one against all, by each published map that gives
        intervals; None if no published map does.
    scores : ndarray of shape (m, 1) or (m, number of classes with a machine)
        Decision values: one for two classes (positive means `classes[1]`), else one a class.
    category, category_size : ndarray of shape (m,)
        Category of the taxonomy, and N, the number of calibration examples in it at answer time.
    imputed : ndarray of shape (m,)
        Number of known features that are gaps in each row; -1 if features have no kinds.
    model, calibration, taxonomy : int
        Versions; each grows by one when that part is refitted.
    guarantee : {"exact", "approximate", "none"}
        Whether the validity theorem holds for the multiprobability of the Venn predictor.
    reason : GuaranteeReason or None
        Why the guarantee is not exact.
    method : str or None
        Method of `point`, `lower` and `upper`; None without them.
    interval_level : float or None
        Nominal coverage of the interval; None for the Venn hull.
    actions : tuple of str
        Names of the actions, by `costs` or `promise`; empty without decisions.
    action : ndarray of int of shape (m,), or None
        Index of the chosen action.
    expected_cost : ndarray of shape (m,), or None
        Expected cost of that action; None without costs.
    sets : ndarray of bool of shape (m, K), or None
        Whether each class is in the set of labels; None without `set_coverage`.
    notices : tuple of str
        Codes of the notices that were open when the rows were answered.
    member_outputs : dict of str to ndarray with m rows, or None
        Member outputs at answer time, for the experts to learn from when a delayed label
        arrives; not published.
    label_probability : ndarray of shape (m,), or None
        Probability that the label of the row is wanted; None without a label budget.
    label_draw : ndarray of shape (m,), or None
        Uniform number in [0, 1): the label is wanted if it is below that probability.
    """

    status: Status
    classes: tuple[str | None, ...]
    n: Ints
    label: Ints
    svm_label: Ints
    point: Floats
    lower: Floats
    upper: Floats
    venn_point: Floats
    venn_lower: Floats
    venn_upper: Floats
    maps: dict[str, Floats]
    map_intervals: dict[str, Floats] | None
    scores: Floats
    category: Ints
    category_size: Ints
    imputed: Ints
    model: int
    calibration: int
    taxonomy: int
    guarantee: Guarantee
    reason: GuaranteeReason | None
    method: str | None
    interval_level: float | None
    actions: tuple[str, ...] = ()
    action: Ints | None = None
    expected_cost: Floats | None = None
    sets: Bools | None = None
    notices: tuple[str, ...] = ()
    member_outputs: dict[str, Floats] | None = None
    label_probability: Floats | None = None
    label_draw: Floats | None = None

    def __len__(self) -> int:
        return len(self.n)

    @property
    def label_wanted(self) -> Bools | None:
        """Whether the label of each row is wanted; None without a label budget."""
        if self.label_probability is None or self.label_draw is None:
            return None
        return np.asarray(self.label_draw < self.label_probability)

    @property
    def repetitions(self) -> Ints | None:
        """The rows, each as often as its label stands for examples; None without a budget."""
        if self.label_probability is None:
            return None
        counts = np.rint(1.0 / self.label_probability).astype(np.int64)
        return np.repeat(np.arange(len(self)), counts)

    def part(self, begin: int, stop: int) -> "PredictionBlock":
        """Return rows begin ... stop - 1 as a block of views."""
        return self if begin == 0 and stop == len(self) else self.taken(slice(begin, stop))

    def taken(self, chosen: slice | Bools | Ints) -> "PredictionBlock":
        """Return the chosen rows as a block; a slice gives views."""
        intervals, member_outputs = self.map_intervals, self.member_outputs
        held = {name: getattr(self, name) for name in (*_ARRAYS, *_OPTIONAL)}
        rows: dict[str, Any] = {k: v if v is None else v[chosen] for k, v in held.items()}
        return replace(
            self,
            **rows,
            maps={name: values[chosen] for name, values in self.maps.items()},
            map_intervals=intervals and {name: v[chosen] for name, v in intervals.items()},
            member_outputs=member_outputs
            and {name: v[chosen] for name, v in member_outputs.items()},
        )

    def row(self, i: int) -> "Prediction":
        """Return the prediction of the i-th example of the block."""
        return Prediction(status=self.status, **self.row_values(i))

    def row_values(self, i: int) -> dict[str, Any]:
        """Return the columns of the i-th example by name, in the order of a message."""
        return {name: value(self, column, i) for name, value, column in _ROW_VALUES}


_ARRAYS = tuple(f.name for f in fields(PredictionBlock) if f.type in (Floats, Ints))
"""Attributes with one row per example."""

_OPTIONAL = ("action", "expected_cost", "sets", "label_probability", "label_draw")
"""Further ones, which may be None."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answer to one example: one row of a `PredictionBlock`, whose docstring has more.

    Attributes
    ----------
    status : {"ok", "warming"}
        "warming" until a model exists: what machines state is then None or empty.
    n : int
        Examples learned before.
    label : str or None
        The most probable class; None for the slot of unseen labels, or before a class is known.
    probability, lower, upper : float
        Of `label`, from 0 to 1. Before a class is known they are None, 0 and 1.
    set : tuple of (str or None), or None
        The classes that cannot be excluded, with `set_coverage`.
    classes, probabilities, intervals : tuple of length K
        The sorted classes, of which a last None is the slot of unseen labels, with their
        probabilities, which sum to 1, and pairs (lower, upper).
    venn : tuple of pairs, length K
        Lower and upper probability of each class by the Venn predictor.
    maps, map_intervals : dict
        The same by each published map.
    guarantee : {"exact", "approximate", "none"}
        Whether the validity theorem holds for the Venn predictor's distribution.
    about : dict or None
        Why the guarantee is not exact; `reason` is the sentence.
    notices : tuple of str, or None
        Codes of the open notices.
    method, interval_level
        Method of probability and interval, and the nominal coverage of the interval.
    action, expected_cost, label_wanted, label_probability
        By `costs`, `promise` and `label_budget`; else None.
    scores, svm_label
        Decision values of the machine, and its own class.
    category, category_size, imputed, model, calibration, taxonomy
        As in `PredictionBlock`.

    Examples
    --------
    >>> from online_svm import Example, OnlinePredictor, PredictorConfig
    >>> predictor = OnlinePredictor(PredictorConfig(classes=["no", "yes"]))
    >>> found = predictor.step(Example([0.0]))
    >>> found.status, found.classes, found.probabilities
    ('warming', ('no', 'yes'), (0.5, 0.5))
    """

    status: Status
    n: int
    label: str | None
    lower: float
    upper: float
    probability: float | None
    set: tuple[str | None, ...] | None
    action: str | None
    expected_cost: float | None
    label_wanted: bool | None
    label_probability: float | None
    method: str | None
    interval_level: float | None
    classes: tuple[str | None, ...]
    probabilities: tuple[float, ...]
    intervals: Intervals
    venn: Intervals
    maps: dict[str, tuple[float, ...]]
    map_intervals: dict[str, Intervals] | None
    scores: tuple[float, ...]
    svm_label: str | None
    category: int | None
    category_size: int
    imputed: int | None
    model: int
    calibration: int
    taxonomy: int
    guarantee: Guarantee
    about: dict[str, Any] | None
    notices: tuple[str, ...] | None

    @property
    def reason(self) -> str | None:
        """Why the guarantee is not exact, in one sentence; None if it is."""
        return sentence_of(self.about)


def _constant(block: PredictionBlock, column: Column, _i: int) -> object:
    return getattr(block, column.name)


def _codes(block: PredictionBlock, column: Column, _i: int) -> object:
    return getattr(block, column.name) or None


def _about(block: PredictionBlock, _column: Column, _i: int) -> dict[str, Any] | None:
    return None if block.reason is None else block.reason.about


def _count(block: PredictionBlock, column: Column, i: int) -> int:
    return int(getattr(block, column.name)[i])


def _optional(block: PredictionBlock, column: Column, i: int) -> int | None:
    value = _count(block, column, i)
    return None if value < 0 else value


def _label(block: PredictionBlock, column: Column, i: int) -> object:
    index = int(getattr(block, column.name)[i])
    return column.unknown if index < 0 else block.classes[index]


def _category(block: PredictionBlock, column: Column, i: int) -> object:
    category = int(getattr(block, column.name)[i])
    return column.unknown if category < 0 else category


def _own(block: PredictionBlock, column: Column, i: int) -> object:
    chosen = int(block.label[i])
    return column.unknown if chosen < 0 else float(_only(block, column)[i, chosen])


def _action(block: PredictionBlock, column: Column, i: int) -> object:
    return column.unknown if block.action is None else block.actions[int(block.action[i])]


def _members(block: PredictionBlock, column: Column, i: int) -> object:
    if block.sets is None:
        return column.unknown
    return tuple(block.classes[k] for k in np.flatnonzero(block.sets[i]).tolist())


def _may_be_absent(block: PredictionBlock, column: Column, i: int) -> object:
    values: Floats | Bools | None = getattr(block, column.name)
    return column.unknown if values is None else values[i].item()


def _list(block: PredictionBlock, column: Column, i: int) -> tuple[float, ...]:
    return tuple(_only(block, column)[i].tolist())


def _pairs(block: PredictionBlock, column: Column, i: int) -> Intervals:
    lower, upper = (getattr(block, name)[i].tolist() for name in column.attributes)
    return tuple(zip(lower, upper, strict=True))


def _lists_by_map(block: PredictionBlock, column: Column, i: int) -> dict[str, tuple[float, ...]]:
    maps: dict[str, Floats] = getattr(block, column.name)
    return {name: tuple(values[i].tolist()) for name, values in maps.items()}


def _pairs_by_map(block: PredictionBlock, column: Column, i: int) -> dict[str, Intervals] | None:
    maps: dict[str, Floats] | None = getattr(block, column.name)
    if maps is None:
        return None
    return {
        name: tuple((lower, upper) for lower, upper in values[i].tolist())
        for name, values in maps.items()
    }


def _only(block: PredictionBlock, column: Column) -> Floats:
    (name,) = column.attributes
    values: Floats = getattr(block, name)
    return values


_VALUES: dict[Kind, Callable[[PredictionBlock, Column, int], Any]] = {
    "constant": _constant,
    "about": _about,
    "count": _count,
    "optional": _optional,
    "label": _label,
    "category": _category,
    "own": _own,
    "action": _action,
    "members": _members,
    **dict.fromkeys(("cost", "wanted", "share"), _may_be_absent),
    "codes": _codes,
    "list": _list,
    "pairs": _pairs,
    "lists_by_map": _lists_by_map,
    "pairs_by_map": _pairs_by_map,
}
"""Functions that return the value of one row, by the kind of the column."""

_ROW_VALUES = tuple((column.name, _VALUES[column.kind], column) for column in COLUMNS)
"""Each column: its name, the function that returns its value in one row, and the column."""


class SettledRows(NamedTuple):
    """Examples that were learned or never will be, in this order, with the answers they got."""

    block: PredictionBlock  # the original answers
    codes: Ints  # shape (m,); codes of the labels; -1 without a label
    # Shape (m,); column of the true label in the classes of the block; -1 without a label.
    columns: Ints
    slices: Ints  # shape (m, n_slices); codes of the slice values
    X: Floats  # shape (m, n_features)
    before: Ints  # shape (m,); examples learned before each row

    def wanted(self) -> "SettledRows":
        """Return the rows whose labels are wanted; the others are in no figure."""
        wanted = self.block.label_wanted
        return self if wanted is None or wanted.all() else self.taken(wanted)

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
        given = {name: getattr(self, name) for name in _SCORED}
        return replace(self, **{k: a[chosen] for k, a in given.items() if a is not None})


_SCORED = tuple(
    f.name for f in fields(ScoredRows) if f.type in (Floats, Ints, Floats | None, Ints | None)
)
"""Attributes with one row per example."""
