"""Operational events of a feed: put into words with their times, and the silences among them."""

import math
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from workers.broker.batch_size import Entry
from workers.broker.connection import Connection
from workers.feed.keys import FeedKeys
from workers.feed.position import parse_id
from workers.reading.answers import message, number

_YEARS = (0.0, 253_402_300_799_000.0)  # milliseconds from 1970 to the year 9999


def moment(milliseconds: float) -> str:
    """Return a time in UTC as text; the number where it is no time of this era.

    Examples
    --------
    >>> moment(1_700_000_000_000.0), moment(5.0), moment(1e18)
    ('2023-11-14 22:13:20', '1970-01-01 00:00:00', '1000000000000000000')
    """
    if not is_of_this_era(milliseconds):
        return f"{milliseconds:.0f}"
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def is_of_this_era(milliseconds: float) -> bool:
    """Return whether a time lies between the years 1970 and 9999: an ID may hold any number."""
    return _YEARS[0] <= milliseconds <= _YEARS[1]


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
    n, until = number(payload.get("n")), number(payload.get("until"))
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


def _text(value: Any) -> str:
    return "" if value is None else str(value)[:_LONGEST]


_COUNT = 1000


class Silences:
    """Reads the events of a feed as they come.

    Parameters
    ----------
    connection : Connection
    keys : FeedKeys
    """

    def __init__(self, connection: Connection, keys: FeedKeys) -> None:
        self._connection, self._keys = connection, keys
        self._last, self._until = b"0-0", 0.0

    def hold(self) -> bool:
        """Return whether a silence holds now; the last one that was said counts."""
        after = b"(" + self._last
        while found := self._connection.call(
            "XRANGE", self._keys.events, after, "+", "COUNT", _COUNT
        ):
            for entry in found:
                self._note(entry)
                self._last = entry[0]
            after = b"(" + self._last
        return time.time() < self._until

    def _note(self, entry: Entry) -> None:
        event = event_of(entry[0], message(entry))
        if event is not None and event.code == "silenced" and event.until >= 0.0:
            self._until = event.until / 1000
