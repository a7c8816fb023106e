"""How a feed stands in Redis, seen from beside its worker: lag, the newest report and answer.

It has a connection of its own and waits for a reply for one second at most, so that whoever asks
gets an answer, and the worker is never waited for.
"""

import threading
import time
from dataclasses import dataclass
from typing import Any

from workers.broker.feed_reader import FeedReader
from workers.errors import WorkerError
from workers.feed.pending_labels import PendingLabels
from workers.reading.answers import message, newest
from workers.reading.lag import lag
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
    lag_seconds : float or None
    pending : PendingLabels or None
        See `workers.reading.lag.Lag`.
    report : dict or None
        The newest message of `met`.
    answer : dict or None
        The newest message of `out`.
    """

    learned: int | None = None
    epoch: int | None = None
    lag_entries: int | None = None
    lag_seconds: float | None = None
    pending: PendingLabels | None = None
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
        self._source = source
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
        except ValueError:  # no number
            damaged = f"{self._reader.keys.state} is damaged; online-svm verify tells more"
            self.trouble = still(self.trouble, damaged)
            return FeedView()
        self.trouble = None
        return view

    def _view(self) -> FeedView:
        reader, keys = self._reader, self._reader.keys
        found = lag(reader, self._source)
        learned, epoch = reader.call("HMGET", keys.state, "n", "epoch")
        return FeedView(
            0 if learned is None else int(learned),
            0 if epoch is None else int(epoch),
            found.entries,
            found.seconds,
            found.labels,
            self._newest(keys.met),
            self._newest(keys.out),
        )

    def _newest(self, stream: str) -> dict[str, Any] | None:
        """Return the payload of the last entry of a stream, if there is one that can be read."""
        found = [message(entry) for entry in newest(self._reader, stream, 1)]
        return found[0] if found and isinstance(found[0], dict) else None
