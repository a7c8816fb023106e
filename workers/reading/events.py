"""Operational events of a feed as lines of text, and whether its alarms are silenced."""

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

_YEAR_9999_ENDS = 253_402_300_799_000.0  # in milliseconds since 1970
_MAX_TEXT = 1000  # characters kept of a field: any program may write to the stream
_PAGE_ENTRIES = 1000


def moment(milliseconds: float) -> str:
    """Return a time in UTC as text; the bare number if `is_of_this_era` is false.

    Examples
    --------
    >>> moment(1_700_000_000_000.0), moment(5.0), moment(1e18)
    ('2023-11-14 22:13:20', '1970-01-01 00:00:00', '1000000000000000000')
    """
    if not is_of_this_era(milliseconds):
        return f"{milliseconds:.0f}"
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def is_of_this_era(milliseconds: float) -> bool:
    """Return whether a time lies in the years 1970 to 9999: an entry ID may hold any number."""
    return 0.0 <= milliseconds <= _YEAR_9999_ENDS


class Event(NamedTuple):
    """An event of a worker, or a note that a person wrote; see `schema.EventMessage`."""

    time: float  # milliseconds in its entry ID, by the clock of Redis
    code: str
    writer: str
    detail: str
    n: float = math.nan  # examples learned before the example of a note
    until: float = math.nan  # when a silence ends, in milliseconds since 1970

    @property
    def is_note(self) -> bool:
        """Whether this is a note about an example."""
        return self.code == "note" and not math.isnan(self.n)

    @property
    def words(self) -> str:
        """The detail; for a note, after the number of its example."""
        return f"example {self.n:,.0f}: {self.detail}" if self.is_note else self.detail


def event_of(entry_id: bytes, payload: Any) -> Event | None:
    """Return the event in a parsed payload; None if it holds none."""
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
    """Follows the events of a feed that silence its alarms."""

    def __init__(self, connection: Connection, keys: FeedKeys) -> None:
        self._connection, self._keys = connection, keys
        self._last, self._until = b"0-0", 0.0

    def hold(self) -> bool:
        """Return whether the alarms are silenced now, after reading the new events."""
        while found := self._connection.entries(
            self._keys.events, commands.after(self._last), count=_PAGE_ENTRIES
        ):
            self._last = found[-1][0]
            for event in known_events((entry[0], message(entry)) for entry in found):
                if event.code == "silenced" and event.until >= 0.0:
                    self._until = event.until / 1000
        return time.time() < self._until
