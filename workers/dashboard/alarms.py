"""Alarms and operational events, as they stand in Redis."""

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from online_svm.stream.alarm import Alarm as Stored
from workers.dashboard.reports import as_dict, as_list, number
from workers.feed.position import parse_id

_MOST_IN_ENTRY = 100
_MOST_WORDS = 400  # characters


class Alarm(NamedTuple):
    """An alarm. Text in it is as it was stored.

    Attributes
    ----------
    time : float
        Milliseconds in its entry ID.
    n : float
        Examples learned when it was raised.
    kind, scope, name, action : str
        See `workers.message.schema.AlarmMessage`.
    words : str
        What was found; empty where another program wrote it.
    entry : bytes
        ID of its entry.
    """

    time: float
    n: float
    kind: str
    scope: str
    name: str
    action: str
    words: str
    entry: bytes = b""


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
    """

    time: float
    code: str
    writer: str
    detail: str
    n: float = math.nan

    @property
    def is_note(self) -> bool:
        """Whether somebody noted it, at an example."""
        return self.code == "note" and not math.isnan(self.n)


def alarms_of(entries: Iterable[tuple[bytes, Any]]) -> Iterator[Alarm]:
    """Yield the alarms of entries (ID, payload); what is none is left out.

    Examples
    --------
    >>> raised = {"n": 5040, "kind": "calibration", "scope": "overall", "name": None}
    >>> [(a.n, a.name) for a in alarms_of([(b"7-0", {"alarms": [raised, 3]}), (b"8-0", None)])]
    [(5040.0, '')]
    """
    for entry_id, message in entries:
        for given in as_list(as_dict(message).get("alarms"))[:_MOST_IN_ENTRY]:
            if not math.isnan(number(as_dict(given).get("n"))):
                yield _alarm(entry_id, given)


def _alarm(entry_id: bytes, given: dict[str, Any]) -> Alarm:
    kind, scope, name, action = (_text(given.get(k)) for k in ("kind", "scope", "name", "action"))
    time = float(parse_id(entry_id)[0])
    return Alarm(time, number(given["n"]), kind, scope, name, action, _words(given), entry_id)


def _words(given: dict[str, Any]) -> str:
    try:
        return Stored.of(given).words[:_MOST_WORDS]
    except (AttributeError, LookupError, TypeError, ValueError):
        return ""


def events_of(entries: Iterable[tuple[bytes, Any]]) -> Iterator[Event]:
    """Yield the events of entries (ID, payload); what is none is left out.

    Examples
    --------
    >>> [e.code for e in events_of([(b"7-0", {"code": "began"}), (b"8-0", [])])]
    ['began']
    """
    for entry_id, message in entries:
        if isinstance(message, dict) and "code" in message:
            code, writer, detail = (_text(message.get(k)) for k in ("code", "writer", "detail"))
            time, n = float(parse_id(entry_id)[0]), number(message.get("n"))
            yield Event(time, code, writer, detail, n)


def _text(value: Any) -> str:
    return "" if value is None else str(value)[:200]
