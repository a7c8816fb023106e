"""How far many feeds lag behind their input, asked in two rounds of commands for all of them."""

import re
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from workers.broker.connection import Connection
from workers.broker.pipeline import Sent
from workers.errors import WorkerError, WrongKeyType
from workers.feed.keys import FeedKeys
from workers.feed.position import parse_id
from workers.monitor.view import FRESH, TIMEOUT
from workers.stop import Stop

_FIELDS = ("cursor", "seq", "gone")


class Lag(NamedTuple):
    """How far one feed lags.

    Attributes
    ----------
    entries : int
        Input entries without an answer; on a Redis before 7, which does not count them, 1 for any
        number.
    seconds : float
        Age of the oldest of them by its entry ID; 0 where none waits.
    """

    entries: int
    seconds: float


class Lags:
    """Looks at feeds on demand, over a connection of its own; safe to call from several threads.

    Parameters
    ----------
    url : str
    """

    def __init__(self, url: str) -> None:
        self._connection = Connection(url, Stop(), timeout=TIMEOUT)
        self._lock = threading.Lock()
        self._seen: dict[str, Lag] | None = None
        self._at = float("-inf")

    def look(self, feeds: Sequence[str]) -> dict[str, Lag] | None:
        """Return the lags of the feeds that have begun; None where Redis does not say."""
        with self._lock:
            if time.monotonic() - self._at >= FRESH:
                try:
                    self._seen = self._looked([FeedKeys(feed) for feed in feeds])
                except WorkerError:
                    self._seen = None
                self._at = time.monotonic()
            return self._seen

    def close(self) -> None:
        """Give up the connection."""
        with self._lock:
            self._connection.close()

    def _looked(self, feeds: Sequence[FeedKeys]) -> dict[str, Lag]:
        send = self._connection.send
        asked = [
            (send("HMGET", keys.state, *_FIELDS), send("EXISTS", keys.input)) for keys in feeds
        ]
        states = [(self._reply(state), self._reply(exists)) for state, exists in asked]
        begun = [
            (keys, state)
            for keys, (state, exists) in zip(feeds, states, strict=True)
            if exists and state and state[0]
        ]
        asked = [
            (
                send("XINFO", "STREAM", keys.input),
                send("XRANGE", keys.input, b"(" + state[0], "+", "COUNT", 1),
            )
            for keys, state in begun
        ]
        told = [(self._reply(info), self._reply(first)) for info, first in asked]
        return {
            keys.feed: _lag(state, info, first)
            for (keys, state), (info, first) in zip(begun, told, strict=True)
            if info is not None
        }

    def _reply(self, sent: Sent) -> Any:
        """Return a reply; None where a key of the feed holds another type."""
        try:
            return self._connection.receive(sent)
        except WrongKeyType:
            return None


def _lag(stored: Sequence[bytes | None], told: Sequence[Any], first: Sequence[Any]) -> Lag:
    if not first:
        return Lag(0, 0.0)
    age = max(time.time() - parse_id(first[0][0])[0] / 1000, 0.0)
    added = dict(zip(told[::2], told[1::2], strict=True)).get(b"entries-added")
    unread = re.match(rb"\d+", stored[2] or b"")
    if added is None or unread is None:
        return Lag(1, age)
    # Redis 7: the stream counts all that it ever got, and st what went before it was read.
    return Lag(max(int(added) - int(unread[0]) - int(stored[1] or 0), 1), age)
