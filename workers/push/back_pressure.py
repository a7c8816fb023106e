"""Back-pressure for producers: a push waits while too many entries wait for the worker."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from workers.broker.connection import Connection
from workers.broker.feed_reader import PAGE
from workers.errors import RedisUnsuitable, WorkerError
from workers.feed.keys import FeedKeys
from workers.feed.position import LAST_ID
from workers.push.ingest import PushStopped, rows_pushed
from workers.stop import Stop

SECONDS = 0.2
"""Seconds between two checks of a full feed."""


class HighWater:
    """Makes a push wait while at least `mark` entries are beyond the worker's cursor.

    Counting reads entries, so it is rare. If there is room for r entries, r are sent before the
    next count. When the mark is reached, the push waits until half of the entries are answered; the
    counter in the feed's state shows that without reading entries.

    Parameters
    ----------
    url, feed : str
    mark : int
        At least 1. A push exceeds it by less than a chunk.
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
    ) -> None:
        self._keys, self._mark = FeedKeys(feed), mark
        self._tell, self._seconds, self._skipped = tell or _ignore, seconds, skipped
        self._connection = Connection(url, Stop())
        self._answered()  # what Redis refuses from the start is no interrupted push
        self._next_count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._connection.close()

    def __call__(self, sent: int) -> None:
        """Wait until there is room; `sent` rows were sent so far.

        Raises
        ------
        PushStopped
            If Redis does not answer, or refuses.
        """
        try:
            if sent >= self._next_count:
                self._next_count = sent + self._room()
        except RedisUnsuitable:
            raise
        except WorkerError as error:
            raise PushStopped(
                f"{error}. {rows_pushed(sent)}; go on with --skip {self._skipped + sent}"
            ) from None

    def _room(self) -> int:
        """Wait until there is room; return how many entries may be sent."""
        # Read the counter of answers before counting the waiting entries. Answers in between then
        # count twice, and the loop counts again. In the other order they would be missed.
        before = self._answered()
        while (waiting := self._waiting()) >= self._mark:
            self._wait_until_half(waiting, before)
            before = self._answered()
        return self._mark - waiting

    def _wait_until_half(self, waiting: int, before: int) -> None:
        """Wait until half of the mark is answered; half remains if nobody else pushes."""
        answered = self._answered()
        # A smaller counter means that the feed was reset: count again.
        while answered >= before and waiting - (answered - before) > self._mark // 2:
            self._tell(waiting - (answered - before))
            time.sleep(self._seconds)
            answered = self._answered()

    def _waiting(self) -> int:
        """Return how many entries are beyond the cursor, counted up to the mark."""
        most = min(self._mark, int(self._connection.call("XLEN", self._keys.input)))
        after = self._connection.call("HGET", self._keys.state, "cursor") or b"0-0"
        count = 0
        while (
            count < most
            and after != LAST_ID
            and (page := self._page(after, min(PAGE, most - count)))
        ):
            count, after = count + len(page), page[-1][0]
        return count

    def _page(self, after: bytes, count: int) -> list[Any]:
        found: list[Any] = self._connection.call(
            "XRANGE", self._keys.input, b"(" + after, "+", "COUNT", count
        )
        return found

    def _answered(self) -> int:
        return int(self._connection.call("HGET", self._keys.state, "seq") or 0)


def _ignore(_waiting: int) -> None:
    """Report nothing."""
