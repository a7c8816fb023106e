"""The schema of messages, version 2: every message that enters or leaves a feed.

These models describe the schema; the columns of an answer come from
`online_svm.stream.answer_columns`, the parts of a report are the classes that the predictor fills.
They generate docs/messages.md, they parse in clients and tools,
and the tests hold the hot path's encoders to them byte for byte.
"""

from online_svm.stream.alarm import Alarm, Moved
from online_svm.stream.label_counts import LabelCounts
from online_svm.stream.prediction import (
    CostReport,
    FeatureReport,
    LabelReport,
    LateLabelReport,
    MeanBounds,
    MethodReport,
    MonitorsReport,
)
from online_svm.stream.windowed_report import (
    ClassFigures,
    Descriptive,
    ReliabilityBin,
    SliceScores,
    WeightedScores,
    WindowedReport,
    WindowScores,
)
from workers.message.codes import CODES, EVENT_CODES, JOIN_CODES, UNAVAILABLE_CODES
from workers.message.schema.answer import (
    CompactMessage,
    DuplicateMessage,
    LabelMessage,
    PredictionMessage,
    RejectedMessage,
)
from workers.message.schema.combined import CombinedMessage, CombinedSource
from workers.message.schema.input import DeadLetter, InputEntry
from workers.message.schema.report import AlarmsMessage, EventMessage, MetricsMessage
from workers.message.schema.request import ReplyMessage, RequestEntry, UnavailableMessage

__all__ = [
    "CODES",
    "EVENT_CODES",
    "JOIN_CODES",
    "STREAMS",
    "UNAVAILABLE_CODES",
    "AlarmsMessage",
    "CombinedMessage",
    "CombinedSource",
    "CompactMessage",
    "DeadLetter",
    "DuplicateMessage",
    "EventMessage",
    "InputEntry",
    "LabelMessage",
    "MetricsMessage",
    "PredictionMessage",
    "RejectedMessage",
    "ReplyMessage",
    "RequestEntry",
    "UnavailableMessage",
]

STREAMS: dict[str, tuple[type, ...]] = {
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
        MethodReport,
        LabelReport,
        WindowedReport,
        WindowScores,
        WeightedScores,
        ReliabilityBin,
        ClassFigures,
        SliceScores,
        Descriptive,
        MonitorsReport,
        LateLabelReport,
        LabelCounts,
        MeanBounds,
        CostReport,
        FeatureReport,
    ),
    "alarms": (AlarmsMessage, Alarm, Moved),
    "dlq": (DeadLetter,),
    "events": (EventMessage,),
    "req": (RequestEntry,),
    "ans": (ReplyMessage, UnavailableMessage),
}
