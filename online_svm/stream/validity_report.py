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
    """Counts since the feed began; `pending` and `unlabelled` are present numbers."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    pending: Annotated[Count, Field(description="Answered examples that are not learned yet.")] = 0
    unlabelled: Annotated[Count, Field(description="Pending examples without a label.")] = 0
    late: Annotated[Count, Field(description="Labels after their example.")] = 0
    repeated: Annotated[Count, Field(description="Labels sent again.")] = 0
    corrected: Annotated[Count, Field(description="Labels that replaced another.")] = 0
    censored: Annotated[
        Count, Field(description="Examples whose horizon passed without label.")
    ] = 0
    dropped: Annotated[Count, Field(description="Examples beyond `max_pending`.")] = 0
    early: Annotated[
        Count, Field(description="Labels before their example, which are rejected.")
    ] = 0
    backwards: Annotated[Count, Field(description="Examples whose `time` goes back.")] = 0

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


_Z = "in standard deviations if probabilities are right. Descriptive."

_Positive = Annotated[float, Field(ge=0)]
_LogLoss = Annotated[float | None, Field(description="Mean of -ln p(true label), p at least 1e-6.")]
_Brier = Annotated[
    float | None,
    Field(
        description="Mean of (p - y)^2; for more than two, or undeclared, classes the sum over all."
    ),
]


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """One of at most ten equal-mass bins, by ascending probability."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    count: Annotated[int, Field(ge=1, description="Number of examples.")]
    probability: Annotated[Probability, Field(description="Mean probability.")]
    frequency: Annotated[
        Probability, Field(description="Share of examples in which the event happened.")
    ]
    lower: Annotated[
        Probability,
        Field(
            description="Lower end of the band that holds the frequency in 90 % of samples if "
            "probabilities are right."
        ),
    ]
    upper: Annotated[Probability, Field(description="Upper end.")]


@dataclass(frozen=True, slots=True)
class WindowScores:
    """Scores of the headline over some examples; all but the count are null without examples."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    scored: Annotated[Count, Field(description="Labelled examples answered after warm-up.")]
    accuracy: Annotated[Probability | None, Field(description="Share of right labels.")]
    lower: Annotated[Probability | None, Field(description="Mean lower end.")]
    probability: Annotated[Probability | None, Field(description="Mean probability.")]
    upper: Annotated[Probability | None, Field(description="Mean upper end.")]
    z: Annotated[float | None, Field(description=f"`accuracy` minus `probability`, {_Z}")]
    log_loss: _LogLoss
    brier: _Brier
    miscalibration: Annotated[
        float | None,
        Field(
            description="Gain by isotonic recalibration. `brier` = `miscalibration` - "
            "`discrimination` + `uncertainty`."
        ),
    ]
    discrimination: Annotated[
        float | None,
        Field(description="Gain of recalibrated probabilities over the constant frequency."),
    ]
    uncertainty: Annotated[
        float | None, Field(description="Brier score of the constant frequency.")
    ]
    calibration_error: Annotated[
        float | None,
        Field(
            description="Root mean squared difference of frequency and probability in 15 bins, "
            "less chance; of the second of two classes, else of the predicted "
            "label."
        ),
    ]


@dataclass(frozen=True, slots=True)
class WeightedScores:
    """The same scores, with decreasing weights of earlier examples; the last has weight 1."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    weight: Annotated[_Positive, Field(description="Sum of the weights.")]
    accuracy: Annotated[Probability | None, Field(description="Share of right labels.")]
    lower: Annotated[Probability | None, Field(description="Mean lower end.")]
    probability: Annotated[Probability | None, Field(description="Mean probability.")]
    upper: Annotated[Probability | None, Field(description="Mean upper end.")]
    log_loss: _LogLoss
    brier: _Brier


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """Frequency of one class, and its probabilities."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    label: Annotated[str | None, Field(description="The class; null for unseen labels.")]
    examples: Annotated[Count, Field(description="Examples with this label.")]
    frequency: Annotated[Probability, Field(description="Their share.")]
    probability: Annotated[_Positive, Field(description="Mean probability.")]
    z: Annotated[float | None, Field(description=f"`frequency` minus `probability`, {_Z}")]
    brier: Annotated[_Positive, Field(description="Mean of (p - y)^2.")]
    miscalibration: Annotated[_Positive, Field(description="Of this class.")]
    discrimination: Annotated[_Positive, Field(description="Of this class.")]
    uncertainty: Annotated[_Positive, Field(description="Of this class.")]
    calibration_error: Annotated[float | None, Field(description="Of this class.")]
    predicted: Annotated[Count, Field(description="Predictions of this class.")]
    accuracy: Annotated[Probability | None, Field(description="Share of right labels.")]
    announced: Annotated[float | None, Field(description="Mean probability of these predictions.")]


@dataclass(frozen=True, slots=True)
class SliceScores:
    """Scores of the examples of one slice."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    value: Annotated[str | None, Field(description="The value; null for all after the first 20.")]
    scores: Annotated[WindowScores, Field(description="Its scores.")]


@dataclass(frozen=True, slots=True)
class Descriptive:
    """Statistics of the window, for the event of `calibration_error`.

    They are no tests, because the window is evaluated repeatedly.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    spiegelhalter_z: Annotated[
        float | None,
        Field(
            description="Excess of the Brier score in standard deviations; positive if "
            "probabilities are too extreme."
        ),
    ]
    kolmogorov_smirnov: Annotated[
        _Positive,
        Field(
            description="Maximum over q of |sum of y - p over p <= q|, divided by the number "
            "of examples."
        ),
    ]
    kuiper: Annotated[_Positive, Field(description="The same over all ranges of p.")]
    integrated_calibration_index: Annotated[
        _Positive, Field(description="Mean of |p - r|, with r the isotonic regression of y on p.")
    ]


@dataclass(frozen=True, slots=True)
class WindowedReport:
    """Figures of the headline over the last scored examples."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    window: Annotated[int, Field(ge=1, description="`metrics_window`.")]
    overall: Annotated[WindowScores, Field(description="Over the window.")]
    weighted: Annotated[
        WeightedScores, Field(description="Over all examples, exponentially weighted.")
    ]
    reliability: Annotated[list[ReliabilityBin], Field(description="A reliability diagram.")]
    classes: Annotated[
        list[ClassFigures],
        Field(description="Each class; of more than 32 those with the largest |`z`|."),
    ]
    slices: Annotated[dict[str, list[SliceScores]], Field(description="The values of each slice.")]
    descriptive: Annotated[Descriptive | None, Field(description="Further statistics.")]


@dataclass(frozen=True, slots=True)
class LabelReport:
    """Accuracy of a choice of label, and its announced probability and interval.

    All are null before the first scored example; the ends are null for a map.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    accuracy: Annotated[Probability | None, Field(description="Share of right labels.")]
    lower: Annotated[Probability | None, Field(description="Mean lower end.")]
    probability: Annotated[Probability | None, Field(description="Mean probability.")]
    upper: Annotated[Probability | None, Field(description="Mean upper end.")]
    paper_p: Annotated[
        Probability | None,
        Field(description="Two-sided p-value of the hits, as in the papers."),
    ]


@dataclass(frozen=True, slots=True)
class MethodReport:
    """Cumulative validity of one method."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    predicted: Annotated[LabelReport, Field(description="The most probable label.")]
    svm: Annotated[LabelReport, Field(description="The SVM's class.")]
    log_loss: _LogLoss
    brier: _Brier
    clipped: Annotated[Count, Field(description="Probabilities below 1e-6.")]


@dataclass(frozen=True, slots=True)
class MeanBounds:
    """Bounds on a mean once all missing labels have arrived."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    lower: Annotated[float, Field(description="Smallest possible value.")]
    estimate: Annotated[float, Field(description="Expected value if probabilities are right.")]
    upper: Annotated[float, Field(description="Largest possible value.")]


@dataclass(frozen=True, slots=True)
class LateLabelReport:
    """Outcomes of delayed labels."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    counts: Annotated[LabelCounts, Field(description="The counts.")]
    open: Annotated[Count, Field(description="Answers of a model without a label yet.")]
    accuracy: Annotated[
        MeanBounds | None,
        Field(description="If all open answers are wrong, or all right."),
    ]
    brier: Annotated[MeanBounds | None, Field(description="Likewise.")]


@dataclass(frozen=True, slots=True)
class LabelBudgetReport:
    """Wanted labels, with a `label_budget`.

    It weights the figures: a wanted label counts for the examples it stands for, others for none.
    `scored` counts labels, the counts of classes and slices count examples.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    probability: Annotated[
        Probability | None, Field(description="Mean probability of wanting a label.")
    ]
    wanted: Annotated[Count, Field(description="Answers whose label was wanted.")]
    labelled: Annotated[Count, Field(description="Of these, learned with a label.")]
    missing: Annotated[
        Count,
        Field(description="Of these, given up without one; the figures hold for the others."),
    ]
    unasked: Annotated[Count, Field(description="Unwanted labels; they are in no figure.")]


@dataclass(frozen=True, slots=True)
class CostReport:
    """Mean cost of a scored example, with `costs`; null before the first."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    scored: Annotated[Count, Field(description="Labelled examples answered after warm-up.")]
    mean: Annotated[float | None, Field(description="Mean cost of the actions taken.")]
    by_label: Annotated[
        float | None,
        Field(description="Mean cost if the most probable label were the action."),
    ]
    always: Annotated[
        dict[str, float | None], Field(description="Mean cost if it were always this action.")
    ]
    taken: Annotated[dict[str, Count], Field(description="Answers with each action.")]


@dataclass(frozen=True, slots=True)
class PromiseReport:
    """State of the `promise`."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    holds: Annotated[bool, Field(description="Whether cases are decided; else all are reviewed.")]
    withdrawn: Annotated[str | None, Field(description="Why it cannot hold now.")]
    thresholds: Annotated[
        dict[str, Probability],
        Field(description="Probability from which a label is decided; without one it is reviewed."),
    ]
    bounds: Annotated[
        dict[str, Probability],
        Field(description="Upper confidence bound of each promised rate there."),
    ]
    decided_share: Annotated[
        Probability, Field(description="Share of recent examples that are decided.")
    ]
    labels: Annotated[Count, Field(description="Labels since the last alarm, which count.")]
    labels_needed: Annotated[
        Count | None,
        Field(
            description="Further labels needed at these error rates; null if no threshold will do."
        ),
    ]
    answered: Annotated[Count, Field(description="Answers of a model so far.")]
    decided: Annotated[Count, Field(description="Of these, the decided ones.")]


@dataclass(frozen=True, slots=True)
class MonitorsReport:
    """State of the monitors."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    alarms: Annotated[Count, Field(description="Alarms so far.")]
    open: Annotated[
        tuple[Alarm, ...],
        Field(
            description="[Open](monitoring.md#what-follows-an-alarm) alarms, the newest of each"
            " test."
        ),
    ]
    tests: Annotated[
        list[dict[str, Any]],
        Field(
            description="The tests closest to an alarm, with fields of an alarm; the number of "
            "`alarms`; `deviation`, the mean of y - p with its confidence sequence;"
            " for a slice `off`, at a false discovery rate of 5 %."
        ),
    ]


@dataclass(frozen=True, slots=True)
class FeatureReport:
    """A named feature in the active model."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Annotated[
        Literal["number", "boolean", "category", "time", "text"],
        Field(description="Declared or found; a `text` is not used."),
    ]
    missing: Annotated[
        Probability,
        Field(description="Share of training examples without it, or with another kind."),
    ]


@dataclass(frozen=True, slots=True)
class ValidityReport:
    """Validity, cumulative and recent, after every `metrics_every` learned examples."""

    n: Annotated[Count, Field(description="Learned examples.")]
    scored: Annotated[Count, Field(description="Labelled examples answered after warm-up.")]
    headline: Annotated[MethodReport, Field(description="`probabilities` and `intervals`.")]
    venn: Annotated[MethodReport, Field(description="The Venn predictor.")]
    maps: Annotated[dict[str, MethodReport], Field(description="Each published map.")]
    windowed: Annotated[
        WindowedReport | None,
        Field(description="The last scored examples, with `metrics_window`."),
    ] = None
    monitors: Annotated[MonitorsReport | None, Field(description="State of the monitors.")] = None
    labels: Annotated[
        LateLabelReport | None, Field(description="Delayed labels, with a `horizon`.")
    ] = None
    costs: Annotated[CostReport | None, Field(description="Costs of decisions, with `costs`.")] = (
        None
    )
    features: Annotated[
        dict[str, FeatureReport] | None, Field(description="The first 256 named features.")
    ] = None
    budget: Annotated[
        LabelBudgetReport | None, Field(description="Wanted labels, with a `label_budget`.")
    ] = None
    promise: Annotated[
        PromiseReport | None, Field(description="The promised error rate, with `promise`.")
    ] = None
