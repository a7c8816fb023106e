"""Predictions in columns for a run of examples, or one row of them; reports of their validity."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from online_svm.stream.alarm import Alarm
from online_svm.stream.answer_columns import (
    COLUMNS,
    STRICT,
    Column,
    Count,
    Guarantee,
    Kind,
    Probability,
    Status,
)
from online_svm.stream.label_counts import LabelCounts
from online_svm.stream.windowed_report import WindowedReport
from online_svm.types import Bools, Floats, Ints

Intervals = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class PredictionBlock:
    """Predictions for m consecutive examples answered by one model and one calibration.

    Attributes
    ----------
    status : {"ok", "warming"}
        "warming" until a proper training set had two classes; then only `n` and `size` carry
        information.
    classes : tuple of (str or None)
        The K labels, sorted; a last None is the slot of labels not seen yet.
    n : ndarray of shape (m,)
        Examples learned before each prediction.
    label : ndarray of shape (m,)
        Index of the predicted label in `classes` (largest of `point`); -1 while warming.
    svm_label : ndarray of shape (m,)
        Index of the SVM's own class: the sign of the score, or the largest score.
    point, lower, upper : ndarray of shape (m, K)
        Probability and interval per class, by `method`; `lower <= point <= upper`.
    venn_point, venn_lower, venn_upper : ndarray of shape (m, K)
        Mean over the multiprobability of the Venn predictor, and its hull: the least and the
        greatest value. The mean is not published, but scored.
    maps : dict of str to ndarray of shape (m, K)
        Probabilities by each published map, normalised over the classes.
    map_intervals : dict of str to ndarray of shape (m, K, 2), or None
        Lower and upper probability per class, one against all, by each published map that gives
        an interval; None where none of the published maps does.
    scores : ndarray of shape (m, 1) or (m, number of classes with a machine)
        Decision values: one for two classes (positive means `classes[1]`), else one a class.
    category, category_size : ndarray of shape (m,)
        Category of the taxonomy, and N, the calibration examples in it at that moment.
    imputed : ndarray of shape (m,)
        Known features that are gaps in each row; -1 where features have no kinds.
    model, calibration, taxonomy : int
        Versions; each grows by one when that part is fitted again.
    guarantee : {"exact", "approximate", "none"}
        Whether the validity theorem holds for the multiprobability of the Venn predictor.
    reason : str or None
        Why the guarantee is not exact.
    method : str or None
        What made `point`, `lower` and `upper`; None while warming.
    interval_level : float or None
        Stated coverage of the interval; None where it is the Venn hull.
    actions : tuple of str
        Names of the actions that `costs` knows; empty where nothing is to be decided.
    action : ndarray of int of shape (m,), or None
        Index of the action that costs least.
    expected_cost : ndarray of shape (m,), or None
        What that costs on average.
    said : dict of str to ndarray with m rows, or None
        Where labels come late, what `Lately` learns of a row when its label comes; not published.
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
    reason: str | None
    method: str | None
    interval_level: float | None
    actions: tuple[str, ...] = ()
    action: Ints | None = None
    expected_cost: Floats | None = None
    said: dict[str, Floats] | None = None

    def __len__(self) -> int:
        return len(self.n)

    def part(self, begin: int, stop: int) -> "PredictionBlock":
        """Return rows begin ... stop - 1 as a block; the arrays are views."""
        return self if begin == 0 and stop == len(self) else self.taken(slice(begin, stop))

    def taken(self, chosen: slice | Bools) -> "PredictionBlock":
        """Return the chosen rows as a block; the arrays of a slice are views."""
        intervals, said = self.map_intervals, self.said
        return replace(
            self,
            **{name: getattr(self, name)[chosen] for name in _ARRAYS},
            maps={name: values[chosen] for name, values in self.maps.items()},
            map_intervals=intervals and {name: v[chosen] for name, v in intervals.items()},
            action=None if self.action is None else self.action[chosen],
            expected_cost=None if self.expected_cost is None else self.expected_cost[chosen],
            said=said and {name: v[chosen] for name, v in said.items()},
        )

    def row(self, i: int) -> "Prediction":
        """Return the prediction of the i-th example of the block."""
        return Prediction(status=self.status, **self.row_values(i))

    def row_values(self, i: int) -> dict[str, Any]:
        """Return the columns of the i-th example by name, in the order of a message."""
        return {name: value(self, column, i) for name, value, column in _ROW_VALUES}


_ARRAYS = tuple(f.name for f in fields(PredictionBlock) if f.type in (Floats, Ints))
"""Attributes of a block that have one row an example."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answer to one example; the fields are those of `PredictionBlock`, for one row.

    `label` and `probability` are None while the predictor is warming up; the interval of the
    predicted label is then [0, 1].
    """

    status: Status
    n: int
    label: str | None
    lower: float
    upper: float
    probability: float | None
    action: str | None
    expected_cost: float | None
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
    reason: str | None


@dataclass(frozen=True, slots=True)
class LabelReport:
    """One choice of label: its accuracy against the probability it was given.

    All are null before the first scored example.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    accuracy: Annotated[
        Probability | None, Field(description="Share of examples that have this label.")
    ]
    lower: Annotated[
        Probability | None, Field(description="Mean lower probability; null for a map.")
    ]
    probability: Annotated[Probability | None, Field(description="Mean point probability.")]
    upper: Annotated[
        Probability | None, Field(description="Mean upper probability; null for a map.")
    ]
    paper_p: Annotated[
        Probability | None,
        Field(
            description="The papers' two-sided p-value of the hits. Descriptive: it looks fine "
            "under drift."
        ),
    ]


@dataclass(frozen=True, slots=True)
class MethodReport:
    """Cumulative validity of one method."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    predicted: Annotated[
        LabelReport,
        Field(description="For the label with the largest probability."),
    ]
    svm: Annotated[LabelReport, Field(description="For the SVM's own class.")]
    log_loss: Annotated[
        float | None, Field(description="Mean of -ln p(true label), p clipped at 1e-6.")
    ]
    brier: Annotated[
        float | None,
        Field(
            description="Brier score: (p - y)^2 for two declared classes, else its sum over all."
        ),
    ]
    clipped: Annotated[Count, Field(description="Examples that were clipped.")]


@dataclass(frozen=True, slots=True)
class MeanBounds:
    """What a mean may yet become when all labels that are out have come."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    lower: Annotated[float, Field(description="The least it can become.")]
    estimate: Annotated[
        float,
        Field(description="What it becomes if the announced probabilities are right."),
    ]
    upper: Annotated[float, Field(description="The most it can become.")]


@dataclass(frozen=True, slots=True)
class LateLabelReport:
    """What became of labels that come late."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    counts: Annotated[LabelCounts, Field(description="Examples and labels, counted.")]
    open: Annotated[Count, Field(description="Answers of a model whose label has not come.")]
    accuracy: Annotated[
        MeanBounds | None,
        Field(description="All open answers wrong, or all right."),
    ]
    brier: Annotated[MeanBounds | None, Field(description="The Brier score, likewise.")]


@dataclass(frozen=True, slots=True)
class CostReport:
    """Mean cost of a scored example, by the setting `costs`; null before the first."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    scored: Annotated[Count, Field(description="Scored examples.")]
    mean: Annotated[float | None, Field(description="Of the actions that answers named.")]
    by_label: Annotated[
        float | None,
        Field(description="If always the action of the most probable label were taken."),
    ]
    always: Annotated[
        dict[str, float | None], Field(description="If always this action were taken.")
    ]
    taken: Annotated[dict[str, Count], Field(description="How often each action was named.")]


@dataclass(frozen=True, slots=True)
class MonitorsReport:
    """Where the monitors stand, in a validity report."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    alarms: Annotated[Count, Field(description="Alarms so far.")]
    open: Annotated[
        tuple[Alarm, ...],
        Field(
            description="[Open](monitoring.md#what-follows-an-alarm) alarms, the newest of each "
            "test."
        ),
    ]
    tests: Annotated[
        list[dict[str, Any]],
        Field(
            description="The tests nearest to a finding: `kind`, `scope`, `name`, `log_wealth`, "
            "`threshold` and `since` as of an alarm; `alarms`, how many so far; "
            "`deviation`, a mean of y - p with its confidence sequence; of a slice "
            "`off`, at a false discovery rate of 5 %."
        ),
    ]


@dataclass(frozen=True, slots=True)
class FeatureReport:
    """What the active model knows of a named feature."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Annotated[
        Literal["number", "boolean", "category", "time", "text"],
        Field(description="Declared or found; `text` is not used."),
    ]
    missing: Annotated[
        Probability,
        Field(
            description="Share of the training examples that lack it, or have it of another kind."
        ),
    ]


@dataclass(frozen=True, slots=True)
class ValidityReport:
    """Validity, cumulative and recent, after every `metrics_every` learned examples."""

    n: Annotated[Count, Field(description="Learned examples.")]
    scored: Annotated[
        Count,
        Field(description="Labelled examples answered after warm-up."),
    ]
    headline: Annotated[
        MethodReport,
        Field(description="Of `probabilities` and `intervals`."),
    ]
    venn: Annotated[
        MethodReport,
        Field(description="Of the Venn predictor."),
    ]
    maps: Annotated[dict[str, MethodReport], Field(description="Each published map.")]
    windowed: Annotated[
        WindowedReport | None,
        Field(description="Over the last scored examples, with `metrics_window`."),
    ] = None
    monitors: Annotated[
        MonitorsReport | None,
        Field(description="Where the monitors stand."),
    ] = None
    labels: Annotated[
        LateLabelReport | None,
        Field(description="Late labels, with a `horizon`."),
    ] = None
    costs: Annotated[CostReport | None, Field(description="Costs of decisions, with `costs`.")] = (
        None
    )
    features: Annotated[
        dict[str, FeatureReport] | None,
        Field(description="Named features, the first 256."),
    ] = None


def _constant(block: PredictionBlock, column: Column, _i: int) -> object:
    return getattr(block, column.name)


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


def _cost(block: PredictionBlock, column: Column, i: int) -> object:
    return column.unknown if block.expected_cost is None else float(block.expected_cost[i])


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
    """Return the array that holds a column of one attribute."""
    (name,) = column.attributes
    values: Floats = getattr(block, name)
    return values


_VALUES: dict[Kind, Callable[[PredictionBlock, Column, int], Any]] = {
    "constant": _constant,
    "count": _count,
    "optional": _optional,
    "label": _label,
    "category": _category,
    "own": _own,
    "action": _action,
    "cost": _cost,
    "list": _list,
    "pairs": _pairs,
    "lists_by_map": _lists_by_map,
    "pairs_by_map": _pairs_by_map,
}
"""From a block to one row of a column of each kind."""

_ROW_VALUES = tuple((column.name, _VALUES[column.kind], column) for column in COLUMNS)
