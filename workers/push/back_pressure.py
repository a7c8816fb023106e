"""Back-pressure for producers: a push waits while too much input waits for the worker."""

import time
from collections.abc import Callable
from math import inf
from types import TracebackType
from typing import NamedTuple, Self

from workers.broker.feed_reader import FeedReader
from workers.errors import RedisUnsuitable, WorkerError
from workers.push.ingest import PushStopped, rows_pushed
from workers.reading.stream_info import backlog

SECONDS = 0.2
"""Seconds between two checks of a full feed."""


class Amount(NamedTuple):
    """Entries, and the bytes of their field names and values."""

    entries: float = 0
    size: float = 0


class HighWater:
    """Makes a push wait while too many entries, or bytes of them, are beyond the worker's cursor.

    Counting reads entries, so it is rare. If there is room for r entries and b bytes, so much is
    sent before the next count. When a mark is reached, the push waits until half is answered; the
    counter in the feed's state shows that without reading entries.

    Parameters
    ----------
    url, feed : str
    mark : int
        Entries; 0 bounds none. A push exceeds it by less than a chunk.
    mark_bytes : int
        Bytes, in the same way.
    tell : callable, optional
        Called with the number of waiting entries whenever the feed is full.
    seconds : float
        Seconds between two checks of a full feed.
    skipped : int
        Rows of the source that were skipped; messages count them.

    Raises
    ------
    WorkerError
        If Redis does not answer, or refuses.
    """

    def __init__(
        self,
        url: str,
        feed: str,
        mark: int,
        tell: Callable[[int], None] | None = None,
        seconds: float = SECONDS,
        skipped: int = 0,
        mark_bytes: int = 0,
    ) -> None:
        self._mark = Amount(mark or inf, mark_bytes or inf)
        self._tell, self._seconds, self._skipped = tell or _ignore, seconds, skipped
        self._reader = FeedReader(url, feed)
        self._keys = self._reader.keys
        self._answered()  # what Redis refuses from the start is no interrupted push
        self._next_count = Amount()
        self._sent_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._reader.close()

    def add_bytes(self, size: int) -> None:
        """Count the bytes of a chunk that was sent; before the call that counts its rows."""
        self._sent_bytes += size

    def __call__(self, sent: int) -> None:
        """Wait until there is room; `sent` rows were sent so far.

        Raises
        ------
        PushStopped
            If Redis does not answer, or refuses.
        """
        try:
            if sent >= self._next_count.entries or self._sent_bytes >= self._next_count.size:
                room = self._room()
                self._next_count = Amount(sent + room.entries, self._sent_bytes + room.size)
        except RedisUnsuitable:
            raise
        except WorkerError as error:
            raise PushStopped(
                f"{error}. {rows_pushed(sent)}; go on with --skip {self._skipped + sent}"
            ) from None

    def _room(self) -> Amount:
        """Wait until there is room; return how much may be sent."""
        # Read the counter of answers before counting the waiting entries. Answers in between then
        # count twice, and the loop counts again. In the other order they would be missed.
        before = self._answered()
        while self._is_full(waiting := self._waiting()):
            self._wait_until_half(waiting, before)
            before = self._answered()
        return Amount(self._mark.entries - waiting.entries, self._mark.size - waiting.size)

    def _is_full(self, waiting: Amount) -> bool:
        return waiting.entries >= self._mark.entries or waiting.size >= self._mark.size

    def _wait_until_half(self, waiting: Amount, before: int) -> None:
        """Wait until half of the mark is answered; half remains if nobody else pushes."""
        # Of bytes, by the mean size of what waits: the entries are counted again after that.
        half = min(self._mark.entries, waiting.entries * self._mark.size / max(waiting.size, 1)) / 2
        answered = self._answered()
        # A smaller counter means that the feed was reset: count again.
        while answered >= before and waiting.entries - (answered - before) > half:
            self._tell(int(waiting.entries) - (answered - before))
            time.sleep(self._seconds)
            answered = self._answered()

    def _waiting(self) -> Amount:
        """Return how much is beyond the cursor, counted up to a mark."""
        most = min(self._mark.entries, int(self._reader.call("XLEN", self._keys.input)))
        after = self._reader.call("HGET", self._keys.state, "cursor") or b"0-0"
        found = backlog(self._reader, self._keys.input, after, most, self._mark.size)
        return Amount(found.entries, found.size)

    def _answered(self) -> int:
        return int(self._reader.call("HGET", self._keys.state, "seq") or 0)


def _ignore(_waiting: int) -> None:
    """Report nothing."""
