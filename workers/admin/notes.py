"""Events that people write about a feed: acknowledged alarms, silences and notes.

No answer depends on an event.
"""

import getpass
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from workers.broker.store import Store
from workers.errors import BadConfiguration, StateLost
from workers.feed.codes import EventCode, encode_event
from workers.reading.answers import as_object, message
from workers.reading.incidents import AnyNotice, open_notices, raised_alarms
from workers.reading.registry import require

_SECONDS_OF_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
MAX_SILENCE_SECONDS = 30 * 86_400  # longest silence, so that a forgotten one ends
_MAX_NAMED = 8  # open notices in an error message
MAX_NOTE_LENGTH = 200  # characters of a note, which plots show


def acknowledge(store: Store, alarm: str, comment: str = "") -> str:
    """Write the event that a person has seen the alarms of an entry; return its ID.

    `alarm` is the ID of the entry in `alarms`, or the `n` of an alarm; of several entries the last.
    Raises NoSuchFeed; BadConfiguration if the feed does not keep such an alarm.
    """
    require(store)
    entry = _entry(store, alarm)
    if entry is None:
        raise BadConfiguration(
            f"feed {store.keys.feed!r} keeps no alarm {alarm[:80]!r}: give the n that "
            f"online-svm tail {store.keys.feed} --stream alarms shows"
        )
    detail = f"the alarm at {entry}{': ' * bool(comment)}{comment}"
    _add(store, "acknowledged", _author(), detail, {"alarm": entry})
    return entry


def _entry(store: Store, alarm: str) -> str | None:
    """Return the ID of the entry that holds an alarm; None if there is none."""
    stream = store.keys.alarms
    if re.fullmatch(r"[0-9]{1,20}-[0-9]{1,20}", alarm):
        return alarm if store.entry(stream, alarm.encode()) else None
    if not re.fullmatch(r"[0-9,]{1,20}", alarm):
        return None
    n, found = int(alarm.replace(",", "") or -1), None
    for entry in store.each(stream):
        if n in _numbers(entry):
            found = entry[0].decode()
    return found


def _numbers(entry: Sequence[Any]) -> list[int]:
    """Return the `n` of each alarm of an entry; none if another program wrote it."""
    try:
        return [raised.alarm.n for raised in raised_alarms(entry[0], message(entry))]
    except StateLost:
        return []


def silence(store: Store, seconds: int, reason: str) -> int:
    """Silence the alarms of a feed; return the end of the silence, in milliseconds since 1970.

    Alarms are still raised, appear in `alarms` and in the metrics, and void the guarantee, but are
    not posted to the webhook. Zero seconds end this silence, and those of notices.

    Raises NoSuchFeed; BadConfiguration without a reason, or for more than `MAX_SILENCE_SECONDS`.
    """
    require(store)
    line = _reason(store, reason, "TIME")
    if not 0 <= seconds <= MAX_SILENCE_SECONDS:
        raise BadConfiguration(f"--silence: 0s to {MAX_SILENCE_SECONDS // 86_400}d")
    end = datetime.now(UTC) + timedelta(seconds=seconds)
    until = int(end.timestamp() * 1000) if seconds else 0
    detail = f"until {end:%Y-%m-%d %H:%M:%S} UTC: {line}" if seconds else f"no longer: {line}"
    _add(store, "silenced", _author(), detail, {"until": until})
    return until


def silence_notice(store: Store, code: str, reason: str) -> AnyNotice:
    """Silence an open notice until it ends; return it.

    It is shown with the reason, and is neither in the verdict nor posted; one that begins anew is.

    Raises NoSuchFeed; BadConfiguration without a reason, or if no such notice is open.
    """
    require(store)
    line = _reason(store, reason, "NOTICE")
    entry = store.last_entry(store.keys.met)
    report = None if entry is None else message(entry)
    known = {notice.code: notice for notice in open_notices(as_object(report))}
    if code not in known:
        codes = ", ".join(list(known)[:_MAX_NAMED]) or "none"
        raise BadConfiguration(
            f"feed {store.keys.feed!r} has no open notice {code[:80]!r}; open: {codes}"
        )
    found = known[code]
    _add(store, "silenced", _author(), line, {"notice": code, "n": found.opened})
    return found


def note(store: Store, text: str, n: int | None = None, author: str | None = None) -> int:
    """Write a note of one line about a feed, which the page and the report mark; return its `n`.

    `n` is the number of examples learned before the noted event, by default the present one. Raises
    NoSuchFeed; BadConfiguration if the text is empty, or longer than `MAX_NOTE_LENGTH`.
    """
    require(store)
    line = _one_line(text)
    if not line:
        raise BadConfiguration("say what to note, such as 'deployed v2'")
    at = int(store.state_field("n") or 0) if n is None else n
    _add(store, "note", author or _author(), line, {"n": at})
    return at


def _reason(store: Store, text: str, silenced: str) -> str:
    """Return the reason for a silence as a line; raise BadConfiguration if it is empty."""
    if not (line := _one_line(text)):
        raise BadConfiguration(
            f"say why: online-svm note {store.keys.feed} 'planned work' --silence {silenced}"
        )
    return line


def _one_line(text: str) -> str:
    """Return a text without control characters; raise BadConfiguration if it is too long."""
    line = " ".join("".join(c for c in text if c.isprintable() or c.isspace()).split())
    if len(line) > MAX_NOTE_LENGTH:
        raise BadConfiguration(
            f"a note has {MAX_NOTE_LENGTH} characters at most; this one has {len(line)}"
        )
    return line


def duration(text: str, option: str = "--silence") -> int:
    """Return the seconds of `90s`, `30m`, `2h` or `1d`; raise BadConfiguration for another text."""
    found = re.fullmatch(r"([0-9]{1,7})([smhd])", text)
    if found is None:
        raise BadConfiguration(f"{option} {text[:40]!r}: write 90s, 30m, 2h or 1d")
    return int(found[1]) * _SECONDS_OF_UNIT[found[2]]


def _add(store: Store, code: EventCode, author: str, detail: str, more: dict[str, Any]) -> None:
    epoch = int(store.state_field("epoch") or 0)
    store.add_event(encode_event(code, author, epoch, detail, more))


def _author() -> str:
    """Return the user and the host of this process."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        user = "somebody"
    return f"{user}@{platform.node()}"
