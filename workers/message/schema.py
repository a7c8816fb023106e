"""The schema of messages, version 2: every message that enters or leaves a feed.

The columns of an answer come from `online_svm.stream.answer_columns`; the parts of a report are the
classes that the predictor fills. The models generate docs/messages.md and parse messages in clients
and tools; tests compare the output of the hot path's encoders with theirs, byte for byte.
"""

from collections.abc import Iterable
from dataclasses import MISSING, fields, replace
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from online_svm.stream.alarm import Alarm, Moved
from online_svm.stream.answer_columns import COLUMNS, Column, Probability, Status, doc
from online_svm.stream.validity_report import (
    ClassFigures,
    CostReport,
    Descriptive,
    Done,
    FeatureReport,
    LabelBudgetReport,
    LabelCounts,
    LabelReport,
    LateLabelReport,
    MeanBounds,
    MethodReport,
    MonitorsReport,
    PromiseReport,
    ReliabilityBin,
    SliceScores,
    ValidityReport,
    WeightedScores,
    WindowedReport,
    WindowScores,
)
from workers.message.codes import EventCode
from workers.message.encode import dumps

OPTIONAL = (
    "id", "action", "expected_cost", "label_wanted", "label_probability", "map_intervals",
    "imputed", "windowed", "monitors", "labels", "costs", "features", "promise", "budget",
    "traceparent",
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
        "is known, and in semantics 4 and 5, so are label and probabilities."
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


_OF_COLUMN = {column.name: column.description for column in COLUMNS}


class CompactMessage(Versioned):
    """The same answer with `payload = "compact"`, except while warming.

    `workers.message.compact.parse` returns the fields of a full answer.
    """

    id: str | None = optional("The producer's id.")
    seq: int = Field(ge=0, description="Input entries before this one.")
    imputed: int | None = optional(_OF_COLUMN["imputed"], ge=0)
    c: list[Any] = doc("The values below.")
    action: str | None = optional(_OF_COLUMN["action"])
    expected_cost: float | None = optional(_OF_COLUMN["expected_cost"])
    label_wanted: bool | None = optional(_OF_COLUMN["label_wanted"])
    label_probability: Probability | None = optional(_OF_COLUMN["label_probability"])
    traceparent: str | None = optional("[Trace context](http.md#trace-context).")


class RejectedMessage(Versioned):
    """Answer to an unusable input entry, which changes nothing else.

    `tail`, `export`, the page and the gateway add `reason`, the sentence of the case. Semantics 4
    stores `reason` instead of `about`.
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


class CombinedSource(Message):
    """The answer of one source."""

    belief: Probability = doc("Bel and Pl of the last class.")
    plausibility: Probability = doc("Bel and Pl of the last class.")


_COMBINED = {
    "n": "Labels learned before.",
    "lower": "Bel and Pl of the label, widened to `probability`.",
    "upper": "Bel and Pl of the label, widened to `probability`.",
    "probability": "Recalibrated; pignistic before the first recalibration.",
    "method": "`pignistic`, then `platt` or `isotonic`.",
    "interval_level": "Always null.",
    "venn": "Bel and Pl of each class.",
    "maps": "`pignistic`: ignorance is shared equally.",
    "scores": "One: ln(Pl(`classes[1]`) / Pl(`classes[0]`)).",
    "svm_label": "The more plausible class.",
    "category": "Always null.",
    "category_size": "Labels of the recalibration.",
    "imputed": "Always absent.",
    "label_wanted": "Always absent.",
    "label_probability": "Always absent.",
    "model": "Always 0.",
    "taxonomy": "Always 0.",
    "guarantee": "Always `none`: the sources learned the same labels.",
}
"""Descriptions of the columns with another meaning in the answer of a combination."""

_OF_SOURCES = (
    Column("rule", "constant", Literal["dempster", "cautious"], "The rule."),
    Column(
        "sources",
        "constant",
        dict[str, CombinedSource | None],
        "The answer of each; null counts as ignorance.",
    ),
)


class CombinedHead(AnswerHead):
    """The fields before the columns in the answer of a combination."""

    status: Status = doc("`warming` while all sources are warming.")
    seq: int = Field(ge=0, description="Answers of the first source before.")


CombinedMessage = create_model(
    "CombinedMessage",
    __base__=CombinedHead,
    __doc__="""Answer of a combination to one id, under the entry ID of the first source's answer.

    It has the fields of a prediction; these have another meaning.
    """,
    **fields_of(
        replace(
            column,
            type=Literal["none"] if column.name == "guarantee" else column.type,
            description=_COMBINED.get(column.name, column.description),
        )
        for column in COLUMNS + _OF_SOURCES
    ),
)


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
    a: str | None = optional("With `given_answers`: a scorer's answer, to be scored instead.")
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
    n: int | None = optional("Note: examples learned before the noted event.", ge=0)


def _of_input(name: str) -> Any:
    """Return a field that means the same in `InputEntry`."""
    return optional(InputEntry.model_fields[name].description or "")


class RequestEntry(BaseModel):
    """An example without a label."""

    model_config = ConfigDict(extra="forbid")

    x: str | None = _of_input("x")
    xb: bytes | None = _of_input("xb")
    score: str | None = _of_input("score")
    score_version: str | None = _of_input("score_version")
    id: str | None = optional(
        "Names the key of the answer; without a readable id the entry ID does."
    )
    traceparent: str | None = _of_input("traceparent")


class ReplyMessage(Versioned):
    """The only element of a list, kept for `scorer --keep` seconds."""

    state: str | None = doc("Its `n` and eight digits of its checksum.")
    behind: int | None = Field(ge=0, description="Examples learned since that state.")
    age: int | None = Field(ge=0, description="Milliseconds since its publication.")
    answer: dict[str, Any] = doc(
        "An answer as in `out`, with the state's `seq` and `n`, or an `UnavailableMessage`."
    )


class UnavailableMessage(Versioned):
    """Answer to a request that no state can answer now. Ask later, with a new id."""

    status: Literal["unavailable"] = Field("unavailable", description="Always `unavailable`.")
    id: str | None = optional("The producer's id.")
    code: Literal["no_state", "stale", "failed", "late"] = doc("[Code](#codes-of-requests).")
    reason: str = doc("The reason in words.")


STREAMS: dict[str, tuple[type, ...]] = {
    "in": (InputEntry,),
    "out": (
        PredictionMessage, CompactMessage, RejectedMessage, DuplicateMessage, LabelMessage,
        CombinedMessage, CombinedSource,
    ),
    "met": (
        MetricsMessage, MethodReport, LabelReport, WindowedReport, WindowScores, WeightedScores,
        ReliabilityBin, ClassFigures, SliceScores, Descriptive, MonitorsReport, LateLabelReport,
        LabelCounts, MeanBounds, CostReport, PromiseReport, FeatureReport, LabelBudgetReport,
    ),
    "alarms": (AlarmsMessage, Alarm, Moved),
    "dlq": (DeadLetter,),
    "events": (EventMessage,),
    "req": (RequestEntry,),
    "ans": (ReplyMessage, UnavailableMessage),
}  # fmt: skip
"""The messages of each stream, and their parts."""
