"""What people say to alarms: one was seen, or none is wanted for a while. Events, not answers."""

import getpass
import platform
import re
import time

from workers.admin.registry import require
from workers.broker.store import Store
from workers.errors import BadConfiguration
from workers.feed.keys import FIELD
from workers.message.event import KEPT, encode_said

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
LONGEST = 30 * 86_400
"""Seconds of a silence, at most: one that was forgotten ends by itself."""


def acknowledge(store: Store, entry: str, why: str = "") -> None:
    """Note that somebody has seen the alarms of an entry.

    Parameters
    ----------
    store : Store
    entry : str
        ID of the entry in `alarms`.
    why : str

    Raises
    ------
    NoSuchFeed
    BadConfiguration
        If the feed has no such alarm, or keeps it no longer.
    """
    require(store)
    is_id = re.fullmatch(r"\d{1,20}-\d{1,20}", entry) is not None
    if not is_id or not store.call("XRANGE", store.keys.alarms, entry, entry):
        raise BadConfiguration(
            f"feed {store.keys.feed!r} keeps no alarm {entry[:80]!r}: give the ID that "
            f"online-svm alarms {store.keys.feed} shows"
        )
    _say(store, encode_said("acknowledged", _speaker(), _epoch(store), why, alarm=entry))


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
        raise BadConfiguration("say --why: who finds the silence wants to know")
    if not 0 <= seconds <= LONGEST:
        raise BadConfiguration(f"--for: 0s to {LONGEST // 86_400}d")
    until = int((time.time() + seconds) * 1000)
    _say(store, encode_said("silenced", _speaker(), _epoch(store), why, until=until))
    return until


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
        raise BadConfiguration(f"--for {text[:40]!r}: write 90s, 30m, 2h or 1d")
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
