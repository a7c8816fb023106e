"""The schema of messages, version 2: every message that enters or leaves a feed.

These models describe the schema; the columns of an answer come from
`online_svm.stream.answer_columns`. They generate docs/messages.md, they parse in clients and tools,
and the tests hold the hot path's encoders to them byte for byte.
"""

from pydantic import BaseModel

from workers.message.schema.alarms import (
    AlarmMessage,
    AlarmsMessage,
    MonitorsMessage,
    MovedMessage,
)
from workers.message.schema.answer import (
    CompactMessage,
    DuplicateMessage,
    LabelMessage,
    PredictionMessage,
    RejectedMessage,
)
from workers.message.schema.codes import CODES, EVENT_CODES, JOIN_CODES, UNAVAILABLE_CODES
from workers.message.schema.combined import CombinedMessage, CombinedSource
from workers.message.schema.event import EventMessage
from workers.message.schema.input import DeadLetter, InputEntry
from workers.message.schema.late_labels import LATE_LABELS
from workers.message.schema.report import LabelValidity, MethodValidity, MetricsMessage
from workers.message.schema.request import ReplyMessage, RequestEntry, UnavailableMessage
from workers.message.schema.windowed import WINDOWED

__all__ = [
    "CODES",
    "EVENT_CODES",
    "JOIN_CODES",
    "STREAMS",
    "UNAVAILABLE_CODES",
    "AlarmMessage",
    "AlarmsMessage",
    "CombinedMessage",
    "CombinedSource",
    "CompactMessage",
    "DeadLetter",
    "DuplicateMessage",
    "EventMessage",
    "InputEntry",
    "LabelMessage",
    "LabelValidity",
    "MethodValidity",
    "MetricsMessage",
    "MonitorsMessage",
    "MovedMessage",
    "PredictionMessage",
    "RejectedMessage",
    "ReplyMessage",
    "RequestEntry",
    "UnavailableMessage",
]

STREAMS: dict[str, tuple[type[BaseModel], ...]] = {
    "in": (InputEntry,),
    "out": (
        PredictionMessage,
        CompactMessage,
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
    "alarms": (AlarmsMessage, AlarmMessage, MovedMessage),
    "dlq": (DeadLetter,),
    "events": (EventMessage,),
    "req": (RequestEntry,),
    "ans": (ReplyMessage, UnavailableMessage),
}
