"""Reports of whether announced probabilities and labels agree.

The documentation of messages is generated from the field descriptions here.
"""

from dataclasses import dataclass
from typing import Annotated

from online_svm.stream.answer_columns import Count, Probability, StrictRecord, doc


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
