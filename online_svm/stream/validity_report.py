"""Reports of validity, cumulative and windowed, of agreement, and counts of labels by outcome.

The documentation of messages is generated from the field descriptions here.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from online_svm.storage.state_schema import StateSchema, StoredHeader, number
from online_svm.stream.alarm import Alarm
from online_svm.stream.answer_columns import Count, Probability, StrictRecord, doc
from online_svm.stream.notice import FeatureNotice, Notice

Done = Literal["accepted", "repeated", "corrected"]  # outcome of a delayed label


@dataclass(slots=True)
class LabelCounts(StoredHeader, StrictRecord):
    """Counts since the feed began; `pending` and `unlabelled` are present numbers."""

    _stored = StateSchema(
        number("pending"), number("unlabelled"), number("late"), number("repeated"),
        number("corrected"), number("censored"), number("dropped"), number("early"),
        number("backwards"), number("ahead"),
    )  # fmt: skip

    pending: Annotated[Count, doc("Answered examples not learned yet; those without a label.")] = 0
    unlabelled: Annotated[
        Count, doc("Answered examples not learned yet; those without a label.")
    ] = 0
    late: Annotated[Count, doc("Labels after their example.")] = 0
    repeated: Annotated[Count, doc("Labels sent again.")] = 0
    corrected: Annotated[Count, doc("Labels that replaced another.")] = 0
    censored: Annotated[Count, doc("Examples whose horizon passed without label.")] = 0
    dropped: Annotated[Count, doc("Examples beyond `max_pending`.")] = 0
    early: Annotated[Count, doc("Rejected labels, sent before their example.")] = 0
    backwards: Annotated[Count, doc("Examples whose `time` goes back.")] = 0
    ahead: Annotated[Count, doc("Examples whose `time` was far ahead of the feed's clock.")] = 0

    def copy(self) -> Self:
        """Return the counts as they are now."""
        return replace(self)


_Z = "in standard deviations if probabilities are right. Descriptive."

_Positive = Annotated[float, Field(ge=0)]
_LogLoss = Annotated[float | None, doc("Mean of -ln p(true label), p at least 1e-6.")]
_Brier = Annotated[
    float | None,
    doc("Mean of (p - y)^2; unless two classes are known, summed over all."),
]


@dataclass(frozen=True, slots=True)
class ReliabilityBin(StrictRecord):
    """One of at most ten equal-mass bins, by ascending probability."""

    count: Annotated[int, Field(ge=1, description="Number of examples.")]
    probability: Annotated[Probability, doc("Mean probability.")]
    frequency: Annotated[Probability, doc("Share in which the event happened.")]
    lower: Annotated[
        Probability,
        doc("Band that holds 90 % of frequencies if probabilities are right."),
    ]
    upper: Annotated[
        Probability, doc("Band that holds 90 % of frequencies if probabilities are right.")
    ]


@dataclass(frozen=True, slots=True)
class WindowScores(StrictRecord):
    """Scores of the headline; all but the count are null without examples."""

    scored: Annotated[Count, doc("Labelled examples answered after warm-up.")]
    accuracy: Annotated[Probability | None, doc("Share of right labels.")]
    lower: Annotated[Probability | None, doc("Mean ends.")]
    probability: Annotated[Probability | None, doc("Mean probability.")]
    upper: Annotated[Probability | None, doc("Mean ends.")]
    z: Annotated[float | None, doc(f"`accuracy` minus `probability`, {_Z}")]
    log_loss: _LogLoss
    brier: _Brier
    miscalibration: Annotated[
        float | None,
        doc("Gain by isotonic recalibration. `brier` = this - `discrimination` + `uncertainty`."),
    ]
    discrimination: Annotated[
        float | None, doc("Gain of recalibrated probabilities over the constant frequency.")
    ]
    uncertainty: Annotated[float | None, doc("Brier score of that frequency.")]
    calibration_error: Annotated[
        float | None,
        doc(
            "Root mean squared difference of frequency and probability in 15 bins, less chance, "
            "of the second of two classes or of the predicted label."
        ),
    ]


@dataclass(frozen=True, slots=True)
class WeightedScores(StrictRecord):
    """Weighted scores: the last example has weight 1, earlier ones less."""

    weight: Annotated[_Positive, doc("Sum of the weights.")]
    accuracy: Annotated[Probability | None, doc("Share of right labels.")]
    lower: Annotated[Probability | None, doc("Mean ends.")]
    probability: Annotated[Probability | None, doc("Mean probability.")]
    upper: Annotated[Probability | None, doc("Mean ends.")]
    log_loss: _LogLoss
    brier: _Brier


@dataclass(frozen=True, slots=True)
class ClassFigures(StrictRecord):
    """Frequency of one class, and its probabilities."""

    label: Annotated[str | None, doc("The class; null for unseen labels.")]
    examples: Annotated[Count, doc("Examples with this label.")]
    frequency: Annotated[Probability, doc("Their share.")]
    probability: Annotated[_Positive, doc("Mean probability.")]
    z: Annotated[float | None, doc("The same of `frequency` minus `probability`.")]
    brier: Annotated[_Positive, doc("Mean of (p - y)^2.")]
    miscalibration: Annotated[_Positive, doc("Of this class.")]
    discrimination: Annotated[_Positive, doc("Of this class.")]
    uncertainty: Annotated[_Positive, doc("Of this class.")]
    calibration_error: Annotated[float | None, doc("Of this class.")]
    predicted: Annotated[Count, doc("Predictions of this class.")]
    accuracy: Annotated[Probability | None, doc("Share of right labels.")]
    announced: Annotated[float | None, doc("Mean probability of these predictions.")]


@dataclass(frozen=True, slots=True)
class SliceScores(StrictRecord):
    """Scores of the examples of one slice."""

    value: Annotated[str | None, doc("The value; null for all after the first 20.")]
    scores: Annotated[WindowScores, doc("Its scores.")]


@dataclass(frozen=True, slots=True)
class RangeAgreement(StrictRecord):
    """A range of an event's probability."""

    lower: Annotated[Probability, doc("Ends of the range.")]
    upper: Annotated[Probability, doc("Ends of the range.")]
    announced: Annotated[Probability, doc("Mean probability.")]
    frequency: Annotated[Probability, doc("Share in which the event happened.")]
    answers: Annotated[Count, doc("Answers in the range.")]
    evidence: Annotated[float, doc("Log likelihood ratio against the edge of the tolerance.")]


@dataclass(frozen=True, slots=True)
class ClassAgreement(StrictRecord):
    """A class, and how often it was announced."""

    label: Annotated[str | None, doc("The class; null for unseen labels.")]
    announced: Annotated[Probability, doc("Mean probability.")]
    frequency: Annotated[Probability, doc("Share of the labels.")]
    examples: Annotated[Count, doc("Labels of this class.")]
    evidence: Annotated[float, doc("As of a range.")]
    factor: Annotated[
        float | None, doc("Bound on the ratio of frequency and probability, at 95 %.")
    ]


@dataclass(frozen=True, slots=True)
class SpanAgreement(StrictRecord):
    """Announced probabilities and labels over a span."""

    labels: Annotated[Count, doc("Labels in the span.")]
    accuracy: Annotated[Probability, doc("Share of right labels.")]
    announced: Annotated[Probability, doc("Mean probability of the predicted label.")]
    within: Annotated[
        float, doc("Bound on the error, at 95 %: of each mean, and of the ranges by 1.5.")
    ]
    apart: Annotated[float, doc("Root mean squared error of the ranges that is certain, or 0.")]
    change: Annotated[
        float, doc("Largest standardised difference, as a part of what counts as a change.")
    ]
    range: Annotated[RangeAgreement | None, doc("The range with the most evidence.")]
    mean: Annotated[ClassAgreement, doc("The class with the most evidence.")]
    rare: Annotated[
        ClassAgreement | None,
        doc("The rarest class, if announced below twice the tolerance."),
    ]
    gain: Annotated[float | None, doc("Mean gain of log loss over the running base rate.")]
    gain_error: Annotated[float | None, doc("Its standard error.")]
    entropy: Annotated[float, doc("Entropy of the labels, in the units of the gain.")]


@dataclass(frozen=True, slots=True)
class UnlabelledRange(StrictRecord):
    """A range whose answers get labels in less than a quarter of the usual share."""

    lower: Annotated[Probability, doc("Ends of the range.")]
    upper: Annotated[Probability, doc("Ends of the range.")]
    answers: Annotated[Count, doc("Recent answers in the range, and those with a label.")]
    labelled: Annotated[Count, doc("Recent answers in the range, and those with a label.")]


@dataclass(frozen=True, slots=True)
class AgreementReport(StrictRecord):
    """Whether announced probabilities and labels agree."""

    event: Annotated[
        str | None, doc("The second of two classes; null: that the predicted label is right.")
    ]
    last: Annotated[SpanAgreement | None, doc("Over the last 1,000 labels, and up to 99 more.")]
    since: Annotated[
        SpanAgreement | None, doc("Since the feed began, or an alarm was raised or closed.")
    ]
    start: Annotated[Count, doc("Examples learned before `since`.")]
    answers: Annotated[Count, doc("Recent answers, with a label or given up.")]
    unlabelled: Annotated[list[UnlabelledRange], doc("Ranges that lack labels.")]


@dataclass(frozen=True, slots=True)
class Descriptive(StrictRecord):
    """Statistics for the event of `calibration_error`.

    They are no tests, because the window is evaluated repeatedly.
    """

    spiegelhalter_z: Annotated[
        float | None,
        doc(
            "Excess of the Brier score in standard deviations; positive for too extreme "
            "probabilities."
        ),
    ]
    kolmogorov_smirnov: Annotated[
        _Positive,
        doc("Maximum over q of |mean of (y - p) 1(p <= q)|."),
    ]
    kuiper: Annotated[_Positive, doc("The same over all ranges of p.")]


@dataclass(frozen=True, slots=True)
class FigureBounds(StrictRecord):
    """Ends of the intervals of figures of the headline, at 95 %."""

    accuracy: Annotated[tuple[float, float], doc("Of the share of right labels.")]
    log_loss: Annotated[tuple[float, float], doc("Of the mean log loss.")]
    brier: Annotated[tuple[float, float], doc("Of the Brier score.")]


@dataclass(frozen=True, slots=True)
class WindowedReport(StrictRecord):
    """Figures of the headline over the last scored examples."""

    window: Annotated[int, Field(ge=1, description="`metrics_window`.")]
    overall: Annotated[WindowScores, doc("Over the window.")]
    weighted: Annotated[WeightedScores, doc("Over all examples, with decreasing weights.")]
    reliability: Annotated[list[ReliabilityBin], doc("A reliability diagram.")]
    classes: Annotated[
        list[ClassFigures],
        doc("Of more than 32 those with the largest |`z`|."),
    ]
    slices: Annotated[dict[str, list[SliceScores]], doc("The values of each slice.")]
    bounds: Annotated[FigureBounds | None, doc("Of `overall`; null without examples.")]
    descriptive: Annotated[Descriptive | None, doc("Further statistics.")]


@dataclass(frozen=True, slots=True)
class LabelReport(StrictRecord):
    """Accuracy of a choice of label, and what was announced for it.

    All are null before the first scored example; the ends are null for a map.
    """

    accuracy: Annotated[Probability | None, doc("Share of right labels.")]
    lower: Annotated[Probability | None, doc("Mean ends.")]
    probability: Annotated[Probability | None, doc("Mean probability.")]
    upper: Annotated[Probability | None, doc("Mean ends.")]
    paper_p: Annotated[
        Probability | None,
        doc("Two-sided p-value of the hits."),
    ]


@dataclass(frozen=True, slots=True)
class MethodReport(StrictRecord):
    """Cumulative validity of one method."""

    predicted: Annotated[LabelReport, doc("The most probable label.")]
    svm: Annotated[LabelReport, doc("The SVM's class.")]
    log_loss: _LogLoss
    brier: _Brier
    clipped: Annotated[Count, doc("Probabilities below 1e-6.")]


@dataclass(frozen=True, slots=True)
class MeanBounds(StrictRecord):
    """Bounds on a mean once all missing labels have arrived."""

    lower: Annotated[float, doc("Smallest and largest possible value.")]
    estimate: Annotated[float, doc("Expected value if probabilities are right.")]
    upper: Annotated[float, doc("Smallest and largest possible value.")]


@dataclass(frozen=True, slots=True)
class LateLabelReport(StrictRecord):
    """Outcomes of delayed labels."""

    counts: Annotated[LabelCounts, doc("The counts.")]
    open: Annotated[Count, doc("Answers of a model without a label yet.")]
    accuracy: Annotated[MeanBounds | None, doc("If all open answers are wrong, or all right.")]
    brier: Annotated[MeanBounds | None, doc("Likewise.")]


@dataclass(frozen=True, slots=True)
class LabelBudgetReport(StrictRecord):
    """Wanted labels.

    In the figures a wanted label counts for the examples it stands for, others for none. `scored`
    counts labels, the counts of classes and slices count examples.
    """

    probability: Annotated[Probability | None, doc("Mean probability of wanting a label.")]
    wanted: Annotated[
        Count, doc("Answers whose label was wanted; those learned with it, and given up without.")
    ]
    labelled: Annotated[
        Count, doc("Answers whose label was wanted; those learned with it, and given up without.")
    ]
    missing: Annotated[
        Count, doc("Answers whose label was wanted; those learned with it, and given up without.")
    ]
    unasked: Annotated[Count, doc("Unwanted labels.")]


@dataclass(frozen=True, slots=True)
class CostReport(StrictRecord):
    """Mean cost of a scored example; null before the first."""

    scored: Annotated[Count, doc("Labelled examples answered after warm-up.")]
    mean: Annotated[float | None, doc("Mean cost of the actions taken.")]
    lower: Annotated[float | None, doc("Ends of its interval, at 95 % and at all times.")]
    upper: Annotated[float | None, doc("Ends of its interval, at 95 % and at all times.")]
    by_label: Annotated[float | None, doc("The same if the most probable label were the action.")]
    always: Annotated[dict[str, float | None], doc("The same if it were always this action.")]
    taken: Annotated[dict[str, Count], doc("Answers with each action.")]


@dataclass(frozen=True, slots=True)
class PromiseReport(StrictRecord):
    """State of the `promise`."""

    holds: Annotated[bool, doc("Whether cases are decided; else all are reviewed.")]
    withdrawn: Annotated[str | None, doc("Why it cannot hold now.")]
    thresholds: Annotated[
        dict[str, Probability],
        doc("Probability from which a label is decided, if any."),
    ]
    bounds: Annotated[
        dict[str, Probability],
        doc("Upper confidence bound of each promised rate there."),
    ]
    decided_share: Annotated[Probability, doc("Decided share of recent examples.")]
    labels: Annotated[Count, doc("Labels since the last alarm.")]
    labels_needed: Annotated[
        Count | None,
        doc("Further labels needed at these error rates; null if no number will do."),
    ]
    answered: Annotated[Count, doc("Answers of a model so far, and those decided.")]
    decided: Annotated[Count, doc("Answers of a model so far, and those decided.")]


@dataclass(frozen=True, slots=True)
class SetReport(StrictRecord):
    """Sets of labels, with `set_coverage`."""

    labels: Annotated[Count, doc("Labels of answers of a model.")]
    coverage: Annotated[
        Probability | None,
        doc("Share of them in the set; of late labels, by the threshold before the label."),
    ]
    recent_labels: Annotated[Count, doc("The last 500 to 1,000 of them.")]
    recent_coverage: Annotated[Probability | None, doc("Share of these in the set.")]
    size: Annotated[float | None, doc("Mean number of classes in a set.")]


@dataclass(frozen=True, slots=True)
class MonitorsReport(StrictRecord):
    """State of the monitors."""

    alarms: Annotated[Count, doc("Alarms so far.")]
    open: Annotated[
        tuple[Alarm, ...],
        doc("[Open](monitoring.md#what-follows-an-alarm) alarms, one a test."),
    ]
    notices: Annotated[
        tuple[Notice, ...],
        doc("Open [notices](explanation/monitors.md#notices), the oldest first."),
    ]
    features: Annotated[
        tuple[FeatureNotice, ...], doc("Those of features: of gaps first, then the oldest.")
    ]
    tests: Annotated[
        list[dict[str, Any]],
        doc(
            "The tests closest to an alarm, with fields of an alarm, the number of `alarms` and "
            "`deviation` (the mean of y - p and its confidence sequence)."
        ),
    ]


@dataclass(frozen=True, slots=True)
class FeatureReport(StrictRecord):
    """A named feature in the active model."""

    kind: Annotated[
        Literal["number", "boolean", "category", "time", "text"],
        doc("Declared or found; a `text` is not used."),
    ]
    missing: Annotated[
        Probability,
        doc("Share of training examples without it, or of another kind."),
    ]


@dataclass(frozen=True, slots=True)
class ValidityReport:
    """Validity, cumulative and recent, after every `metrics_every` learned examples."""

    n: Annotated[Count, doc("Learned examples.")]
    scored: Annotated[Count, doc("Labelled examples answered after warm-up.")]
    headline: Annotated[MethodReport, doc("`probabilities` and `intervals`.")]
    venn: Annotated[MethodReport, doc("The Venn predictor.")]
    maps: Annotated[dict[str, MethodReport], doc("Each published map.")]
    bounds: Annotated[
        FigureBounds | None, doc("Of `headline`, at all times; null before the first example.")
    ] = None
    agreement: Annotated[
        AgreementReport | None, doc("Of the headline, or of the score that is watched.")
    ] = None
    windowed: Annotated[WindowedReport | None, doc("With `metrics_window`.")] = None
    monitors: Annotated[MonitorsReport | None, doc("Unless `monitors` is off.")] = None
    labels: Annotated[LateLabelReport | None, doc("With a `horizon`.")] = None
    costs: Annotated[CostReport | None, doc("With `costs`.")] = None
    features: Annotated[dict[str, FeatureReport] | None, doc("The first 256 named features.")] = (
        None
    )
    budget: Annotated[LabelBudgetReport | None, doc("With a `label_budget`.")] = None
    promise: Annotated[PromiseReport | None, doc("With `promise`.")] = None
    sets: Annotated[SetReport | None, doc("With `set_coverage`.")] = None
