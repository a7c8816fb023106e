"""One feed behind the gateway: entries are added, answers awaited, its status sampled."""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import orjson

from workers.broker import commands
from workers.broker.client import TIMEOUT
from workers.broker.connection import Connection
from workers.broker.feed_reader import FeedReader
from workers.errors import StateLost, Unavailable, WorkerError
from workers.feed.keys import FeedKeys
from workers.feed.position import parse_id
from workers.gateway.answers import BLOCK_MS, AwaitedAnswers, Range, by_seq
from workers.gateway.awaited_connection import AwaitedConnection
from workers.gateway.refused import Refused, later, outward
from workers.log import Logger
from workers.message.compact import parse
from workers.push.ingest import Fields
from workers.reading.answers import message, payload
from workers.reading.status import FeedStatus, read_for_gateway, read_status
from workers.reading.verdict import printed
from workers.stop import Stop

FRESH_SECONDS = 0.5
"""Time for which one sample of a feed's status serves all requests."""

_MAX_RETRY_SECONDS = 60  # seconds of Retry-After, at most

log = Logger("online_svm.gateway")

Seen = TypeVar("Seen")


class Answered(NamedTuple):
    """An entry and its answer."""

    entry: bytes  # ID
    payload: bytes | None  # in the full form; None where none came in time
    of: bytes  # ID of the entry that got this answer: an earlier one where `entry` repeats its id


def unready(status: FeedStatus) -> str | None:
    """Return why a feed gives no probabilities now; None if it does."""
    if not status.has_begun:
        return "no worker has begun it"
    if status.holder is None:
        return "no worker holds it"
    is_warming = status.answer.get("status") != "ok"
    return "it is warming up: it has no model yet" if is_warming else None


def _keeps_ids(status: FeedStatus) -> bool:
    """Return whether a repeated id gets its first answer: without a window it is learned again."""
    return int(status.settings.get("limits", {}).get("dedupe_window", 0)) > 0


class _FreshLook(Generic[Seen]):
    """One kind of look at a feed, in a thread and over a connection that no other kind waits for.

    One look serves all requests that arrive meanwhile, and those of `fresh` seconds after it.
    """

    def __init__(
        self, read: Callable[[FeedReader], Seen], reader: FeedReader, fresh: float = 0.0
    ) -> None:
        self._read, self._reader, self._fresh = read, reader, fresh
        self._lock = asyncio.Lock()
        self._seen: Seen | WorkerError = Unavailable("it was not looked at yet")
        self._began = self._ended = -math.inf

    async def get(self, fresh: float | None = None) -> Seen:
        """Return what is seen now, or was seen while this waited, or at most `fresh` seconds ago.

        Raises WorkerError if that cannot be read, which is found out once for all who ask
        meanwhile.
        """
        asked = time.monotonic()
        oldest = self._fresh if fresh is None else fresh
        async with self._lock:
            now = time.monotonic()
            if self._began < asked and now - self._ended > oldest:
                try:
                    self._seen = await asyncio.to_thread(self._read, self._reader)
                except WorkerError as error:
                    self._seen = error
                self._began, self._ended = now, time.monotonic()
        if isinstance(self._seen, WorkerError):
            raise self._seen
        return self._seen

    async def close(self) -> None:
        """Give up the connection, once the present look is over."""
        async with self._lock:
            self._reader.close()


class GatewayFeed:
    """A feed and its connections; made where an event loop runs.

    Where `high_water` entries wait for the worker, requests are refused; 0 bounds none.
    """

    def __init__(self, url: str, feed: str, high_water: int) -> None:
        self.keys, self._high_water = FeedKeys(feed), high_water
        self._calls, reads = (
            AwaitedConnection(Connection(url, Stop(), timeout=seconds), self.keys.state)
            for seconds in (TIMEOUT, TIMEOUT + BLOCK_MS / 1000)
        )
        self._reads = reads
        self.answers = AwaitedAnswers(self.keys, reads, self._calls)
        self._sampled = _FreshLook(read_for_gateway, FeedReader(url, feed), FRESH_SECONDS)
        self._status = _FreshLook(read_status, FeedReader(url, feed))

    async def connected(self, timeout: float) -> None:
        """Wait until Redis answers, so many seconds at most."""
        await asyncio.gather(self._calls.connected(timeout), self._reads.connected(timeout))

    async def close(self) -> None:
        """Close the connections; waiting requests get no answer."""
        await self.answers.close()
        await self._calls.close()
        await self._reads.close()
        await self._sampled.close()
        await self._status.close()

    async def sampled(self) -> FeedStatus:
        """Return the status of the feed a moment ago, as far as requests need it.

        Raises WorkerError if it cannot be read.
        """
        self._calls.check()
        return await self._sampled.get()

    async def check_ids_are_kept(self) -> None:
        """Raise Refused unless the feed gives a repeated id its first answer.

        A feed may have begun since the last sample, so that only a new sample refuses.
        """
        if _keeps_ids(await self.sampled()):
            return
        found = await self._sampled.get(fresh=0)
        feed = f"feed {self.keys.feed!r}"
        if not found.has_begun:
            raise later(503, f"Idempotency-Key: {feed}: {unready(found)}; nothing was added")
        if not _keeps_ids(found):
            raise Refused(
                400,
                f"Idempotency-Key: {feed} learns a repeated id again; begin a feed with "
                "--dedupe-window N",
            )

    async def check_room(self) -> None:
        """Raise Refused if the feed is a combination, or too many entries wait."""
        found = await self.sampled()
        if found.has_begun and "predictor" not in found.settings:
            raise Refused(400, f"feed {self.keys.feed!r} is a combination: send to its sources")
        if self._high_water and found.waiting >= self._high_water:
            seconds = min(_MAX_RETRY_SECONDS, max(1, math.ceil(found.waiting_seconds)))
            raise later(429, f"{found.waiting} entries wait for the worker already", seconds)

    async def add(self, entries: Sequence[Fields]) -> list[bytes]:
        """Add entries in order; return their IDs.

        Raises Refused if Redis refused one or did not answer; it has the IDs of those that were
        added.
        """
        key = self.keys.input
        found = await self._calls.try_all([commands.append(key, fields) for fields in entries])
        failed = [one for one in found if isinstance(one, WorkerError)]
        if not failed:
            return found
        log.error("entries may not have been added", reason=str(failed[0]))
        added = [one.decode() for one in found if isinstance(one, bytes)]
        raise Refused(
            503 if isinstance(failed[0], Unavailable) else 500,
            f"{len(failed)} of {len(found)} entries may not have been added: {outward(failed[0])}",
            added,
            {"Retry-After": "1"},
        )

    async def is_waiting(self, entry: bytes) -> bool:
        """Return whether an entry without an answer is in the input, or went through it."""
        cursor = await self._calls.call(*commands.field(self.keys.state, "cursor"))
        found = await self._calls.call(*commands.entries(self.keys.input, entry, entry, 1))
        return bool(found) and parse_id(cursor or b"0-0") < parse_id(entry)

    async def first_answers(self, answered: Sequence[Answered]) -> list[Answered]:
        """Return answers, and for each repeated id the answer that the id got first.

        Where that is not kept any more, the answer to the repetition stays.
        """
        repeats = [one for one in answered if one.payload and status_of(one.payload) == "duplicate"]
        if not repeats:
            return list(answered)
        seqs = {one.entry: orjson.loads(one.payload or b"")["first"] for one in repeats}
        last = max((one.entry for one in repeats), key=parse_id)
        firsts = await by_seq([*seqs.values()], last, self._read)
        told = []
        for one in answered:
            first = firsts.get(seqs.get(one.entry, -1))
            told.append(
                one if first is None else Answered(one.entry, full(payload(first)), first[0])
            )
        return told

    async def _read(self, ranges: Sequence[Range]) -> list[list[Any]]:
        return await self._calls.call_all(
            [commands.entries(self.keys.out, *each) for each in ranges]
        )

    async def status(self) -> bytes:
        """Return what `status --json` prints."""
        self._calls.check()
        return orjson.dumps(printed(await self._status.get()))

    async def features(self) -> dict[str, Any]:
        """Return the figures of each named feature in the newest report; empty without names."""
        entries = await self._newest(self.keys.met, 1)
        told = message(entries[0]) if entries else None
        return (told.get("features") or {}) if isinstance(told, dict) else {}

    async def alarms(self, count: int) -> bytes:
        """Return the newest alarms as a JSON array, the oldest first, each with its entry ID."""
        entries = await self._newest(self.keys.alarms, count)
        told = [(entry[0].decode(), message(entry)) for entry in reversed(entries)]
        return orjson.dumps([{"entry": at} | one for at, one in told if isinstance(one, dict)])

    async def _newest(self, stream: str, count: int) -> list[Any]:
        """Return the last entries of a stream, the newest first."""
        found: list[Any] = await self._calls.call(*commands.last_entries(stream, count))
        return found


def full(found: bytes) -> bytes:
    """Return the payload of an answer as it is; one in the compact form, as a full answer.

    A rejection gets its sentence.
    """
    is_as_sent = b'"status":' in found[:20] and b'"status":"rejected"' not in found[:40]
    return found if is_as_sent else orjson.dumps(parse(found))


def status_of(found: bytes) -> str:
    """Return the status of a full answer without parsing it all.

    Raises StateLost if it has none: another program wrote it.
    """
    head = found[:40].partition(b'"status":"')[2]
    if not head:
        raise StateLost("an entry of out is no answer: another program wrote it")
    return head.partition(b'"')[0].decode()
