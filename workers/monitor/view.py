"""How a feed stands in Redis, seen from beside its worker: lag, the newest report and answer.

It has a connection of its own and waits for a reply for one second at most, so that whoever asks
gets an answer, and the worker is never waited for.
"""

import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workers.admin.status import waiting
from workers.broker.feed_reader import FeedReader
from workers.errors import WorkerError
from workers.feed.keys import FIELD, FeedKeys
from workers.feed.position import parse_id
from workers.message.stored import parse
from workers.trouble import Trouble, still

TIMEOUT = 1.0
"""Seconds for one reply of Redis: an order of magnitude below what Prometheus gives a scrape."""

FRESH = 0.5
"""Seconds for which a view is given again: many scrapes cost Redis as much as two a second."""


@dataclass(frozen=True, slots=True)
class FeedView:
    """One look at a feed.

    Attributes
    ----------
    learned, epoch : int or None
        Examples learned, and writers so far; None where Redis does not say.
    lag_entries : int or None
        Entries that wait for an answer. On a Redis before 7 they are counted up to
        `admin.status.COUNTED`.
    lag_seconds : float or None
        Age of the oldest of them by its entry ID; 0 where none waits.
    report : dict or None
        The newest message of `met`.
    answer : dict or None
        The newest message of `out`.
    """

    learned: int | None = None
    epoch: int | None = None
    lag_entries: int | None = None
    lag_seconds: float | None = None
    report: dict[str, Any] | None = None
    answer: dict[str, Any] | None = None


class FeedWatch:
    """Looks at a feed on demand; safe to call from several threads.

    Parameters
    ----------
    url, feed : str
    source : str, optional
        For a combination: the feed whose answers it answers in order.

    Attributes
    ----------
    trouble : Trouble or None
        Why the last look failed.
    """

    def __init__(self, url: str, feed: str, source: str | None = None) -> None:
        self._reader = FeedReader(url, feed, timeout=TIMEOUT)
        self._source = None if source is None else FeedKeys(source)
        self._lock = threading.Lock()
        self._seen, self._at = FeedView(), float("-inf")
        self.trouble: Trouble | None = None

    def look(self) -> FeedView:
        """Return how the feed stands; an empty view, and `trouble`, where Redis does not say."""
        with self._lock:
            if time.monotonic() - self._at >= FRESH:
                self._seen = self._looked()
                self._at = time.monotonic()
            return self._seen

    def close(self) -> None:
        """Give up the connection."""
        with self._lock:
            self._reader.close()

    def _looked(self) -> FeedView:
        try:
            view = self._view()
        except WorkerError as error:
            self.trouble = still(self.trouble, str(error))
            return FeedView()
        except (ValueError, IndexError):  # no number, no ID, no entry
            damaged = f"{self._reader.keys.state} is damaged; online-svm verify tells more"
            self.trouble = still(self.trouble, damaged)
            return FeedView()
        self.trouble = None
        return view

    def _view(self) -> FeedView:
        keys, call = self._reader.keys, self._reader.call
        names = ("cursor", "seq", "n", "epoch", "gone")
        stored = call("HMGET", keys.state, *names)
        cursor, seq, n, epoch, gone = stored if stored[0] else (b"0-0", 0, 0, 0, b"- 0-0")
        stream = keys.input if self._source is None else self._source.out
        entries = self._waiting(stream, cursor, int(seq), gone or b"- 0-0")
        first = call("XRANGE", stream, b"(" + cursor, "+", "COUNT", 1) if entries else []
        return FeedView(
            int(n),
            int(epoch),
            entries if first else 0,
            max(time.time() - parse_id(first[0][0])[0] / 1000, 0.0) if first else 0.0,
            self._newest(keys.met),
            self._newest(keys.out),
        )

    def _waiting(self, stream: str, cursor: bytes, seq: int, gone: bytes) -> int:
        """Return how many entries wait."""
        if self._source is not None:
            answered = self._reader.call("HGET", self._source.state, "seq")
            return max(int(answered or 0) - seq, 0)
        unread = re.match(rb"\d+", gone)
        added = self._info(stream).get(b"entries-added")
        if unread is None or added is None:
            return waiting(self._reader, cursor)[0]
        # Redis 7: the stream counts all that it ever got, and st what went before it was read.
        return max(int(added) - int(unread[0]) - seq, 0)

    def _newest(self, stream: str) -> dict[str, Any] | None:
        """Return the payload of the last entry of a stream, if there is one that can be read."""
        entry = self._info(stream).get(b"last-entry")
        if not entry:
            return None
        fields: Sequence[bytes] = entry[1]
        payload = dict(zip(fields[::2], fields[1::2], strict=True)).get(FIELD.encode(), b"null")
        try:
            found = parse(payload)
        except ValueError:  # another program wrote it
            return None
        return found if isinstance(found, dict) else None

    def _info(self, stream: str) -> dict[bytes, Any]:
        """Return what Redis says of a stream; nothing where there is none."""
        if not self._reader.call("EXISTS", stream):
            return {}
        flat = self._reader.call("XINFO", "STREAM", stream)
        return dict(zip(flat[::2], flat[1::2], strict=True))
