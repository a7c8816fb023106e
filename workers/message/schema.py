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

    v: Literal[2] = Field(2, description="Version of the schema.")


class AnswerHead(Versioned):
    """The fields before the columns of a prediction."""

    status: Status = doc(
        "`warming` until two classes were in the training set. While warming,"
        " the category and the SVM's own class are null; `venn`, `maps` and `scores` are empty."
        " Before a class is known, and in feeds of semantics 4 and 5, label and probability are"
        " null too, and the other lists are empty."
    )
    id: str | None = optional("The producer's id, only if it sent one.")
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
    __doc__="Answer to one accepted example, in `out`; its entry ID is the ID of the input entry.",
    **fields_of(COLUMNS),
    traceparent=(
        str | None,
        optional("Trace context (W3C) as the entry gave it; absent without one."),
    ),
)


class CompactMessage(Versioned):
    """The same answer in the compact form, in `out` of a feed with `payload = "compact"`.

    Only such an answer has `c`. While warming up, and for any other entry, messages have the
    full form. `workers.message.compact.parse` returns the fields of a full answer.
    """

    id: str | None = optional("The producer's id, only if it sent one.")
    seq: int = Field(ge=0, description="Input entries before this one.")
    imputed: int | None = optional("As in a full answer.", ge=0)
    c: list[Any] = doc("The values listed below, in that order.")
    action: str | None = optional("As in a full answer.")
    expected_cost: float | None = optional("As in a full answer.")
    label_wanted: bool | None = optional("As in a full answer.")
    label_probability: Probability | None = optional("As in a full answer.")
    traceparent: str | None = optional("As the entry gave it.")


class RejectedMessage(Versioned):
    """Answer to one input entry that could not be used, in `out`. It changed nothing else.

    `tail`, `export`, the page and the gateway add `reason`, the sentence that the case and its
    parameters make. A feed of semantics 4 stores `reason`, and no `about`.
    """

    status: Literal["rejected"] = Field("rejected", description="Always `rejected`.")
    id: str | None = optional("The producer's id, if it could be read.")
    seq: int = Field(ge=0, description="Input entries before this one.")
    n: int = Field(ge=0, description="Examples learned before this entry.")
    code: str = doc("[Reason code](#reason-codes).")
    about: dict[str, Any] = doc(
        "The reason: `case`, the name of a [case](#cases-of-rejections), and the "
        "parameters of its sentence."
    )
    traceparent: str | None = optional("As the entry gave it.")


class DuplicateMessage(Versioned):
    """Answer to one entry whose id was answered recently, in `out`. It was not learned again.

    Only if `dedupe_window` is set. The window holds the ids of the last `dedupe_window` answered
    examples that carried an id. Rejected entries are not in it, so they may be sent again.
    """

    status: Literal["duplicate"] = Field("duplicate", description="Always `duplicate`.")
    id: str = doc("The producer's id.")
    seq: int = Field(ge=0, description="Input entries before this one.")
    n: int = Field(ge=0, description="Examples learned before this entry.")
    first: int = Field(ge=0, description="`seq` of the answer that the id got.")
    traceparent: str | None = optional("As the entry gave it.")


class LabelMessage(Versioned):
    """Answer to one label entry, in `out`. A label that could not be used is answered `rejected`.

    Only if `horizon` is set. An example that waits for its label and is sent again with it is
    answered so too.
    """

    status: Literal["label"] = Field("label", description="Always `label`.")
    id: str | None = optional("The entry's own id, only if it has one.")
    seq: int = Field(ge=0, description="Input entries before this one.")
    n: int = Field(ge=0, description="Examples learned before this entry.")
    example: str = doc("The id of the example.")
    label: str = doc("The label of the example.")
    done: Done = doc(
        "`accepted`: the example had no label. `repeated`: it had the same label. "
        "`corrected`: it had another; the next refit uses the new label, and figures stay."
    )
    traceparent: str | None = optional("As the entry gave it.")


class CombinedSource(Message):
    """The answer of one source of a combination about the last class."""

    belief: Probability = doc("Bel of the last class.")
    plausibility: Probability = doc("Pl of the last class.")


_COMBINED = {
    "n": "Labels learned before this entry.",
    "label": "The label with the larger probability.",
    "lower": "Bel of it, or `probability` where that is less.",
    "upper": "Pl of it, or `probability` where that is more.",
    "probability": "Recalibrated; the pignistic one before the first recalibration.",
    "method": "`pignistic`, then `platt` or `isotonic`.",
    "interval_level": "Always null.",
    "probabilities": "Recalibrated probability of each class.",
    "intervals": "Made as `lower` and `upper`.",
    "venn": "Bel and Pl of each class.",
    "maps": "`pignistic`: ignorance shared equally.",
    "scores": "One: ln(Pl(`classes[1]`) / Pl(`classes[0]`)).",
    "svm_label": "The more plausible class.",
    "category": "Always null.",
    "category_size": "Labels of the recalibration.",
    "imputed": "Always absent.",
    "label_wanted": "Always absent.",
    "label_probability": "Always absent.",
    "model": "Always 0.",
    "calibration": "Version of the recalibration.",
    "taxonomy": "Always 0.",
    "guarantee": "Always `none`: sources that learned the same labels are no independent evidence.",
}
"""Descriptions of the columns with another meaning in the answer of a combination."""

_OF_SOURCES = (
    Column("rule", "constant", Literal["dempster", "cautious"], "The rule."),
    Column(
        "sources",
        "constant",
        dict[str, CombinedSource | None],
        "The answer of each; null (warming, rejected) counts as ignorance.",
    ),
)


class CombinedHead(AnswerHead):
    """The fields before the columns in the answer of a combination."""

    status: Status = doc("`warming` while all sources are warming.")
    seq: int = Field(ge=0, description="Answers of the first source before this one.")


CombinedMessage = create_model(
    "CombinedMessage",
    __base__=CombinedHead,
    __doc__="""Answer of a combination to one id, in the `out` of the feed that `combine` writes.

    Its entry ID is the ID of the first source's answer. It has the fields of any answer, with
    the meanings below, and two more.
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
    """An entry of `in`: fields of a Redis stream entry, not JSON as a whole.

    An example has exactly one of `x` and `xb`; in a feed with `scores` it may have `score` alone.
    With a `horizon`, an entry with `for`, or one with
    `id`, `y` and no features, is the label of an example that came before. Any other field, or one
    sent twice, is rejected. The field `c` is kept for what is to come, and rejected as not
    supported yet.
    """

    model_config = ConfigDict(extra="forbid", validate_by_name=True)

    x: str | None = optional(
        "Features as JSON: an array of numbers, `[0.5, 1]`, or an object of named"
        ' cells, `{"age": 39}`.'
    )
    xb: bytes | None = optional("Features as little-endian 64-bit floats.")
    y: str | None = optional(
        "Label. Without it the example is answered, not learned; with a `horizon`"
        " the label may follow."
    )
    p: str | None = optional(
        "In place of `y`, for the learner `psvm`: an annotator's probability of "
        "the second class, in [0, 1]. It is learned, but not used for "
        "calibration, maps or figures."
    )
    id: str | None = optional("The producer's id; the answer repeats it. See `dedupe_window`.")
    for_: str | None = optional(
        "Id of an earlier example; `y` is its label. Only with a `horizon`.", alias="for"
    )
    time: str | None = optional(
        "Time of the example by the producer's clock, in milliseconds. Required if the "
        "`horizon` counts time, else not allowed."
    )
    s: str | None = optional(
        'Values of the feed\'s `slices`: `{"country": "DE"}`. They are no features.',
    )
    score: str | None = optional(
        "Output of another model, with the setting `scores`: a number about the second"
        " of two classes, or numbers of all classes as JSON, an array in the order of the sorted"
        ' classes or `{"a": 0.2, "b": 0.8}`. Empty or null: missing.'
    )
    score_version: str | None = optional(
        "Version of that model: the scores of each are calibrated by themselves."
    )
    a: str | None = optional(
        "The answer that a scorer gave, in full, to be scored in place of the "
        "worker's own. Only with `given_answers`."
    )
    traceparent: str | None = optional(
        "Trace context (W3C), which the answer repeats; it changes nothing else. "
        "Another form is ignored. Rejected in feeds of semantics 4 and 5."
    )


class DeadLetter(BaseModel):
    """An entry of `dlq`: a copy of a rejected input entry, as fields, under the same entry ID.

    A feed of semantics 4 has `reason`, the sentence itself, in the place of `about`.
    """

    model_config = ConfigDict(extra="forbid")

    code: str = doc("[Reason code](#reason-codes).")
    about: str = doc("`about` of the answer, as JSON.")
    size: int = Field(ge=0, description="Bytes of the entry.")
    head: bytes = Field(
        max_length=1024, description="The entry's fields as lines `name=value`, up to 1 KiB."
    )


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
    __doc__="Validity, in `met`: cumulative, and recent. Every `metrics_every` learned examples."
    "\n\nIts entry ID is the ID of the last input entry it covers.",
    n=_REPORT.pop("n"),
    seq=(int, Field(ge=0, description="`seq` of the last input entry it covers.")),
    **_REPORT,
)


class AlarmsMessage(Versioned):
    """The alarms that one entry raised, in `alarms`; its entry ID is the ID of the input entry."""

    seq: int = Field(ge=0, description="`seq` of the input entry.")
    alarms: list[Alarm] = doc("The alarms that the entry raised, at least one.")


class EventMessage(Versioned):
    """An operational event, in `events`, which keeps about a thousand. Best effort.

    Its entry ID is given by Redis, and holds the time. Events are no function of the examples and
    no part of the digest.
    """

    code: EventCode = doc("[Code of the event](#codes-of-events).")
    writer: str = doc("Name of the worker, or user and host of a person.")
    epoch: int = Field(ge=0, description="Number of writers so far.")
    detail: str = doc("The event in words.")
    alarm: str | None = optional("Of an acknowledgement: the ID in `alarms`.")
    until: int | None = optional("Of a silence: its end, in milliseconds since 1970.")
    n: int | None = optional("Of a note: examples learned before the noted event.", ge=0)


class RequestEntry(BaseModel):
    """An entry of `req`: an example without a label, for a scorer. Any other field is rejected."""

    model_config = ConfigDict(extra="forbid")

    x: str | None = optional("Features, as in `in`.")
    xb: bytes | None = optional("Features as raw floats, as in `in`.")
    score: str | None = optional("As in `in`.")
    score_version: str | None = optional("As in `in`.")
    id: str | None = optional(
        "The key of the answer is `osvm:{F}:ans:<id>`; without a readable id, it has "
        "the entry ID instead. A repeated id gets the first answer while that is kept."
    )
    traceparent: str | None = optional("As in `in`.")


class ReplyMessage(Versioned):
    """The one element of the list `ans:<id>`, which goes after a while (`scorer --keep`)."""

    state: str | None = doc("The published state: its n and eight digits of its checksum.")
    behind: int | None = Field(ge=0, description="Examples learned since that state.")
    age: int | None = Field(ge=0, description="Milliseconds since the state was published.")
    answer: dict[str, Any] = doc(
        "An answer as in `out`, `RejectedMessage` or `UnavailableMessage`. `seq` "
        "and `n` are the state's."
    )


class UnavailableMessage(Versioned):
    """Answer to a request that no state can answer now. Ask again later, under a new id."""

    status: Literal["unavailable"] = Field("unavailable", description="Always `unavailable`.")
    id: str | None = optional("The request's id, if it could be read.")
    code: Literal["no_state", "stale", "failed", "late"] = doc("[Reason code](#codes-of-requests).")
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
