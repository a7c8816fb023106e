"""Operational events of a feed: read from its stream, and put into words."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from workers.feed.position import parse_id
from workers.reading.entry_time import moment

_LONGEST = 1000
"""Characters of a text that are kept: anybody may write to the stream."""


class Event(NamedTuple):
    """What happened to a worker of the feed, or what somebody said of it.

    Attributes
    ----------
    time : float
        Milliseconds in its entry ID, by the clock of Redis.
    code, writer, detail : str
        See `workers.message.schema.EventMessage`.
    n : float
        Examples learned before what a note is about; NaN for other events.
    until : float
        When a silence ends, in milliseconds since 1970; NaN for other events.
    """

    time: float
    code: str
    writer: str
    detail: str
    n: float = math.nan
    until: float = math.nan

    @property
    def is_note(self) -> bool:
        """Whether somebody noted it, at an example."""
        return self.code == "note" and not math.isnan(self.n)

    @property
    def words(self) -> str:
        """The detail, with the example of a note."""
        return f"example {self.n:,.0f}: {self.detail}" if self.is_note else self.detail


def event_of(entry_id: bytes, payload: Any) -> Event | None:
    """Return the event of an entry, given its parsed payload; None if it is none."""
    if not (isinstance(payload, dict) and "code" in payload):
        return None
    code, writer, detail = (_text(payload.get(name)) for name in ("code", "writer", "detail"))
    n, until = _number(payload.get("n")), _number(payload.get("until"))
    return Event(float(parse_id(entry_id)[0]), code, writer, detail, n, until)


def known_events(entries: Iterable[tuple[bytes, Any]]) -> list[Event]:
    """Return the events of entries (ID, parsed payload); those of other programs are passed over.

    Examples
    --------
    >>> [event.code for event in known_events([(b"7-0", {"code": "began"}), (b"8-0", [])])]
    ['began']
    """
    found = (event_of(entry_id, payload) for entry_id, payload in entries)
    return [event for event in found if event is not None]


def event_line(event: Event) -> str:
    """Return an event as a line of text.

    Examples
    --------
    >>> event_line(Event(1_700_000_000_000.0, "note", "ann@desk", "deployed v2", 1200))
    '2023-11-14 22:13:20 UTC  note  ann@desk: example 1,200: deployed v2'
    """
    return f"{moment(event.time)} UTC  {event.code}  {event.writer}: {event.words}"


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e300 else math.nan


def _text(value: Any) -> str:
    return "" if value is None else str(value)[:_LONGEST]
