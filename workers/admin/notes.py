"""Notes of people on a feed: an alarm was seen, none is wanted for a while, or anything else.

These are events; no answer depends on one.
"""

import getpass
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from workers.broker.store import Store
from workers.errors import BadConfiguration, StateLost
from workers.message.codes import EventCode, encode_event
from workers.reading.answers import message
from workers.reading.incidents import raised_alarms
from workers.reading.registry import require

_SECONDS_OF_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
MAX_SILENCE_SECONDS = 30 * 86_400
"""Seconds of a silence, at most: one that was forgotten ends by itself."""

MAX_NOTE_LENGTH = 200  # characters of a note, at most: it is shown next to a mark


def acknowledge(store: Store, alarm: str, why: str = "") -> str:
    """Note that a person has seen the alarms of an entry; return its ID.

    `alarm` is the ID of the entry in `alarms`, or the `n` of an alarm in it; the last one of
    several. Raises NoSuchFeed; BadConfiguration if the feed has no such alarm, or keeps it no
    longer.
    """
    require(store)
    entry = _entry(store, alarm)
    if entry is None:
        raise BadConfiguration(
            f"feed {store.keys.feed!r} keeps no alarm {alarm[:80]!r}: give the n that "
            f"online-svm tail {store.keys.feed} --stream alarms shows"
        )
    detail = f"the alarm at {entry}{': ' * bool(why)}{why}"
    _add(store, "acknowledged", _speaker(), detail, {"alarm": entry})
    return entry


def _entry(store: Store, alarm: str) -> str | None:
    """Return the ID of the entry that holds an alarm; None if there is none."""
    stream = store.keys.alarms
    if re.fullmatch(r"[0-9]{1,20}-[0-9]{1,20}", alarm):
        return alarm if store.entry(stream, alarm.encode()) else None
    if not re.fullmatch(r"[0-9,]{1,20}", alarm):
        return None
    n, found = int(alarm.replace(",", "") or -1), None
    for page in store.pages(stream, b"0-0"):
        for entry in page:
            if n in _numbers(entry):
                found = entry[0].decode()
    return found


def _numbers(entry: Sequence[Any]) -> list[int]:
    """Return the `n` of each alarm of an entry; none if another program wrote it."""
    try:
        return [raised.alarm.n for raised in raised_alarms(entry[0], message(entry))]
    except StateLost:
        return []


def silence(store: Store, seconds: int, why: str) -> int:
    """Silence the alarms of a feed; return until when, in milliseconds since 1970.

    Alarms are still raised: they stand in `alarms` and in the metrics, and void the guarantee. They
    are not posted to the webhook. Zero seconds end a silence.

    Raises NoSuchFeed; BadConfiguration without a reason, or if it lasts longer than
    `MAX_SILENCE_SECONDS`.
    """
    require(store)
    if not why.strip():
        raise BadConfiguration(
            f"say why: online-svm note {store.keys.feed} 'planned work' --silence TIME"
        )
    if not 0 <= seconds <= MAX_SILENCE_SECONDS:
        raise BadConfiguration(f"--silence: 0s to {MAX_SILENCE_SECONDS // 86_400}d")
    end = datetime.now(UTC) + timedelta(seconds=seconds)
    until = int(end.timestamp() * 1000)
    detail = f"until {end:%Y-%m-%d %H:%M:%S} UTC: {why}" if seconds else f"no longer: {why}"
    _add(store, "silenced", _speaker(), detail, {"until": until})
    return until


def note(store: Store, text: str, n: int | None = None, speaker: str | None = None) -> int:
    """Note something about a feed in one line, which the page and the report mark; return where.

    `n` are the examples learned before the noted event, by default as many as now. Raises
    NoSuchFeed; BadConfiguration if the text is empty, or longer than `MAX_NOTE_LENGTH`.
    """
    require(store)
    said = " ".join("".join(c for c in text if c.isprintable() or c.isspace()).split())
    if not said:
        raise BadConfiguration("say what to note, such as 'deployed v2'")
    if len(said) > MAX_NOTE_LENGTH:
        raise BadConfiguration(
            f"a note has {MAX_NOTE_LENGTH} characters at most; this one has {len(said)}"
        )
    at = _learned(store) if n is None else n
    _add(store, "note", speaker or _speaker(), said, {"n": at})
    return at


def check_reached(store: Store, n: int) -> None:
    """Raise BadConfiguration if a feed has not learned `n` examples: no plot reaches so far."""
    require(store)
    if n > (learned := _learned(store)):
        raise BadConfiguration(
            f"--at {n:,}: feed {store.keys.feed!r} has learned {learned:,} examples so far; note "
            "what happened by then"
        )


def _learned(store: Store) -> int:
    return int(store.state_field("n") or 0)


def duration(text: str) -> int:
    """Return the seconds of `90s`, `30m`, `2h` or `1d`; raise BadConfiguration for another text."""
    found = re.fullmatch(r"([0-9]{1,7})([smhd])", text)
    if found is None:
        raise BadConfiguration(f"--silence {text[:40]!r}: write 90s, 30m, 2h or 1d")
    return int(found[1]) * _SECONDS_OF_UNIT[found[2]]


def _add(store: Store, code: EventCode, speaker: str, detail: str, more: dict[str, Any]) -> None:
    epoch = int(store.state_field("epoch") or 0)
    store.add_event(encode_event(code, speaker, epoch, detail, more))


def _speaker() -> str:
    """Return who runs this command, as the machine knows them."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        user = "somebody"
    return f"{user}@{platform.node()}"
