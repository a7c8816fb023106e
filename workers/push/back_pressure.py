"""Back-pressure for producers: a push waits while too many entries wait for the worker."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import redis

from workers.broker.connection import translated
from workers.broker.store import PAGE
from workers.errors import RedisUnsuitable
from workers.feed.keys import FeedKeys
from workers.feed.position import LAST_ID
from workers.push.ingest import PushStopped, connected_to, rows_pushed

SECONDS = 0.2
"""Between two looks at a feed that is full."""


class HighWater:
    """Holds a push back while `mark` entries or more wait beyond the worker's cursor.

    Counting reads entries, so it is done rarely: after room for r more was found, r are sent
    before the next count; and once the mark is reached, the push waits until half of it is
    answered, which the counter in the feed's state tells without reading any.

    Parameters
    ----------
    url, feed : str
    mark : int
        At least 1. A push that sends chunks exceeds it by less than a chunk.
    tell : callable, optional
        Called with the entries that wait whenever the feed is found full.
    seconds : float
        Between two looks at a full feed.
    skipped : int
        Rows of the source before the first that is pushed: messages count from there.
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
        self._url, self._keys, self._mark = url, FeedKeys(feed), mark
        self._tell, self._seconds, self._skipped = tell or _ignore, seconds, skipped
        self._connected: Any = connected_to(url)
        self._next_count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._connected.close()

    def __call__(self, sent: int) -> None:
        """Return when there is room again; `sent` rows were sent so far.

        Raises
        ------
        PushStopped
            If Redis does not answer, or refuses.
        """
        try:
            if sent >= self._next_count:
                self._next_count = sent + self._room()
        except redis.RedisError as error:
            named = translated(error, self._url)
            if isinstance(named, RedisUnsuitable):
                raise named from None
            raise PushStopped(
                f"{named}. {rows_pushed(sent)}; go on with --skip {self._skipped + sent}"
            ) from None

    def _room(self) -> int:
        """Return how many entries may be sent, after waiting until there are some."""
        # What is answered was asked for before what waits is counted: what is answered in between
        # counts twice, and the loop counts again. The other way round it would never be seen.
        before = self._answered()
        while (waiting := self._waiting()) >= self._mark:
            self._wait_until_half(waiting, before)
            before = self._answered()
        return self._mark - waiting

    def _wait_until_half(self, waiting: int, before: int) -> None:
        """Wait until half of the mark is answered: with nobody else pushing, half remains."""
        answered = self._answered()
        # A smaller counter means that the feed was reset: count again.
        while answered >= before and waiting - (answered - before) > self._mark // 2:
            self._tell(waiting - (answered - before))
            time.sleep(self._seconds)
            answered = self._answered()

    def _waiting(self) -> int:
        """Return how many entries are beyond the cursor, counted up to the mark."""
        most = min(self._mark, int(self._connected.xlen(self._keys.input)))
        after = self._connected.hget(self._keys.state, "cursor") or b"0-0"
        count = 0
        while (
            count < most
            and after != LAST_ID
            and (page := self._page(after, min(PAGE, most - count)))
        ):
            count, after = count + len(page), page[-1][0]
        return count

    def _page(self, after: bytes, count: int) -> list[Any]:
        found: list[Any] = self._connected.execute_command(
            "XRANGE", self._keys.input, b"(" + after, "+", "COUNT", count
        )
        return found

    def _answered(self) -> int:
        return int(self._connected.hget(self._keys.state, "seq") or 0)


def _ignore(_waiting: int) -> None:
    """Tell nobody."""
