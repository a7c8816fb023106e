"""Reports of validity, cumulative and windowed, and counts of labels by outcome.

The documentation of messages is generated from the field descriptions here.
"""

from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field

from online_svm.stream.alarm import Alarm
from online_svm.stream.answer_columns import STRICT, Count, Probability

Done = Literal["accepted", "repeated", "corrected"]
"""Outcome of a delayed label."""


@dataclass(slots=True)
class LabelCounts:
    """Counts since the feed began, but for `pending` and `unlabelled`, which are of now."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    pending: Annotated[Count, Field(description="Answered examples that wait to be learned.")] = 0
    unlabelled: Annotated[Count, Field(description="The ones whose label has not come.")] = 0
    late: Annotated[Count, Field(description="Labels that came after their example.")] = 0
    repeated: Annotated[Count, Field(description="Labels that were sent again.")] = 0
    corrected: Annotated[Count, Field(description="Labels that replaced another one.")] = 0
    censored: Annotated[
        Count, Field(description="Examples whose horizon passed without a label.")
    ] = 0
    dropped: Annotated[Count, Field(description="Examples beyond `max_pending`.")] = 0
    early: Annotated[
        Count, Field(description="Examples whose label came, and was rejected, before them.")
    ] = 0
    backwards: Annotated[Count, Field(description="Examples whose `time` ran backwards.")] = 0

    def copy(self) -> Self:
        """Return the counts as they are now."""
        return replace(self)

    def state(self) -> dict[str, int]:
        """Return the counts by name."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore the counts from `state`."""
        counts = cls(**state)
        if any(type(value) is not int or value < 0 for value in asdict(counts).values()):
            raise ValueError("a count of labels is no count")
        return counts


_Z = "in standard deviations, if each probability is right. Descriptive."
_PARTS = {
    "miscalibration": "What isotonic recalibration would save. `brier` = `miscalibration` - "
    "`discrimination` + `uncertainty`.",
    "discrimination": "What it then saves against the constant frequency.",
    "uncertainty": "Score of that constant.",
}

_Positive = Annotated[float, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """One of at most ten bins of equal mass, by ascending probability."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    count: Annotated[int, Field(ge=1, description="Its examples.")]
    probability: Annotated[Probability, Field(description="Mean of the announced probabilities.")]
    frequency: Annotated[
        Probability, Field(description="Share of its examples where the event happened.")
    ]
    lower: Annotated[
        Probability,
        Field(
            description="Lower end of the band that holds the share nine times of ten if the "
            "probabilities are right."
        ),
    ]
    upper: Annotated[Probability, Field(description="Its upper end.")]


@dataclass(frozen=True, slots=True)
class WindowScores:
    """Scores of the headline over some examples; without any, all but the count are null."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    scored: Annotated[Count, Field(description="The examples.")]
    accuracy: Annotated[
        Probability | None, Field(description="Share whose predicted label was right.")
    ]
    lower: Annotated[Probability | None, Field(description="Mean lower end announced for it.")]
    probability: Annotated[
        Probability | None, Field(description="Mean probability announced for it.")
    ]
    upper: Annotated[Probability | None, Field(description="Mean upper end announced for it.")]
    z: Annotated[float | None, Field(description=f"`accuracy` less `probability`, {_Z}")]
    log_loss: Annotated[
        float | None, Field(description="Mean of -ln p(true label), p clipped at 1e-6.")
    ]
    brier: Annotated[
        float | None,
        Field(
            description="Brier score: (p - y)^2 for two declared classes, else its sum over all."
        ),
    ]
    miscalibration: Annotated[float | None, Field(description=_PARTS["miscalibration"])]
    discrimination: Annotated[float | None, Field(description=_PARTS["discrimination"])]
    uncertainty: Annotated[float | None, Field(description=_PARTS["uncertainty"])]
    calibration_error: Annotated[
        float | None,
        Field(
            description="Root mean squared difference of frequency and probability in 15 bins, "
            "without what chance adds. Of two classes the last, else the predicted "
            "label."
        ),
    ]


@dataclass(frozen=True, slots=True)
class WeightedScores:
    """The same scores, the last example with weight 1, each one before it with a little less."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    weight: Annotated[_Positive, Field(description="Sum of the weights.")]
    accuracy: Annotated[
        Probability | None, Field(description="As in `WindowScores`, as all below.")
    ]
    lower: Annotated[Probability | None, Field(description="Mean lower end.")]
    probability: Annotated[Probability | None, Field(description="Mean probability.")]
    upper: Annotated[Probability | None, Field(description="Mean upper end.")]
    log_loss: Annotated[float | None, Field(description="Mean log loss.")]
    brier: Annotated[float | None, Field(description="Mean Brier score.")]


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """Observed frequency of one class, and the probabilities predicted for it."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    label: Annotated[str | None, Field(description="The class; null: unseen labels.")]
    examples: Annotated[Count, Field(description="Those with this label.")]
    frequency: Annotated[Probability, Field(description="Their share.")]
    probability: Annotated[_Positive, Field(description="Mean probability of the class.")]
    z: Annotated[float | None, Field(description=f"`frequency` less `probability`, {_Z}")]
    brier: Annotated[_Positive, Field(description="Brier score of that probability.")]
    miscalibration: Annotated[_Positive, Field(description="Of this class.")]
    discrimination: Annotated[_Positive, Field(description="Of this class.")]
    uncertainty: Annotated[_Positive, Field(description="Of this class.")]
    calibration_error: Annotated[float | None, Field(description="Of this class.")]
    predicted: Annotated[Count, Field(description="Examples for which it was predicted.")]
    accuracy: Annotated[Probability | None, Field(description="Share of these that are right.")]
    announced: Annotated[float | None, Field(description="Mean probability of these.")]


@dataclass(frozen=True, slots=True)
class SliceScores:
    """Scores of the examples of one slice."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    value: Annotated[str | None, Field(description="The value; null: all after the first 20.")]
    scores: Annotated[WindowScores, Field(description="Their scores.")]


@dataclass(frozen=True, slots=True)
class Descriptive:
    """Statistics of a moving window, looked at again and again: no tests.

    They are of the same event as `calibration_error`.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    spiegelhalter_z: Annotated[
        float | None,
        Field(
            description="Excess of the Brier score, in standard deviations; positive where "
            "probabilities are too extreme."
        ),
    ]
    kolmogorov_smirnov: Annotated[
        _Positive,
        Field(
            description="Greatest |sum of y - p| up to some probability, over the number of "
            "examples."
        ),
    ]
    kuiper: Annotated[_Positive, Field(description="The same between any two probabilities.")]
    integrated_calibration_index: Annotated[
        _Positive, Field(description="Mean of |p - r|, r the isotonic regression of y on p.")
    ]


@dataclass(frozen=True, slots=True)
class WindowedReport:
    """Figures of the headline over the last scored examples."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    window: Annotated[int, Field(ge=1, description="`metrics_window`.")]
    overall: Annotated[WindowScores, Field(description="Over the window.")]
    weighted: Annotated[
        WeightedScores, Field(description="Exponentially weighted over all examples.")
    ]
    reliability: Annotated[list[ReliabilityBin], Field(description="A reliability diagram.")]
    classes: Annotated[
        list[ClassFigures],
        Field(description="Each class; of more than 32 those with the greatest |`z`|."),
    ]
    slices: Annotated[
        dict[str, list[SliceScores]], Field(description="The values of each slice in the window.")
    ]
    descriptive: Annotated[Descriptive | None, Field(description="Null without an example.")]


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
        LabelReport, Field(description="For the label with the largest probability.")
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
        float, Field(description="What it becomes if the announced probabilities are right.")
    ]
    upper: Annotated[float, Field(description="The most it can become.")]


@dataclass(frozen=True, slots=True)
class LateLabelReport:
    """What became of labels that come late."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    counts: Annotated[LabelCounts, Field(description="Examples and labels, counted.")]
    open: Annotated[Count, Field(description="Answers of a model whose label has not come.")]
    accuracy: Annotated[
        MeanBounds | None, Field(description="All open answers wrong, or all right.")
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
    scored: Annotated[Count, Field(description="Labelled examples answered after warm-up.")]
    headline: Annotated[MethodReport, Field(description="Of `probabilities` and `intervals`.")]
    venn: Annotated[MethodReport, Field(description="Of the Venn predictor.")]
    maps: Annotated[dict[str, MethodReport], Field(description="Each published map.")]
    windowed: Annotated[
        WindowedReport | None,
        Field(description="Over the last scored examples, with `metrics_window`."),
    ] = None
    monitors: Annotated[MonitorsReport | None, Field(description="Where the monitors stand.")] = (
        None
    )
    labels: Annotated[
        LateLabelReport | None, Field(description="Late labels, with a `horizon`.")
    ] = None
    costs: Annotated[CostReport | None, Field(description="Costs of decisions, with `costs`.")] = (
        None
    )
    features: Annotated[
        dict[str, FeatureReport] | None, Field(description="Named features, the first 256.")
    ] = None
