"""The schema of messages, version 2: every message that enters or leaves a feed.

These models describe the schema; the columns of an answer come from
`online_svm.stream.answer_columns`. They generate docs/messages.md, they parse in clients and tools,
and the tests hold the hot path's encoder (encode.py) to them byte for byte.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, create_model

from online_svm.stream.alarm import AlarmAction, AlarmKind, AlarmScope
from online_svm.stream.answer_columns import COLUMNS, Column, Probability, Status
from online_svm.stream.label_counts import Done
from workers.message.event import EventCode
from workers.message.late_label_schema import LATE_LABELS, LateLabelsMessage
from workers.message.windowed_schema import WINDOWED, Windowed

CODES: dict[str, str] = {
    "no_features": "Neither `x` nor `xb` was sent; an empty entry is one such.",
    "unparsable": "`x` is not JSON, or not an array or object; `p` is not a decimal number; or "
    "text that is not UTF-8 or contains NUL.",
    "not_finite": "A feature or `p` is NaN or infinite, or too large for a 64-bit float.",
    "out_of_range": "A feature is finite but beyond 1e100, or so small that it is subnormal; or "
    "`p` is not in [0, 1].",
    "dimension": "The wrong number of features, or of bytes in `xb`.",
    "unknown_feature": "A named feature that the feed does not have.",
    "missing_feature": "A feature of the feed is absent or null.",
    "label": "`y` is empty, too long, not in the declared set, or not an integer where integers "
    "are asked for.",
    "too_many_classes": "A label that the feed has not met, when it has met as many as it takes.",
    "unknown_field": "A field that no version of this schema has.",
    "duplicate_field": "A field, or a named feature, is sent twice; or both `x` and `xb` are, or "
    "both `y` and `p`.",
    "too_large": "More bytes than the entry limit, a longer id than the limit, or a large `x` of "
    "far more values than features.",
    "slice": "`s` is not a JSON object of text, names a slice that the feed does not have, or a "
    "value in it has more than 64 characters.",
    "label_entry": "An entry with `for` that has no `y`, or a field that is of an example.",
    "unknown_id": "A label for an id that is not known: no example has it, or one that is "
    "forgotten, or one that comes later.",
    "after_horizon": "A label for an example that was given up without one: its horizon had "
    "passed, or too many waited.",
    "after_window": "Another label for an example that was learned and has left the window.",
    "conflict": "A label for an example that came with `p`; or an id that waits for its label, "
    "sent with a label and other features.",
    "time": "`time` is absent where the horizon counts it, or is not milliseconds up to the year "
    "9999.",
    "unsupported": "Not supported yet: the field `c` (a control entry), and features that are "
    "text, true or false, an array or an object. Or a field that a setting asks for: `for` without "
    "a `horizon`, `time` where the horizon does not count it, `s` where the feed has no slices, "
    "`p` where the learner takes labels only (`svc`).",
}

JOIN_CODES: dict[str, str] = {
    "no_id": "An answer of a source has no producer's id, or repeats one: nothing is joined to it.",
    "unmatched": "A source has no answer to the id within the window.",
    "no_answer": "Every source rejected the example.",
    "label": "The sources carry different labels; the answer stands, and learns none of them.",
}
"""Reason codes of a combination."""


EVENT_CODES: dict[EventCode, str] = {
    "began": "A worker has taken the feed over and begins to answer.",
    "stopped": "It stopped in order.",
    "failed": "It ended with an error, which `detail` tells.",
    "position_read_again": "It dropped what was not committed and read the position again: Redis "
    "lost its last writes, or the input changed.",
    "snapshot_not_kept": "A snapshot could not be kept; the next one follows later.",
    "snapshot_unusable": "A kept snapshot is damaged or gone; the worker replayed from another.",
    "input_uncounted": "Entries that were taken from the input unread before are not missed.",
    "input_ended": "The input has reached the last ID that Redis has.",
    "acknowledged": "Somebody has seen the alarms of the entry `alarm`.",
    "silenced": "Alarms are not posted to the webhook before `until`.",
}


OPTIONAL = ("id", "map_intervals", "windowed", "monitors", "labels")
"""Keys that are absent where others would be null."""


class Message(BaseModel):
    """A payload: compact JSON, its keys in the order of the fields."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    def plain(self) -> dict[str, Any]:
        """Return the fields as they are sent: optional ones only if they have a value."""
        fields = self.model_dump()
        for name in OPTIONAL:
            if fields.get(name, "") is None:
                del fields[name]
        return fields

    def payload(self) -> bytes:
        """Return the message as it is stored in the stream.

        Examples
        --------
        >>> RejectedMessage(seq=7, n=7, code="not_finite", reason="x[0] is NaN").payload()
        b'{"v":2,"status":"rejected","seq":7,"n":7,"code":"not_finite","reason":"x[0] is NaN"}'
        """
        return orjson.dumps(self.plain())


class AnswerHead(Message):
    """What the service puts in front of the columns of a prediction."""

    v: Literal[2] = Field(2, description="Version of this schema.")
    status: Status = Field(
        description="`warming` until a proper training set had two classes: label, probability, "
        "svm_label and category are then null, the maps and all lists but `classes` empty."
    )
    id: str | None = Field(None, description="The producer's id, only if it sent one.")
    seq: int = Field(ge=0, description="Input entries before this one, rejected ones included.")


def _fields(columns: Iterable[Column]) -> dict[str, Any]:
    """Return columns as the fields of a model; an optional one may be absent."""
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
    **_fields(COLUMNS),
)


class CombinedSource(Message):
    """What one source of a combination says of the last class."""

    belief: Probability = Field(description="Bel of the last class.")
    plausibility: Probability = Field(description="Pl of the last class.")


_COMBINED = {
    "n": "Labels learned before this answer.",
    "label": "The label with the larger recalibrated probability.",
    "lower": "Bel of that label by the combined mass, or `probability` where that is less.",
    "upper": "Pl of that label by the combined mass, or `probability` where that is more.",
    "probability": "Recalibrated probability of that label; the pignistic one before the first "
    "recalibration.",
    "method": "`pignistic`, and after the first recalibration its name: `platt` or `isotonic`. "
    "Null while warming.",
    "interval_level": "Always null.",
    "probabilities": "Recalibrated probability of each class.",
    "intervals": "Lower and upper end of each class, as `lower` and `upper` are made.",
    "venn": "Bel and Pl of each class by the combined mass: a combination has no Venn predictor.",
    "maps": "`pignistic`: probability of each class with the ignorance shared equally.",
    "scores": "One: ln(Pl(`classes[1]`) / Pl(`classes[0]`)) of the combination.",
    "svm_label": "The more plausible class: the sign of the score.",
    "category": "Always null.",
    "category_size": "Labels the recalibration was fitted on.",
    "model": "Always 0.",
    "calibration": "Version of the recalibration.",
    "taxonomy": "Always 0.",
    "guarantee": "Always `none`: sources that learned from the same labels are not the independent "
    "evidence that the rule assumes.",
}
"""What a column means in the answer of a combination, where it means something else."""

_OF_SOURCES = (
    Column("rule", "constant", Literal["dempster", "cautious"], "How the sources were combined."),
    Column(
        "sources",
        "constant",
        dict[str, CombinedSource | None],
        "What each source said; null where it was warming up or rejected the example, which counts "
        "as total ignorance.",
    ),
)


class CombinedHead(AnswerHead):
    """What stands in front of the columns in the answer of a combination."""

    status: Status = Field(
        description="`warming` while every source is; maps and lists but `classes` are then empty."
    )
    seq: int = Field(ge=0, description="Answers of the first source before this one.")


CombinedMessage = create_model(
    "CombinedMessage",
    __base__=CombinedHead,
    __doc__="""Answer of a combination to one id, in the `out` of the feed that `combine` writes.

    Its entry ID is that of the answer of the first source. It has the fields of any answer, with
    the meanings below, and two more.
    """,
    **_fields(
        replace(
            column,
            type=Literal["none"] if column.name == "guarantee" else column.type,
            description=_COMBINED.get(column.name, column.description),
        )
        for column in COLUMNS + _OF_SOURCES
    ),
)


class RejectedMessage(Message):
    """Answer to one input entry that could not be used, in `out`. It changed nothing else."""

    v: Literal[2] = Field(2, description="Version of this schema.")
    status: Literal["rejected"] = Field("rejected", description="Always `rejected`.")
    id: str | None = Field(None, description="The producer's id, if it could be read.")
    seq: int = Field(ge=0, description="Input entries before this one, rejected ones included.")
    n: int = Field(ge=0, description="Examples learned before this entry.")
    code: str = Field(description="Reason code; see the table of codes.")
    reason: str = Field(description="What was wrong, for a person.")


class DuplicateMessage(Message):
    """Answer to one entry whose id was answered recently, in `out`. It was not learned again.

    Only if `dedupe_window` is set. The window holds the ids of the last `dedupe_window` answered
    examples that carried an id. Rejected entries are not in it, so they may be sent again.
    """

    v: Literal[2] = Field(2, description="Version of this schema.")
    status: Literal["duplicate"] = Field("duplicate", description="Always `duplicate`.")
    id: str = Field(description="The producer's id.")
    seq: int = Field(ge=0, description="Input entries before this one, rejected ones included.")
    n: int = Field(ge=0, description="Examples learned before this entry.")
    first: int = Field(ge=0, description="`seq` of the answer that the id got.")


class LabelMessage(Message):
    """Answer to one label entry, in `out`. A label that could not be used is answered `rejected`.

    Only if `horizon` is set. An example that waits for its label and is sent again with it is
    answered so too.
    """

    v: Literal[2] = Field(2, description="Version of this schema.")
    status: Literal["label"] = Field("label", description="Always `label`.")
    id: str | None = Field(None, description="The entry's own id, only if it has one.")
    seq: int = Field(ge=0, description="Input entries before this one, rejected ones included.")
    n: int = Field(ge=0, description="Examples learned before this entry.")
    example: str = Field(description="The id of the example.")
    label: str = Field(description="Its label.")
    done: Done = Field(
        description="`accepted`: the example had no label. `repeated`: it had this one, and "
        "nothing changed. `corrected`: it had another; where that was learned already, the next "
        "refit uses this one, and what was scored stays."
    )


class LabelValidity(Message):
    """One choice of label: its accuracy against the probability it was given."""

    accuracy: Probability | None = Field(description="Share of examples with this label right.")
    lower: Probability | None = Field(description="Mean lower probability; null for a map.")
    probability: Probability | None = Field(description="Mean point probability.")
    upper: Probability | None = Field(description="Mean upper probability; null for a map.")
    paper_p: Probability | None = Field(
        description="The papers' two-sided p-value of the number of hits. Descriptive only: it "
        "looks fine under drift and is never the alarm."
    )


class MethodValidity(Message):
    """Cumulative validity of one method."""

    predicted: LabelValidity = Field(
        description="For the label the method itself predicts, the one with the largest "
        "probability."
    )
    svm: LabelValidity = Field(description="For the SVM's own class, which no calibration chose.")
    log_loss: float | None = Field(description="Mean of -ln p(true label), p clipped at 1e-6.")
    brier: float | None = Field(
        description="Mean Brier score: (p - y)^2 for two classes, the sum over classes for more."
    )
    clipped: int = Field(ge=0, description="Examples whose p(true label) was clipped.")


class AlarmMessage(Message):
    """One alarm: a sequential test was rejected."""

    n: int = Field(ge=0, description="Examples learned when it was raised, that one included.")
    kind: AlarmKind = Field(
        description="`calibration`: the probabilities are off by more than the tolerance. "
        "`exchangeability`: the examples are not independent draws of one distribution; only this "
        "kind makes the guarantee `none`. `comparison`: one method beats another."
    )
    scope: AlarmScope = Field(description="What the test watched.")
    name: str | None = Field(description="Name of the class, category, bin or slice; null without.")
    monitor: str = Field(description="Name of the test.")
    log_wealth: float = Field(description="Evidence of the test: the natural log of its wealth.")
    threshold: float = Field(description="What it had to reach, on the same scale.")
    since: int = Field(ge=0, description="Examples learned when the test began.")
    estimate: float | None = Field(description="Mean of y - p since then; null without.")
    lower: float | None = Field(description="Lower end of its confidence sequence.")
    upper: float | None = Field(description="Upper end.")
    action: AlarmAction = Field(
        description="What was done, by `on_drift`: nothing but this (`report`), refits from later "
        "examples alone (`refit`), or a predictor that begins anew (`reset`)."
    )


class MonitorsMessage(Message):
    """Where the monitors stand, in a validity report."""

    alarms: int = Field(ge=0, description="Alarms so far.")
    open: list[AlarmMessage] = Field(
        description="Alarms that are open, the oldest first; the newest of each test. An alarm is "
        "open while the model or its calibration uses an example from before it."
    )
    tests: list[dict[str, Any]] = Field(
        description="The tests nearest to a finding, each an object: `kind`, `scope` and `name` as "
        "of an alarm; `log_wealth`, its evidence, and `threshold`, what it has to reach, both "
        "natural logarithms; `alarms`, its alarms so far; `since`, examples learned when it began, "
        "null before its first example; of a calibration test also `deviation`, a mean of y - p "
        "with its confidence sequence."
    )


class MetricsMessage(Message):
    """Validity, in `met`: cumulative, and recent. Every `metrics_every` learned examples.

    Its entry ID is the ID of the last input entry it covers.
    """

    v: Literal[2] = Field(2, description="Version of this schema.")
    n: int = Field(ge=0, description="Learned examples.")
    seq: int = Field(ge=0, description="`seq` of the last input entry it covers.")
    scored: int = Field(
        ge=0, description="Labelled examples answered after warm-up: what the means run over."
    )
    headline: MethodValidity = Field(
        description="What an answer puts first: `probabilities` and `intervals`."
    )
    venn: MethodValidity = Field(
        description="The Venn predictor: the mean over its multiprobability, and `venn`."
    )
    maps: dict[str, MethodValidity] = Field(description="Each published map.")
    windowed: Windowed | None = Field(
        None,
        description="The headline over the last scored examples. Only if `metrics_window` is set.",
    )
    monitors: MonitorsMessage | None = Field(
        None, description="Where the monitors stand; absent where they are off."
    )
    labels: LateLabelsMessage | None = Field(
        None, description="What became of late labels. Only if `horizon` is set."
    )


class AlarmsMessage(Message):
    """The alarms that one entry raised, in `alarms`; its entry ID is the ID of the input entry."""

    v: Literal[2] = Field(2, description="Version of this schema.")
    seq: int = Field(ge=0, description="`seq` of the input entry.")
    alarms: list[AlarmMessage] = Field(description="At least one.")


class EventMessage(Message):
    """An operational event, in `events`, which keeps about a thousand. Best effort.

    Its entry ID is given by Redis, and holds the time. Events are no function of the examples and
    no part of the digest.
    """

    v: Literal[2] = Field(2, description="Version of this schema.")
    code: EventCode = Field(description="What happened; see the table of events.")
    writer: str = Field(description="Name of the worker; user and host of a person.")
    epoch: int = Field(ge=0, description="Number of writers so far, this one included.")
    detail: str = Field(description="For a person; at most 1,000 characters.")
    alarm: str | None = Field(
        None, description="ID of the entry in `alarms` that was acknowledged; only there."
    )
    until: int | None = Field(
        None, description="End of a silence, in milliseconds since 1970; only there."
    )


class InputEntry(BaseModel):
    """An entry of `in`: fields of a Redis stream entry, not JSON as a whole.

    An example has exactly one of `x` and `xb`. With a `horizon`, an entry with `for`, or one with
    `id`, `y` and no features, is the label of an example that came before. Any other field, or one
    sent twice, is rejected. The field `c` is kept for what is to come, and rejected as not
    supported yet.
    """

    model_config = ConfigDict(extra="forbid", validate_by_name=True)

    x: str | None = Field(
        None,
        description="Features as JSON: an array of numbers, `[0.5, 1]`, or an object of named "
        'numbers, `{"age": 39}`. Named features are ordered by sort.',
    )
    xb: bytes | None = Field(
        None, description="Features as raw little-endian 64-bit floats, 8 bytes each."
    )
    y: str | None = Field(
        None,
        description="Label, UTF-8 text. With neither `y` nor `p` the example is answered, "
        "not learned; with a `horizon` its label may still come.",
    )
    p: str | None = Field(
        None,
        description="In place of `y`, for the learner `psvm`: an annotator's probability that the "
        "label is the second class, a decimal number in [0, 1]. It is learned and counted in `n`, "
        "but takes no part in calibration, in the data of the maps or in the metrics.",
    )
    id: str | None = Field(
        None,
        description="The producer's own id; the answer repeats it. With `dedupe_window`, an id "
        "that was answered lately is answered `duplicate`; so is one that waits for its label.",
    )
    for_: str | None = Field(
        None,
        alias="for",
        description="The id of an example that came before; this entry is its label, `y`. Only if "
        "`horizon` is set.",
    )
    time: str | None = Field(
        None,
        description="When the example happened, in milliseconds by the producer's clock. Every "
        "example has it if the `horizon` counts time, and none else.",
    )
    s: str | None = Field(
        None,
        description="Values of the feed's `slices`, a JSON object of text: "
        '`{"country": "DE"}`. They are no features; reports have figures for each value. A name '
        "may be absent or null.",
    )


class DeadLetter(BaseModel):
    """An entry of `dlq`: a copy of a rejected input entry, as fields, under the same entry ID."""

    model_config = ConfigDict(extra="forbid")

    code: str = Field(description="Reason code; see the table of codes.")
    reason: str = Field(description="What was wrong, for a person.")
    size: int = Field(ge=0, description="Bytes of the input entry: field names and values.")
    head: bytes = Field(
        max_length=1024, description="Its fields as lines `name=value`, the first KiB of them."
    )


STREAMS: dict[str, tuple[type[BaseModel], ...]] = {
    "in": (InputEntry,),
    "out": (
        PredictionMessage,
        RejectedMessage,
        DuplicateMessage,
        LabelMessage,
        CombinedMessage,
        CombinedSource,
    ),
    "met": (
        MetricsMessage,
        MethodValidity,
        LabelValidity,
        *WINDOWED,
        MonitorsMessage,
        *LATE_LABELS,
    ),
    "alarms": (AlarmsMessage, AlarmMessage),
    "dlq": (DeadLetter,),
    "events": (EventMessage,),
}
