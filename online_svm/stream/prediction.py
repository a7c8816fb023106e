"""What comes out of the predictor: columns for a run of examples, or one row of them."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from online_svm.stream.alarm import Alarm
from online_svm.stream.answer_columns import COLUMNS, Column, Guarantee, Kind, Status
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
    model: int
    calibration: int
    taxonomy: int
    guarantee: Guarantee
    reason: str | None
    method: str | None
    interval_level: float | None

    def __len__(self) -> int:
        return len(self.n)

    def part(self, begin: int, stop: int) -> "PredictionBlock":
        """Return rows begin ... stop - 1 as a block; the arrays are views."""
        return self if begin == 0 and stop == len(self) else self.taken(slice(begin, stop))

    def taken(self, chosen: slice | Bools) -> "PredictionBlock":
        """Return the chosen rows as a block; the arrays of a slice are views."""
        intervals = self.map_intervals
        return replace(
            self,
            **{name: getattr(self, name)[chosen] for name in _ARRAYS},
            maps={name: values[chosen] for name, values in self.maps.items()},
            map_intervals=intervals and {name: v[chosen] for name, v in intervals.items()},
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
    model: int
    calibration: int
    taxonomy: int
    guarantee: Guarantee
    reason: str | None


@dataclass(frozen=True, slots=True)
class ValidityReport:
    """Cumulative validity after `n` learned examples (emitted every `metrics_every`).

    Attributes
    ----------
    n : int
        Learned examples.
    scored : int
        Labelled examples that were answered after warm-up: what the sums below run over.
    headline : MethodReport
        The probability that comes first, with its interval.
    venn : MethodReport
        The Venn predictor's point probability with its hull.
    maps : dict of str to MethodReport
        The same for each published map.
    windowed : WindowedReport or None
        The headline over the last scored examples; None where the configuration asks for none.
    labels : LateLabelReport or None
        What became of late labels; None where a label comes with its example.
    monitors : MonitorsReport or None
        Where the monitors stand; None where they are off.
    """

    n: int
    scored: int
    headline: "MethodReport"
    venn: "MethodReport"
    maps: dict[str, "MethodReport"]
    windowed: WindowedReport | None = None
    labels: "LateLabelReport | None" = None
    monitors: "MonitorsReport | None" = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a mean may yet become: at least, if the probabilities are right, and at most."""

    lower: float
    estimate: float
    upper: float


@dataclass(frozen=True, slots=True)
class LateLabelReport:
    """What became of late labels so far, and what those to come may do.

    Attributes
    ----------
    counts : LabelCounts
    open : int
        Answers of a model whose label has not come.
    accuracy, brier : Bounds or None
        Of the headline, over what was scored and what is open; None before the first such.
    """

    counts: LabelCounts
    open: int
    accuracy: Bounds | None
    brier: Bounds | None


@dataclass(frozen=True, slots=True)
class MonitorsReport:
    """Where the monitors stand.

    Attributes
    ----------
    alarms : int
        Alarms so far.
    open : tuple of Alarm
        Those that are open, the oldest first; the newest of each test.
    tests : list of dict
        The tests nearest to a finding, with their evidence; see `MonitorSet.report`.
    """

    alarms: int
    open: tuple[Alarm, ...]
    tests: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class LabelReport:
    """Accuracy of one choice of label against the probability given to it.

    `lower` and `upper` are None for a map, which has no interval. `paper_p` is the papers'
    two-sided p-value of the number of hits; it is descriptive, never an alarm (it telescopes).
    All are None before the first scored example.
    """

    accuracy: float | None
    lower: float | None
    probability: float | None
    upper: float | None
    paper_p: float | None


@dataclass(frozen=True, slots=True)
class MethodReport:
    """One method's cumulative scores.

    Attributes
    ----------
    predicted : LabelReport
        For the label the method itself predicts (largest probability).
    svm : LabelReport
        For the SVM's own class, which no calibration data chose.
    log_loss : float or None
        Mean natural-log loss of the true label; probabilities are clipped at 1e-6.
    brier : float or None
        Mean Brier score: (p - y)^2 for two declared classes, else its sum over all.
    clipped : int
        Examples whose true label had a probability below 1e-6.
    """

    predicted: LabelReport
    svm: LabelReport
    log_loss: float | None
    brier: float | None
    clipped: int


def _constant(block: PredictionBlock, column: Column, _i: int) -> object:
    return getattr(block, column.name)


def _count(block: PredictionBlock, column: Column, i: int) -> int:
    return int(getattr(block, column.name)[i])


def _label(block: PredictionBlock, column: Column, i: int) -> object:
    index = int(getattr(block, column.name)[i])
    return column.unknown if index < 0 else block.classes[index]


def _category(block: PredictionBlock, column: Column, i: int) -> object:
    category = int(getattr(block, column.name)[i])
    return column.unknown if category < 0 else category


def _own(block: PredictionBlock, column: Column, i: int) -> object:
    chosen = int(block.label[i])
    return column.unknown if chosen < 0 else float(_only(block, column)[i, chosen])


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
    "label": _label,
    "category": _category,
    "own": _own,
    "list": _list,
    "pairs": _pairs,
    "lists_by_map": _lists_by_map,
    "pairs_by_map": _pairs_by_map,
}
"""From a block to one row of a column of each kind."""

_ROW_VALUES = tuple((column.name, _VALUES[column.kind], column) for column in COLUMNS)
