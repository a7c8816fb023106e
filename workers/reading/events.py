"""Operational events of a feed as text with their times, and its silences."""

import math
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from workers.broker import commands
from workers.broker.connection import Connection
from workers.feed.keys import FeedKeys
from workers.feed.position import parse_id
from workers.reading.answers import message, number

_YEARS = (0.0, 253_402_300_799_000.0)  # milliseconds from 1970 to the year 9999
_MAX_TEXT = 1000  # characters that are kept: any program may write to the stream
_PAGE_ENTRIES = 1000


def moment(milliseconds: float) -> str:
    """Return a time in UTC as text; a number outside `is_of_this_era` as it is.

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


class Event(NamedTuple):
    """An event of a worker of the feed, or a note of a person; see `schema.EventMessage`."""

    time: float  # milliseconds in its entry ID, by the clock of Redis
    code: str
    writer: str
    detail: str
    n: float = math.nan  # the example of a note, as the number of examples learned before it
    until: float = math.nan  # when a silence ends, in milliseconds since 1970

    @property
    def is_note(self) -> bool:
        """Whether it is a note at an example."""
        return self.code == "note" and not math.isnan(self.n)

    @property
    def words(self) -> str:
        """The detail, with the example of a note."""
        return f"example {self.n:,.0f}: {self.detail}" if self.is_note else self.detail


def event_of(entry_id: bytes, payload: Any) -> Event | None:
    """Return the event of an entry's parsed payload; None for any other payload."""
    if not (isinstance(payload, dict) and "code" in payload):
        return None
    code, writer, detail = (_text(payload.get(name)) for name in ("code", "writer", "detail"))
    n, until = number(payload.get("n")), number(payload.get("until"))
    return Event(float(parse_id(entry_id)[0]), code, writer, detail, n, until)


def known_events(entries: Iterable[tuple[bytes, Any]]) -> list[Event]:
    """Return the events of entries (ID, parsed payload), without entries of other programs."""
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
    return "" if value is None else str(value)[:_MAX_TEXT]


class Silences:
    """The silences of a feed, from its new events."""

    def __init__(self, connection: Connection, keys: FeedKeys) -> None:
        self._connection, self._keys = connection, keys
        self._last, self._until = b"0-0", 0.0

    def hold(self) -> bool:
        """Return whether a silence holds now; the last one counts."""
        while found := self._connection.entries(
            self._keys.events, commands.after(self._last), count=_PAGE_ENTRIES
        ):
            self._last = found[-1][0]
            for event in known_events((entry[0], message(entry)) for entry in found):
                if event.code == "silenced" and event.until >= 0.0:
                    self._until = event.until / 1000
        return time.time() < self._until
