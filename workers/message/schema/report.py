"""The schema of validity reports, alarms and events: the streams `met`, `alarms` and `events`."""

from dataclasses import MISSING, fields
from typing import Any, Literal, get_type_hints

from pydantic import Field, create_model

from online_svm.stream.alarm import Alarm
from online_svm.stream.prediction import ValidityReport
from workers.message.event import EventCode
from workers.message.schema.base import Message


def _fields_of(reported: type) -> dict[str, Any]:
    """Return the fields of a dataclass as those of a model."""
    types = get_type_hints(reported, include_extras=True)
    return {
        field.name: (types[field.name], ... if field.default is MISSING else field.default)
        for field in fields(reported)
    }


_REPORT = _fields_of(ValidityReport)

MetricsMessage = create_model(
    "MetricsMessage",
    __base__=Message,
    __doc__="Validity, in `met`: cumulative, and recent. Every `metrics_every` learned examples."
    "\n\nIts entry ID is the ID of the last input entry it covers.",
    v=(Literal[2], Field(2, description="Version of the schema.")),
    n=_REPORT.pop("n"),
    seq=(int, Field(ge=0, description="`seq` of the last input entry it covers.")),
    **_REPORT,
)


class AlarmsMessage(Message):
    """The alarms that one entry raised, in `alarms`; its entry ID is the ID of the input entry."""

    v: Literal[2] = Field(2, description="Version of the schema.")
    seq: int = Field(ge=0, description="`seq` of the input entry.")
    alarms: list[Alarm] = Field(description="At least one.")


class EventMessage(Message):
    """An operational event, in `events`, which keeps about a thousand. Best effort.

    Its entry ID is given by Redis, and holds the time. Events are no function of the examples and
    no part of the digest.
    """

    v: Literal[2] = Field(2, description="Version of the schema.")
    code: EventCode = Field(description="[What happened](#codes-of-events).")
    writer: str = Field(description="Name of the worker; user and host of a person.")
    epoch: int = Field(ge=0, description="Number of writers so far.")
    detail: str = Field(description="For a person.")
    alarm: str | None = Field(None, description="Of an acknowledgement: the ID in `alarms`.")
    until: int | None = Field(
        None, description="Of a silence: its end, in milliseconds since 1970."
    )
    n: int | None = Field(
        None, ge=0, description="Of a note: examples learned before what it is about."
    )
