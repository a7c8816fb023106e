"""The schema of operational events: what stands in `events`."""

from typing import Literal

from pydantic import Field

from workers.message.event import EventCode
from workers.message.schema.base import Message


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
    n: int | None = Field(
        None, ge=0, description="Examples learned before what a note is about; only there."
    )
