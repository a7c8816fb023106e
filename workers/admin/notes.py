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
from workers.feed.keys import FIELD
from workers.message.event import KEPT, encode_event
from workers.reading.alarms import raised_alarms
from workers.reading.answers import message
from workers.reading.registry import require

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
LONGEST = 30 * 86_400
"""Seconds of a silence, at most: one that was forgotten ends by itself."""

NOTE = 200
"""Characters of a note, at most: it stands beside a mark."""


def acknowledge(store: Store, alarm: str, why: str = "") -> str:
    """Note that somebody has seen the alarms of an entry; return its ID.

    Parameters
    ----------
    store : Store
    alarm : str
        ID of the entry in `alarms`, or the `n` of an alarm in it; of several the last one counts.
    why : str

    Raises
    ------
    NoSuchFeed
    BadConfiguration
        If the feed has no such alarm, or keeps it no longer.
    """
    require(store)
    entry = _entry(store, alarm)
    if entry is None:
        raise BadConfiguration(
            f"feed {store.keys.feed!r} keeps no alarm {alarm[:80]!r}: give the n that "
            f"online-svm tail {store.keys.feed} --stream alarms shows"
        )
    detail = f"the alarm at {entry}{': ' * bool(why)}{why}"
    _say(store, encode_event("acknowledged", _speaker(), _epoch(store), detail, {"alarm": entry}))
    return entry


def _entry(store: Store, alarm: str) -> str | None:
    """Return the ID of the entry that holds an alarm; None if there is none."""
    stream = store.keys.alarms
    if re.fullmatch(r"[0-9]{1,20}-[0-9]{1,20}", alarm):
        return alarm if store.call("XRANGE", stream, alarm, alarm) else None
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

    Alarms go on: they stand in `alarms` and in the metrics, and void the guarantee. They are not
    posted to the webhook. Zero seconds end a silence.

    Raises
    ------
    NoSuchFeed
    BadConfiguration
        If it says no reason, or lasts longer than `LONGEST`.
    """
    require(store)
    if not why.strip():
        raise BadConfiguration(
            f"say why: online-svm note {store.keys.feed} 'planned work' --silence TIME"
        )
    if not 0 <= seconds <= LONGEST:
        raise BadConfiguration(f"--silence: 0s to {LONGEST // 86_400}d")
    end = datetime.now(UTC) + timedelta(seconds=seconds)
    until = int(end.timestamp() * 1000)
    detail = f"until {end:%Y-%m-%d %H:%M:%S} UTC: {why}" if seconds else f"no longer: {why}"
    _say(store, encode_event("silenced", _speaker(), _epoch(store), detail, {"until": until}))
    return until


def note(store: Store, text: str, n: int | None = None, speaker: str | None = None) -> int:
    """Note something about a feed, which the page and the report mark; return where.

    Parameters
    ----------
    store : Store
    text : str
        One line; unprintable characters and further white space go.
    n : int, optional
        Examples learned before what it is about; default those that are learned now.
    speaker : str, optional
        Who says it; default this user.

    Raises
    ------
    NoSuchFeed
    BadConfiguration
        If nothing is left of the text, or it is longer than `NOTE`.
    """
    require(store)
    said = " ".join("".join(c for c in text if c.isprintable() or c.isspace()).split())
    if not said:
        raise BadConfiguration("say what to note, such as 'deployed v2'")
    if len(said) > NOTE:
        raise BadConfiguration(f"a note has {NOTE} characters at most; this one has {len(said)}")
    at = _learned(store) if n is None else n
    _say(store, encode_event("note", speaker or _speaker(), _epoch(store), said, {"n": at}))
    return at


def check_reached(store: Store, n: int) -> None:
    """Raise BadConfiguration if a feed has not learned so many examples: no plot goes so far.

    Raises
    ------
    NoSuchFeed, BadConfiguration
    """
    require(store)
    if n > (learned := _learned(store)):
        raise BadConfiguration(
            f"--at {n:,}: feed {store.keys.feed!r} has learned {learned:,} examples so far; note "
            "what happened by then"
        )


def _learned(store: Store) -> int:
    return int(store.call("HGET", store.keys.state, "n") or 0)


def duration(text: str) -> int:
    """Return the seconds that a text such as `90s`, `30m`, `2h` or `1d` stands for.

    Raises
    ------
    BadConfiguration
        If it is none.

    Examples
    --------
    >>> duration("2h")
    7200
    """
    found = re.fullmatch(r"([0-9]{1,7})([smhd])", text)
    if found is None:
        raise BadConfiguration(f"--silence {text[:40]!r}: write 90s, 30m, 2h or 1d")
    return int(found[1]) * _UNITS[found[2]]


def _say(store: Store, payload: str) -> None:
    store.call("XADD", store.keys.events, "MAXLEN", "~", KEPT, "*", FIELD, payload)


def _epoch(store: Store) -> int:
    return int(store.call("HGET", store.keys.state, "epoch") or 0)


def _speaker() -> str:
    """Return who runs this command, as the machine knows them."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        user = "somebody"
    return f"{user}@{platform.node()}"
