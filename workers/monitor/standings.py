"""Standing of feeds in Redis, seen from beside their worker: lag, the newest report and answer.

The connection is one of its own and waits for a reply for one second at most, so that whoever asks
gets an answer, and the worker is never waited for.
"""

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from workers.broker.connection import Connection
from workers.broker.feed_reader import FeedReader
from workers.errors import StateLost, WorkerError
from workers.feed.state_fields import count
from workers.reading.answers import message, newest
from workers.reading.lag import Lag, damaged, lag, lags
from workers.stop import Stop
from workers.trouble import Trouble, still

TIMEOUT = 1.0
"""Seconds for one reply of Redis: an order of magnitude below what Prometheus gives a scrape."""

FRESH = 0.5
"""Seconds for which a view is given again: many scrapes cost Redis as much as two a second."""


@dataclass(frozen=True, slots=True)
class Detail:
    """More of one feed.

    Attributes
    ----------
    learned, epoch : int
        Examples learned, and writers so far.
    report, answer : dict or None
        The newest messages of `met` and `out`.
    """

    learned: int
    epoch: int
    report: dict[str, Any] | None
    answer: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Standing:
    """One look at the feeds of a worker; empty where Redis does not answer.

    Attributes
    ----------
    lags : dict of str to Lag
    details : dict of str to Detail
        Of the feeds that were asked for; those that are damaged are left out of both.
    """

    lags: dict[str, Lag] = field(default_factory=dict)
    details: dict[str, Detail] = field(default_factory=dict)


class Standings:
    """Looks at feeds on demand; safe to call from several threads.

    Parameters
    ----------
    url : str

    Attributes
    ----------
    trouble : Trouble or None
        Why the last look, or the last question, failed.
    """

    def __init__(self, url: str) -> None:
        self._connection = Connection(url, Stop(), timeout=TIMEOUT)
        self._lock = threading.Lock()
        self._seen, self._at, self._asked_at = Standing(), float("-inf"), float("-inf")
        self.trouble: Trouble | None = None

    def look(self, sources: Mapping[str, str | None], in_detail: bool) -> Standing:
        """Return how feeds stand.

        Parameters
        ----------
        sources : mapping of str to str or None
            The feeds, each with the source of a combination; see `reading.lag.lag`.
        in_detail : bool
            Read their newest reports and answers as well.
        """
        with self._lock:
            if time.monotonic() - self._at >= FRESH:
                try:
                    self._seen = self._looked(sources, in_detail)
                    self.trouble = None
                except WorkerError as error:
                    self._seen, self.trouble = Standing(), still(self.trouble, str(error))
                self._at = time.monotonic()
            return self._seen

    def ask(self, feed: str, source: str | None = None) -> Trouble | None:
        """Return why Redis does not say how this feed stands; None where it does."""
        with self._lock:
            if time.monotonic() - self._asked_at >= FRESH:
                shared = (self._connection, self._connection)
                reader = FeedReader(self._connection.url, feed, connections=shared)
                try:
                    lag(reader, source)
                    _counts(reader)
                    self.trouble = None
                except WorkerError as error:
                    self.trouble = still(self.trouble, str(error))
                self._asked_at = time.monotonic()
            return self.trouble

    def close(self) -> None:
        """Give up the connection."""
        with self._lock:
            self._connection.close()

    def _looked(self, sources: Mapping[str, str | None], in_detail: bool) -> Standing:
        shared = (self._connection, self._connection)
        readers = [FeedReader(self._connection.url, one, connections=shared) for one in sources]
        found = lags(readers, sources)
        details: dict[str, Detail] = {}
        for reader in readers if in_detail else ():
            if reader.keys.feed in found:
                with suppress(StateLost):
                    details[reader.keys.feed] = _detail(reader)
        return Standing(found, details)


def _detail(reader: FeedReader) -> Detail:
    keys = reader.keys
    return Detail(*_counts(reader), _newest(reader, keys.met), _newest(reader, keys.out))


def _counts(reader: FeedReader) -> tuple[int, int]:
    """Return how many examples were learned, and how many writers there were.

    Raises
    ------
    StateLost
        If they are no numbers.
    """
    stored = reader.call("HMGET", reader.keys.state, "n", "epoch")
    found = [b"0" if one is None else one for one in stored]
    try:
        return count(found[0]), count(found[1])
    except ValueError as error:
        raise damaged(error, reader.keys) from None


def _newest(reader: FeedReader, stream: str) -> dict[str, Any] | None:
    """Return the payload of the last entry of a stream, if there is one that can be read."""
    try:
        found = [message(entry) for entry in newest(reader, stream, 1)]
    except StateLost:
        return None
    return found[0] if found and isinstance(found[0], dict) else None
