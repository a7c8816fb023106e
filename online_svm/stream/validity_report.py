"""Reports of validity, cumulative and windowed, and counts of labels by outcome.

The documentation of messages is generated from the field descriptions here.
"""

from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from online_svm.stream.alarm import Alarm
from online_svm.stream.answer_columns import Count, Probability, StrictRecord, doc

Done = Literal["accepted", "repeated", "corrected"]  # outcome of a delayed label


@dataclass(slots=True)
class LabelCounts(StrictRecord):
    """Counts since the feed began, except `pending` and `unlabelled`, which are present numbers."""

    pending: Annotated[Count, doc("Answered examples that wait to be learned.")] = 0
    unlabelled: Annotated[Count, doc("Pending examples without a label.")] = 0
    late: Annotated[Count, doc("Labels that arrived after their example.")] = 0
    repeated: Annotated[Count, doc("Labels that were sent again.")] = 0
    corrected: Annotated[Count, doc("Labels that replaced another label.")] = 0
    censored: Annotated[Count, doc("Examples whose horizon passed without a label.")] = 0
    dropped: Annotated[Count, doc("Examples beyond `max_pending`.")] = 0
    early: Annotated[Count, doc("Examples whose label arrived before them and was rejected.")] = 0
    backwards: Annotated[
        Count, doc("Examples whose `time` is before that of an earlier example.")
    ] = 0

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


_Z = "in standard deviations if all probabilities are right. Descriptive."

_Positive = Annotated[float, Field(ge=0)]
_LogLoss = Annotated[float | None, doc("Mean of -ln p(true label), p clipped at 1e-6.")]
_Brier = Annotated[
    float | None, doc("Brier score: (p - y)^2 for two declared classes, else summed over all.")
]


@dataclass(frozen=True, slots=True)
class ReliabilityBin(StrictRecord):
    """One of at most ten equal-mass bins, by ascending probability."""

    count: Annotated[int, Field(ge=1, description="Number of examples.")]
    probability: Annotated[Probability, doc("Mean of the announced probabilities.")]
    frequency: Annotated[Probability, doc("Share of the examples in which the event happened.")]
    lower: Annotated[
        Probability,
        doc(
            "Lower end of the band that contains the frequency nine times of ten if "
            "the probabilities are right."
        ),
    ]
    upper: Annotated[Probability, doc("Its upper end.")]


@dataclass(frozen=True, slots=True)
class WindowScores(StrictRecord):
    """Scores of the headline over some examples; without examples, all but the count are null."""

    scored: Annotated[Count, doc("Number of examples.")]
    accuracy: Annotated[
        Probability | None, doc("Share of examples with a correct predicted label.")
    ]
    lower: Annotated[Probability | None, doc("Mean lower end announced for it.")]
    probability: Annotated[Probability | None, doc("Mean probability announced for it.")]
    upper: Annotated[Probability | None, doc("Mean upper end announced for it.")]
    z: Annotated[float | None, doc(f"`accuracy` minus `probability`, {_Z}")]
    log_loss: _LogLoss
    brier: _Brier
    miscalibration: Annotated[
        float | None,
        doc(
            "Decrease of the score by isotonic recalibration. `brier` = "
            "`miscalibration` - `discrimination` + `uncertainty`."
        ),
    ]
    discrimination: Annotated[
        float | None, doc("Lead of the recalibrated probabilities over the constant frequency.")
    ]
    uncertainty: Annotated[float | None, doc("Score of the constant frequency.")]
    calibration_error: Annotated[
        float | None,
        doc(
            "Root mean squared difference of frequency and probability in 15 bins, "
            "minus the part due to chance; for the second of two classes, else for the predicted "
            "label."
        ),
    ]


@dataclass(frozen=True, slots=True)
class WeightedScores(StrictRecord):
    """The same scores, weighted: the last example has weight 1, earlier ones decreasing weights."""

    weight: Annotated[_Positive, doc("Sum of the weights.")]
    accuracy: Annotated[Probability | None, doc("As in `WindowScores`, like all below.")]
    lower: Annotated[Probability | None, doc("Mean lower end.")]
    probability: Annotated[Probability | None, doc("Mean probability.")]
    upper: Annotated[Probability | None, doc("Mean upper end.")]
    log_loss: Annotated[float | None, doc("Mean log loss.")]
    brier: Annotated[float | None, doc("Mean Brier score.")]


@dataclass(frozen=True, slots=True)
class ClassFigures(StrictRecord):
    """Observed frequency of one class, and the probabilities predicted for it."""

    label: Annotated[str | None, doc("The class; null for unseen labels.")]
    examples: Annotated[Count, doc("Number of examples with this label.")]
    frequency: Annotated[Probability, doc("Their share.")]
    probability: Annotated[_Positive, doc("Mean probability of the class.")]
    z: Annotated[float | None, doc(f"`frequency` minus `probability`, {_Z}")]
    brier: Annotated[_Positive, doc("Brier score of that probability.")]
    miscalibration: Annotated[_Positive, doc("Of this class.")]
    discrimination: Annotated[_Positive, doc("Of this class.")]
    uncertainty: Annotated[_Positive, doc("Of this class.")]
    calibration_error: Annotated[float | None, doc("Of this class.")]
    predicted: Annotated[Count, doc("Number of predictions of this class.")]
    accuracy: Annotated[Probability | None, doc("Share of correct ones.")]
    announced: Annotated[float | None, doc("Their mean probability.")]


@dataclass(frozen=True, slots=True)
class SliceScores(StrictRecord):
    """Scores of the examples of one slice."""

    value: Annotated[str | None, doc("The value; null for all values after the first 20.")]
    scores: Annotated[WindowScores, doc("Their scores.")]


@dataclass(frozen=True, slots=True)
class Descriptive(StrictRecord):
    """Statistics of the window, for the same event as `calibration_error`.

    They are not tests, because the window is evaluated repeatedly.
    """

    spiegelhalter_z: Annotated[
        float | None,
        doc(
            "Excess of the Brier score, in standard deviations; positive if "
            "probabilities are too extreme."
        ),
    ]
    kolmogorov_smirnov: Annotated[
        _Positive,
        doc(
            "Maximum over q of |sum of y - p over examples with p <= q|, divided by "
            "the number of examples."
        ),
    ]
    kuiper: Annotated[_Positive, doc("The same maximum over all ranges of probability.")]
    integrated_calibration_index: Annotated[
        _Positive, doc("Mean of |p - r|, r the isotonic regression of y on p.")
    ]


@dataclass(frozen=True, slots=True)
class WindowedReport(StrictRecord):
    """Figures of the headline over the last scored examples."""

    window: Annotated[int, Field(ge=1, description="`metrics_window`.")]
    overall: Annotated[WindowScores, doc("Over the window.")]
    weighted: Annotated[WeightedScores, doc("Exponentially weighted over all examples.")]
    reliability: Annotated[list[ReliabilityBin], doc("A reliability diagram.")]
    classes: Annotated[
        list[ClassFigures],
        doc("Each class; if there are more than 32, those with the largest |`z`|."),
    ]
    slices: Annotated[dict[str, list[SliceScores]], doc("The values of each slice in the window.")]
    descriptive: Annotated[Descriptive | None, doc("Null without examples.")]


@dataclass(frozen=True, slots=True)
class LabelReport(StrictRecord):
    """Accuracy of a choice of label, and its announced probability.

    All values are null before the first scored example.
    """

    accuracy: Annotated[Probability | None, doc("Share of examples with this label.")]
    lower: Annotated[Probability | None, doc("Mean lower probability; null for a map.")]
    probability: Annotated[Probability | None, doc("Mean point probability.")]
    upper: Annotated[Probability | None, doc("Mean upper probability; null for a map.")]
    paper_p: Annotated[
        Probability | None,
        doc(
            "Two-sided p-value of the hits, as in the papers. Descriptive: it does not "
            "detect drift."
        ),
    ]


@dataclass(frozen=True, slots=True)
class MethodReport(StrictRecord):
    """Cumulative validity of one method."""

    predicted: Annotated[LabelReport, doc("For the label with the largest probability.")]
    svm: Annotated[LabelReport, doc("For the SVM's own class.")]
    log_loss: _LogLoss
    brier: _Brier
    clipped: Annotated[Count, doc("Number of clipped probabilities.")]


@dataclass(frozen=True, slots=True)
class MeanBounds(StrictRecord):
    """Bounds on a mean once all missing labels have arrived."""

    lower: Annotated[float, doc("Smallest possible value.")]
    estimate: Annotated[float, doc("Expected value if the announced probabilities are right.")]
    upper: Annotated[float, doc("Largest possible value.")]


@dataclass(frozen=True, slots=True)
class LateLabelReport(StrictRecord):
    """Outcomes of delayed labels."""

    counts: Annotated[LabelCounts, doc("Counts of examples and labels.")]
    open: Annotated[Count, doc("Answers of a model whose label has not arrived.")]
    accuracy: Annotated[
        MeanBounds | None, doc("Accuracy if all open answers are wrong, and if all are right.")
    ]
    brier: Annotated[MeanBounds | None, doc("The Brier score, likewise.")]


@dataclass(frozen=True, slots=True)
class LabelBudgetReport(StrictRecord):
    """Which labels were wanted, with a `label_budget`, and which came.

    With it, figures are weighted: a wanted label counts for as many examples as it stands for,
    other labels for none. `scored` counts labels, the counts of classes and slices examples.
    """

    probability: Annotated[
        Probability | None, doc("Mean probability with which a label was wanted.")
    ]
    wanted: Annotated[Count, doc("Answers whose label was wanted.")]
    labelled: Annotated[Count, doc("Of these, learned with a label: they are in the figures.")]
    missing: Annotated[
        Count, doc("Of these, given up without one: the figures hold for the others alone.")
    ]
    unasked: Annotated[Count, doc("Labels that came without being wanted; they are in no figure.")]


@dataclass(frozen=True, slots=True)
class CostReport(StrictRecord):
    """Mean cost of a scored example, by the setting `costs`; null before the first."""

    scored: Annotated[Count, doc("Number of scored examples.")]
    mean: Annotated[float | None, doc("Mean cost of the actions in the answers.")]
    by_label: Annotated[
        float | None, doc("Mean cost if the most probable label were always the action.")
    ]
    always: Annotated[dict[str, float | None], doc("Mean cost if always this action were taken.")]
    taken: Annotated[dict[str, Count], doc("Number of answers with each action.")]


@dataclass(frozen=True, slots=True)
class PromiseReport(StrictRecord):
    """What holds of the setting `promise`."""

    holds: Annotated[bool, doc("Whether cases are decided; else all are reviewed.")]
    withdrawn: Annotated[str | None, doc("Why it cannot hold now.")]
    thresholds: Annotated[
        dict[str, Probability],
        doc("Probability from which a label is decided; labels without are reviewed."),
    ]
    bounds: Annotated[
        dict[str, Probability],
        doc("Upper confidence bound of each promised rate at these thresholds."),
    ]
    decided_share: Annotated[
        Probability, doc("Share of recent examples that these thresholds decide.")
    ]
    labels: Annotated[Count, doc("Labels that count: since the last alarm.")]
    labels_needed: Annotated[
        Count | None,
        doc(
            "Labels that are still needed at the present error rates; null if no "
            "threshold has a low enough rate."
        ),
    ]
    answered: Annotated[Count, doc("Answers of a model so far.")]
    decided: Annotated[Count, doc("Of these, the decided ones.")]


@dataclass(frozen=True, slots=True)
class MonitorsReport(StrictRecord):
    """State of the monitors."""

    alarms: Annotated[Count, doc("Number of alarms so far.")]
    open: Annotated[
        tuple[Alarm, ...],
        doc("[Open](monitoring.md#what-follows-an-alarm) alarms, the newest of each test."),
    ]
    tests: Annotated[
        list[dict[str, Any]],
        doc(
            "The tests closest to an alarm: `kind`, `scope`, `name`, `log_wealth`, "
            "`threshold` and `since` as of an alarm; `alarms`, their number so far; `deviation`, a "
            "mean of y - p with its confidence sequence; for a slice `off`, at a false discovery "
            "rate of 5 %."
        ),
    ]


@dataclass(frozen=True, slots=True)
class FeatureReport(StrictRecord):
    """A named feature in the active model."""

    kind: Annotated[
        Literal["number", "boolean", "category", "time", "text"],
        doc("Declared or found kind; a `text` is not used."),
    ]
    missing: Annotated[
        Probability,
        doc("Share of the training examples that lack it or have it with another kind."),
    ]


@dataclass(frozen=True, slots=True)
class ValidityReport:
    """Validity, cumulative and recent, after every `metrics_every` learned examples."""

    n: Annotated[Count, doc("Number of learned examples.")]
    scored: Annotated[Count, doc("Labelled examples answered after warm-up.")]
    headline: Annotated[MethodReport, doc("Of `probabilities` and `intervals`.")]
    venn: Annotated[MethodReport, doc("Of the Venn predictor.")]
    maps: Annotated[dict[str, MethodReport], doc("Each published map.")]
    windowed: Annotated[
        WindowedReport | None, doc("Over the last scored examples, with `metrics_window`.")
    ] = None
    monitors: Annotated[MonitorsReport | None, doc("State of the monitors.")] = None
    labels: Annotated[LateLabelReport | None, doc("Delayed labels, with a `horizon`.")] = None
    costs: Annotated[CostReport | None, doc("Costs of decisions, with `costs`.")] = None
    features: Annotated[dict[str, FeatureReport] | None, doc("Named features, the first 256.")] = (
        None
    )
    budget: Annotated[LabelBudgetReport | None, doc("Wanted labels, with a `label_budget`.")] = None
    promise: Annotated[PromiseReport | None, doc("The promised error rate, with `promise`.")] = None
