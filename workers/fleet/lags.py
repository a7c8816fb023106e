"""The lag of many feeds, over one connection of its own."""

import threading
import time
from collections.abc import Sequence

from workers.broker.connection import Connection
from workers.broker.feed_reader import FeedReader
from workers.errors import WorkerError
from workers.monitor.view import FRESH, TIMEOUT
from workers.reading.lag import Lag, lags
from workers.stop import Stop


class Lags:
    """Measures the lag of feeds on demand; safe to call from several threads.

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
        """Return the lags of the feeds that can be read; None where Redis does not answer."""
        with self._lock:
            if time.monotonic() - self._at >= FRESH:
                try:
                    self._seen = lags([self._reader(feed) for feed in feeds])
                except WorkerError:
                    self._seen = None
                self._at = time.monotonic()
            return self._seen

    def close(self) -> None:
        """Give up the connection."""
        with self._lock:
            self._connection.close()

    def _reader(self, feed: str) -> FeedReader:
        shared = (self._connection, self._connection)
        return FeedReader(self._connection.url, feed, connections=shared)
