"""Answers that requests wait for: one task follows `out`, and wakes each request by entry ID."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress

from workers.errors import StateLost, WorkerError
from workers.feed.keys import FeedKeys
from workers.feed.position import parse_id
from workers.gateway.awaited_connection import AwaitedConnection
from workers.reading.answers import payload

BLOCK_MS = 1000
"""Milliseconds that a read waits for an answer."""

_COUNT = 100  # answers in a read
_PAUSE = 0.2  # seconds without a read where Redis does not answer
LARGEST = 2**64 - 1
"""Of each of the two numbers of an entry ID."""

Answer = bytes | None
"""The payload of an answer; None without one."""


class AwaitedAnswers:
    """The answers of one feed, for requests that know the IDs of their entries.

    An answer has the ID of its entry, and answers come in the order of their IDs. So it is enough
    to read what follows the first entry that somebody waits for; while nobody waits, nothing is
    read.

    Parameters
    ----------
    keys : FeedKeys
    reads : AwaitedConnection
        For blocking reads.
    calls : AwaitedConnection
        For all others.
    """

    def __init__(self, keys: FeedKeys, reads: AwaitedConnection, calls: AwaitedConnection) -> None:
        self._keys, self._reads, self._calls = keys, reads, calls
        self._waiting: dict[bytes, list[asyncio.Future[Answer]]] = {}
        self._wanted = asyncio.Event()
        self._position = (0, 0)  # of what was read; answers up to there are looked up one by one
        self._is_closed = False
        self._follows = asyncio.get_running_loop().create_task(self._follow())

    async def close(self) -> None:
        """Wait no more: whoever waits has no answer."""
        self._is_closed = True
        for futures in self._waiting.values():
            _end(futures)
        self._follows.cancel()
        await asyncio.gather(self._follows, return_exceptions=True)

    async def wait(self, entries: Sequence[bytes], timeout: float) -> list[Answer]:
        """Return the answer to each entry; None where none came within so many seconds."""
        if self._is_closed or timeout <= 0:
            return [await self.find(entry) for entry in entries]
        futures = [self._expect(entry) for entry in entries]
        passed = [entry for entry in entries if parse_id(entry) <= self._position]
        timer = asyncio.get_running_loop().call_later(timeout, _end, futures)
        try:
            for entry in passed:  # later answers were read before this was waited for
                self._wake(entry, await self.find(entry))
            return [await future for future in futures]
        finally:
            timer.cancel()
            for entry, future in zip(entries, futures, strict=True):
                self._forget(entry, future)

    async def find(self, entry: bytes) -> Answer:
        """Return the answer to an entry if it is there."""
        found = await self._calls.call("XRANGE", self._keys.out, entry, entry, "COUNT", 1)
        return payload(found[0]) if found else None

    def _expect(self, entry: bytes) -> "asyncio.Future[Answer]":
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(entry, []).append(future)
        self._wanted.set()
        return future

    def _forget(self, entry: bytes, future: "asyncio.Future[Answer]") -> None:
        futures = self._waiting.get(entry, [])
        if future in futures:
            futures.remove(future)
        if not futures:
            self._waiting.pop(entry, None)

    def _wake(self, entry: bytes, found: Answer) -> None:
        if found is not None:
            _end(self._waiting.pop(entry, ()), found)

    async def _follow(self) -> None:
        while True:
            if not self._waiting:
                while not self._waiting:
                    self._wanted.clear()
                    await self._wanted.wait()
                self._position = max(self._position, _before(min(map(parse_id, self._waiting))))
            try:
                await self._read()
            except WorkerError:  # requests wait on, until their time is over
                await asyncio.sleep(_PAUSE)

    async def _read(self) -> None:
        after = "{}-{}".format(*self._position)
        reply = await self._reads.call(
            "XREAD", "COUNT", _COUNT, "BLOCK", BLOCK_MS, "STREAMS", self._keys.out, after
        )
        for entry in reply[0][1] if reply else ():
            if entry[0] in self._waiting:
                with suppress(StateLost):  # another program wrote it
                    self._wake(entry[0], payload(entry))
        if reply:
            self._position = parse_id(reply[0][1][-1][0])


def _end(futures: Iterable["asyncio.Future[Answer]"], found: Answer = None) -> None:
    """Give those who wait what was found; by default nothing."""
    for future in futures:
        if not future.done():
            future.set_result(found)


def _before(position: tuple[int, int]) -> tuple[int, int]:
    """Return the ID right before another.

    Examples
    --------
    >>> _before((5, 9)), _before((5, 0)) == (4, 2**64 - 1)
    ((5, 8), True)
    """
    time, count = position
    return (time, count - 1) if count else (time - 1, LARGEST)
