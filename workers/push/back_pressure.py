"""Back-pressure for producers: a push waits while too much input waits for the worker."""

import time
from collections.abc import Callable
from math import inf
from types import TracebackType
from typing import NamedTuple, Self

from workers.broker.feed_reader import FeedReader
from workers.errors import RedisUnsuitable, WorkerError
from workers.push.ingest import PushStopped, rows_pushed
from workers.reading.lag import backlog

CHECK_SECONDS = 0.2  # time between two checks of a full feed


class Amount(NamedTuple):
    """Entries, and the bytes of their field names and values."""

    entries: float = 0
    size: float = 0


class HighWater:
    """Makes a push wait while too many entries, or bytes, are after the worker's cursor.

    Counting them reads entries, so it is done rarely: if there is room for r entries and b bytes,
    the next count comes after as many. When a mark is reached, the push waits until half of it is
    answered, by the counter in the feed's state.

    A `mark` of 0 is no bound. Any other bound is exceeded by less than a chunk. `progress` is
    called with the number of waiting entries while the feed is full. `skipped` is the number of
    skipped rows of the source, for messages.

    Raises WorkerError if Redis does not answer, or refuses.
    """

    def __init__(
        self,
        url: str,
        feed: str,
        mark: int,
        progress: Callable[[int], None],
        mark_bytes: int = 0,
        skipped: int = 0,
    ) -> None:
        self._mark = Amount(mark or inf, mark_bytes or inf)
        self._progress, self._skipped = progress, skipped
        self._reader = FeedReader(url, feed)
        self._keys = self._reader.keys
        self._answered()  # raises before the push begins if Redis refuses
        self._next_count = Amount()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._reader.close()

    def __call__(self, sent: int, size: int = 0) -> None:
        """Wait until there is room; `sent` rows of `size` bytes were sent so far.

        Raises PushStopped if Redis does not answer, or refuses.
        """
        try:
            if sent >= self._next_count.entries or size >= self._next_count.size:
                room = self._room()
                self._next_count = Amount(sent + room.entries, size + room.size)
        except RedisUnsuitable:
            raise
        except WorkerError as error:
            raise PushStopped(
                f"{error}. {rows_pushed(sent)}; go on with --skip {self._skipped + sent}"
            ) from None

    def _room(self) -> Amount:
        """Wait until there is room; return the amount that may be sent."""
        # The counter of answers is read before the waiting entries are counted. Answers in between
        # then count twice, which the next count corrects; in the other order they would be missed.
        before = self._answered()
        while self._is_full(waiting := self._waiting()):
            self._wait_until_half(waiting, before)
            before = self._answered()
        return Amount(self._mark.entries - waiting.entries, self._mark.size - waiting.size)

    def _is_full(self, waiting: Amount) -> bool:
        return waiting.entries >= self._mark.entries or waiting.size >= self._mark.size

    def _wait_until_half(self, waiting: Amount, before: int) -> None:
        """Wait until no more than half of the mark waits, if no other producer pushes."""
        # A mark in bytes is converted by the mean size of the waiting entries.
        half = min(self._mark.entries, waiting.entries * self._mark.size / max(waiting.size, 1)) / 2
        answered = self._answered()
        # A smaller counter means that the feed was reset; the caller then counts again.
        while answered >= before and waiting.entries - (answered - before) > half:
            self._progress(int(waiting.entries) - (answered - before))
            time.sleep(CHECK_SECONDS)
            answered = self._answered()

    def _waiting(self) -> Amount:
        """Return the amount after the cursor, counted up to a mark."""
        limit = min(self._mark.entries, self._reader.length(self._keys.input))
        after = self._reader.state_field("cursor") or b"0-0"
        found = backlog(self._reader, self._keys.input, after, limit, self._mark.size)
        return Amount(found.entries, found.size)

    def _answered(self) -> int:
        return int(self._reader.state_field("seq") or 0)
