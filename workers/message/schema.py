"""The schema of messages, version 2: every message that enters or leaves a feed.

The columns of an answer come from `online_svm.stream.answer_columns`; the parts of a report are the
classes that the predictor fills. The models generate docs/messages.md and parse messages in clients
and tools; tests compare the output of the hot path's encoders with theirs, byte for byte.
"""

from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from online_svm.stream.alarm import Alarm, Moved
from online_svm.stream.answer_columns import COLUMNS, Column, Status, doc
from online_svm.stream.notice import FeatureNotice, Notice
from online_svm.stream.validity_report import (
    AgreementReport,
    ClassAgreement,
    ClassFigures,
    CostReport,
    Descriptive,
    Done,
    FeatureReport,
    FigureBounds,
    LabelBudgetReport,
    LabelCounts,
    LabelReport,
    LateLabelReport,
    MeanBounds,
    MethodReport,
    MonitorsReport,
    PromiseReport,
    RangeAgreement,
    ReliabilityBin,
    SetReport,
    SliceScores,
    SpanAgreement,
    UnlabelledRange,
    ValidityReport,
    WeightedScores,
    WindowedReport,
    WindowScores,
)
from workers.feed.codes import EventCode
from workers.message.encode import dumps

OPTIONAL = (
    "id", "action", "expected_cost", "label_wanted", "label_probability", "map_intervals",
    "imputed", "set", "notices", "bounds", "agreement", "windowed", "monitors", "labels", "costs",
    "features", "promise", "sets", "budget", "traceparent",
)  # fmt: skip
"""Keys that are omitted instead of null."""


def optional(text: str, **bounds: Any) -> Any:
    """Return a field that may be absent, with its description."""
    return Field(None, description=text, **bounds)


class Message(BaseModel):
    """A payload: compact JSON, its keys in the order of the fields."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    def plain(self) -> dict[str, Any]:
        """Return the fields of the payload: optional ones only if they have a value."""
        fields = self.model_dump()
        for name in OPTIONAL:
            if fields.get(name, "") is None:
                del fields[name]
        return fields

    def payload(self) -> bytes:
        """Return the payload that the stream stores."""
        return dumps(self.plain())


class Versioned(Message):
    """The whole payload of an entry."""

    v: Literal[2] = Field(2, description="Schema version.")


class AnswerHead(Versioned):
    """The fields before the columns of a prediction."""

    status: Status = doc(
        "`warming` until a model exists: fields of machines are null or empty. Before a class "
        "is known, so are label and probabilities."
    )
    id: str | None = optional("The producer's id.")
    seq: int = Field(ge=0, description="Input entries before this one.")


def fields_of(columns: Iterable[Column]) -> dict[str, Any]:
    """Return columns as the fields of a model."""
    return {
        column.name: (
            column.type,
            Field(None if column.name in OPTIONAL else ..., description=column.description),
        )
        for column in columns
    }


PredictionMessage = create_model(
    "PredictionMessage",
    __base__=AnswerHead,
    __doc__="Answer to an accepted example.",
    **fields_of(COLUMNS),
    traceparent=(
        str | None,
        optional("[Trace context](http.md#trace-context)."),
    ),
)


class RejectedMessage(Versioned):
    """Answer to an unusable input entry, which changes nothing else.

    `tail`, `export`, the page and the gateway add `reason`, the sentence of the case.
    """

    status: Literal["rejected"] = Field("rejected", description="Always `rejected`.")
    id: str | None = optional("The producer's id.")
    seq: int = Field(ge=0, description="Input entries before this one.")
    n: int = Field(ge=0, description="Examples learned before this entry.")
    code: str = doc("[Reason code](#reason-codes).")
    about: dict[str, Any] = doc(
        "`case`, the name of a [case](#cases-of-rejections), and its parameters."
    )
    traceparent: str | None = optional("[Trace context](http.md#trace-context).")


class DuplicateMessage(Versioned):
    """Answer to an entry that repeats one of the last `dedupe_window` ids. It was not learned.

    Rejected entries may be sent again.
    """

    status: Literal["duplicate"] = Field("duplicate", description="Always `duplicate`.")
    id: str = doc("The producer's id.")
    seq: int = Field(ge=0, description="Input entries before this one.")
    n: int = Field(ge=0, description="Examples learned before this entry.")
    first: int = Field(ge=0, description="`seq` of the first answer to the id.")
    traceparent: str | None = optional("[Trace context](http.md#trace-context).")


class LabelMessage(Versioned):
    """Answer to a label entry, or to a waiting example that is sent again with its label."""

    status: Literal["label"] = Field("label", description="Always `label`.")
    id: str | None = optional("The producer's id.")
    seq: int = Field(ge=0, description="Input entries before this one.")
    n: int = Field(ge=0, description="Examples learned before this entry.")
    example: str = doc("Id of the example.")
    label: str = doc("Its label.")
    done: Done = doc("`repeated`: it had this label. `corrected`: it had another; figures stay.")
    traceparent: str | None = optional("[Trace context](http.md#trace-context).")


class InputEntry(BaseModel):
    """An example has exactly one of `x` and `xb`, or with `scores` perhaps `score` alone.

    With a `horizon`, an entry with `for`, or with `id`, `y` and no features, is the label of an
    earlier example.
    """

    model_config = ConfigDict(extra="forbid", validate_by_name=True)

    x: str | None = optional(
        'Features as JSON: an array of numbers, or named cells, `{"age": 39}`.'
    )
    xb: bytes | None = optional("Features as little-endian 64-bit floats.")
    y: str | None = optional("Label. Without one the example is only answered.")
    p: str | None = optional(
        "Instead of `y`, with `psvm`: a probability of the second class. It is learned, but not "
        "scored."
    )
    id: str | None = optional("The producer's id.")
    for_: str | None = optional("Id of an earlier example, whose label is `y`.", alias="for")
    time: str | None = optional(
        "Time in milliseconds. Required if the `horizon` counts time, else rejected."
    )
    s: str | None = optional(
        'Values of the `slices`: `{"country": "DE"}`.',
    )
    score: str | None = optional(
        "With `scores`: a number for the second of two classes, or JSON numbers of all, sorted "
        "or by name. Empty or null: missing."
    )
    score_version: str | None = optional("Version of its model; each is calibrated separately.")
    traceparent: str | None = optional("[Trace context](http.md#trace-context).")


class DeadLetter(BaseModel):
    """A rejected input entry, as fields, under the same entry ID."""

    model_config = ConfigDict(extra="forbid")

    code: str = doc("[Reason code](#reason-codes).")
    about: str = doc("`about` of the answer, as JSON.")
    size: int = Field(ge=0, description="Bytes of the entry.")
    head: bytes = Field(max_length=1024, description="Its fields, `name=value`, up to 1 KiB.")


def _fields_of(reported: type) -> dict[str, Any]:
    """Return the fields of a dataclass as fields of a model."""
    types = get_type_hints(reported, include_extras=True)
    return {
        field.name: (types[field.name], ... if field.default is MISSING else field.default)
        for field in fields(reported)
    }


_REPORT = _fields_of(ValidityReport)

MetricsMessage = create_model(
    "MetricsMessage",
    __base__=Versioned,
    __doc__="Validity after every `metrics_every` learned examples, under the last entry's ID.",
    n=_REPORT.pop("n"),
    seq=(int, Field(ge=0, description="Input entries before this one.")),
    **_REPORT,
)


class AlarmsMessage(Versioned):
    """The alarms that an input entry raised, under its ID."""

    seq: int = Field(ge=0, description="Input entries before this one.")
    alarms: list[Alarm] = doc("The alarms of this entry, at least one.")


class EventMessage(Versioned):
    """An operational event, best effort; about a thousand are kept. The entry ID holds the time."""

    code: EventCode = doc("[Code](#codes-of-events).")
    writer: str = doc("The worker, or user and host of a person.")
    epoch: int = Field(ge=0, description="Number of writers so far.")
    detail: str = doc("The event in words.")
    alarm: str | None = optional("Acknowledged: the ID in `alarms`.")
    until: int | None = optional("Silenced: until this Unix time in milliseconds.")
    notice: str | None = optional("Silenced: the code of one notice.")
    n: int | None = optional(
        "Examples learned before the noted event, or when the silenced notice opened.", ge=0
    )


STREAMS: dict[str, tuple[type, ...]] = {
    "in": (InputEntry,),
    "out": (
        PredictionMessage, RejectedMessage, DuplicateMessage, LabelMessage,
    ),
    "met": (
        MetricsMessage, MethodReport, LabelReport, WindowedReport, WindowScores, WeightedScores,
        ReliabilityBin, ClassFigures, SliceScores, Descriptive, MonitorsReport, Notice,
        FeatureNotice, LateLabelReport,
        AgreementReport, SpanAgreement, RangeAgreement, ClassAgreement, UnlabelledRange,
        LabelCounts, FigureBounds, MeanBounds, CostReport, PromiseReport, SetReport, FeatureReport,
        LabelBudgetReport,
    ),
    "alarms": (AlarmsMessage, Alarm, Moved),
    "dlq": (DeadLetter,),
    "events": (EventMessage,),
}  # fmt: skip
"""The messages of each stream, and their parts."""
