"""Answers of a feed: awaited by entry ID, and found by `seq`.

One task reads `out` and wakes each request by entry ID. An answer has the ID of its entry, and
answers arrive in the order of their IDs. So the task reads from the first entry that a request
waits for; while no request waits, it does not read.

`out` is sorted by `seq` and by ID, but Redis finds entries by ID only. So a search by `seq` probes
`_PROBES` IDs at once: it reads a few hundred answers, however long `out` is, and wherever it was
trimmed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import orjson

from workers.broker import commands
from workers.broker.streams import payload
from workers.errors import StateLost, WorkerError
from workers.feed.codes import parse
from workers.feed.keys import FeedKeys
from workers.feed.position import format_id, parse_id, previous_id
from workers.gateway.awaited_connection import AwaitedConnection
from workers.reading.answers import message

BLOCK_MS = 1000
"""Milliseconds that a read waits for an answer."""

_ANSWERS_PER_READ = 100
_PAUSE = 0.2  # seconds until the next read after a failure

Answer = bytes | None
"""The payload of an answer, if any."""

_PROBES = 16  # ranges that are read together
_SCAN_ANSWERS = 100  # with so few answers left, read all of them
_RUN_ANSWERS = 1000  # most answers with consecutive `seq` that are read at once
_ID_PART_BITS = 64

Entry = Sequence[Any]
Range = tuple[bytes, bytes, int]
"""First ID, last ID, and the largest number of entries."""

Read = Callable[[Sequence[Range]], Awaitable[Sequence[Sequence[Entry]]]]


class AwaitedAnswers:
    """The answers of one feed; `reads` is for blocking reads, `calls` for all other commands."""

    def __init__(self, keys: FeedKeys, reads: AwaitedConnection, calls: AwaitedConnection) -> None:
        self._keys, self._reads, self._calls = keys, reads, calls
        self._waiting: dict[bytes, list[asyncio.Future[Answer]]] = {}
        self._has_waiting = asyncio.Event()
        self._position = (0, 0)  # ID up to which `out` was read
        self._is_closed = False
        self._reading = asyncio.get_running_loop().create_task(self._read_all())

    async def close(self) -> None:
        """Stop reading: waiting requests get no answer."""
        self._is_closed = True
        for futures in self._waiting.values():
            _resolve(futures)
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def wait(
        self, entries: Sequence[bytes], timeout: float, gone: "asyncio.Future[None] | None" = None
    ) -> list[Answer]:
        """Return the answer to each entry; None if it does not arrive in time, or before `gone`."""
        if self._is_closed:
            return await self.find(entries)
        futures = [self._register(entry) for entry in entries]
        passed = [entry for entry in entries if parse_id(entry) <= self._position]
        timer = asyncio.get_running_loop().call_later(timeout, _resolve, futures)
        if gone is not None:
            gone.add_done_callback(lambda _: _resolve(futures))
        try:
            # The task has already read beyond these answers.
            for entry, found in zip(passed, await self.find(passed), strict=True):
                self._wake(entry, found)
            return [await future for future in futures]
        finally:
            timer.cancel()
            for entry, future in zip(entries, futures, strict=True):
                self._unregister(entry, future)

    async def find(self, entries: Sequence[bytes]) -> list[Answer]:
        """Return the answer to each entry; None if there is none.

        Raises WorkerError if Redis does not answer, or an entry of `out` is no answer.
        """
        reads = [commands.entries(self._keys.out, at, at, 1) for at in entries]
        ranges = await self._calls.call_all(reads)
        return [payload(found[0]) if found else None for found in ranges]

    def _register(self, entry: bytes) -> "asyncio.Future[Answer]":
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(entry, []).append(future)
        self._has_waiting.set()
        return future

    def _unregister(self, entry: bytes, future: "asyncio.Future[Answer]") -> None:
        futures = self._waiting.get(entry, [])
        if future in futures:
            futures.remove(future)
        if not futures:
            self._waiting.pop(entry, None)

    def _wake(self, entry: bytes, found: Answer) -> None:
        if found is not None:
            _resolve(self._waiting.pop(entry, ()), found)

    async def _read_all(self) -> None:
        while True:
            if not self._waiting:
                while not self._waiting:
                    self._has_waiting.clear()
                    await self._has_waiting.wait()
                first = min(self._waiting, key=parse_id)
                self._position = max(self._position, parse_id(previous_id(first)))
            try:
                await self._read()
            except WorkerError:  # requests continue to wait, until their timeout
                await asyncio.sleep(_PAUSE)

    async def _read(self) -> None:
        cursors = [(self._keys.out, format_id(self._position))]
        reply = await self._reads.call(*commands.read_after(cursors, _ANSWERS_PER_READ, BLOCK_MS))
        for entry in reply[0][1] if reply else ():
            if entry[0] in self._waiting:
                with suppress(StateLost):  # another program wrote it
                    self._wake(entry[0], payload(entry))
        if reply:
            self._position = parse_id(reply[0][1][-1][0])


def _resolve(futures: Iterable["asyncio.Future[Answer]"], found: Answer = None) -> None:
    for future in futures:
        if not future.done():
            future.set_result(found)


async def by_seq(seqs: Sequence[int], before: bytes, read: Read) -> dict[int, Entry]:
    """Return the stored entries of answers, by `seq`; `before` is the ID of a later entry."""
    found: dict[int, Entry] = {}
    for seq in sorted(seqs):
        if seq in found or (start := await _search(seq, before, read)) is None:
            continue
        (page,) = await read([(start[0], before, min(_RUN_ANSWERS, max(seqs) - seq + 1))])
        found |= {at: entry for entry in page if (at := _seq(entry)) is not None}
    return found


async def _search(seq: int, before: bytes, read: Read) -> Entry | None:
    low, high = 0, _number(before) - 1
    while low <= high:
        marks = sorted({low + (high - low) * i // _PROBES for i in range(_PROBES)})
        below = None  # largest `seq` found before `low`
        for mark, entries in zip(
            marks, await read([_range(at, high) for at in marks]), strict=True
        ):
            at = _seq(entries[0]) if entries else None
            if at == seq:
                return entries[0]
            if at is None or at > seq:
                high = mark - 1
                break
            low, below = _number(entries[0][0]) + 1, at
        if below is not None and seq - below <= _SCAN_ANSWERS and low <= high:
            (page,) = await read([_range(low, high, seq - below)])
            return next((entry for entry in page if _seq(entry) == seq), None)
    return None


def _range(low: int, high: int, count: int = 1) -> Range:
    return _id(low), _id(high), count


def _number(entry_id: bytes) -> int:
    """Return an ID as one number, for bisection."""
    time, count = parse_id(entry_id)
    return time << _ID_PART_BITS | count


def _id(number: int) -> bytes:
    return b"%d-%d" % divmod(number, 1 << _ID_PART_BITS)


def _seq(entry: Entry) -> int | None:
    """Return the `seq` of an answer; None if another program wrote the entry."""
    found = message(entry)
    seq = found.get("seq") if isinstance(found, dict) else None
    return seq if isinstance(seq, int) else None


def full(found: bytes) -> bytes:
    """Return an answer in the full form, a rejection with its sentence."""
    is_full = b'"status":' in found[:20] and b'"status":"rejected"' not in found[:40]
    return found if is_full else orjson.dumps(parse(found))
