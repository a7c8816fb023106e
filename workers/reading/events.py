"""Operational events of a feed as lines of text, and what they silence."""

import math
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from workers.broker import commands
from workers.broker.connection import Connection
from workers.feed.keys import FeedKeys
from workers.feed.position import parse_id
from workers.reading.answers import message, number
from workers.reading.dates import moment
from workers.reading.incidents import AnyNotice, NoticeKey, key_of

_MAX_TEXT = 1000  # characters kept of a field: any program may write to the stream
_PAGE_ENTRIES = 1000
MAX_SILENCED = 200  # newest silences of notices that are kept


class Event(NamedTuple):
    """An event of a worker, or a note that a person wrote; see `schema.EventMessage`."""

    time: float  # milliseconds in its entry ID, by the clock of Redis
    code: str
    writer: str
    detail: str
    n: float = math.nan  # examples learned: before that of a note; when a silenced notice opened
    until: float = math.nan  # when a silence ends, in milliseconds since 1970
    notice: str = ""  # code of the notice that it silences

    @property
    def silenced(self) -> NoticeKey | None:
        """The notice that it silences; None if it silences none."""
        is_of_notice = self.code == "silenced" and bool(self.notice) and not math.isnan(self.n)
        return (self.notice, int(self.n)) if is_of_notice else None

    @property
    def is_note(self) -> bool:
        """Whether this is a note about an example."""
        return self.code == "note" and not math.isnan(self.n)

    @property
    def words(self) -> str:
        """The detail, after the example of a note, or the code of a silenced notice."""
        if self.silenced is not None:
            return f"notice {self.notice}: {self.detail}"
        return f"example {self.n:,.0f}: {self.detail}" if self.is_note else self.detail


def event_of(entry_id: bytes, payload: Any) -> Event | None:
    """Return the event in a parsed payload; None if it holds none."""
    if not (isinstance(payload, dict) and "code" in payload):
        return None
    names = "code", "writer", "detail", "notice"
    code, writer, detail, notice = (_text(payload.get(name)) for name in names)
    n, until = number(payload.get("n")), number(payload.get("until"))
    return Event(float(parse_id(entry_id)[0]), code, writer, detail, n, until, notice)


def known_events(entries: Iterable[tuple[bytes, Any]]) -> list[Event]:
    """Return the events of entries (ID, parsed payload), without entries of other programs."""
    found = (event_of(entry_id, payload) for entry_id, payload in entries)
    return [event for event in found if event is not None]


def notice_silences(events: Iterable[Event], before: Sequence[Event] = ()) -> tuple[Event, ...]:
    """Return the events that silence a notice; a silence of no time ends those before it.

    Examples
    --------
    >>> known = Event(5.0, "silenced", "ann@desk", "new form", 1200, notice="class:b:low")
    >>> notice_silences([known]) == (known,)
    True
    >>> notice_silences([Event(9.0, "silenced", "ann@desk", "no longer: mended", until=0)], [known])
    ()
    """
    found = [*before]
    for event in events:
        if event.silenced is not None:
            found.append(event)
        elif event.code == "silenced" and event.until == 0.0:
            found.clear()
    return tuple(found[-MAX_SILENCED:])


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
    """Follows the events of a feed that silence its alarms, or a notice."""

    def __init__(self, connection: Connection, keys: FeedKeys) -> None:
        self._connection, self._keys = connection, keys
        self._last, self._until = b"0-0", 0.0
        self._of_notices: tuple[Event, ...] = ()

    def hold(self, notice: AnyNotice | None = None) -> bool:
        """Return whether the feed is silenced now, or this notice, after reading the new events."""
        while found := self._connection.entries(
            self._keys.events, commands.after(self._last), count=_PAGE_ENTRIES
        ):
            self._last = found[-1][0]
            events = known_events((entry[0], message(entry)) for entry in found)
            self._of_notices = notice_silences(events, self._of_notices)
            for event in events:
                if event.code == "silenced" and event.until >= 0.0:
                    self._until = event.until / 1000
        is_known = notice is not None and key_of(notice) in {e.silenced for e in self._of_notices}
        return is_known or time.time() < self._until
