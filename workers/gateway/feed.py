"""One feed behind the gateway: adds entries, awaits answers, samples the status."""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import orjson

from online_svm.config.semantics import WITH_TRACES
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
"""Seconds for which one sample of a feed's status serves all requests."""

_MAX_RETRY_SECONDS = 60  # largest Retry-After

log = Logger("online_svm.gateway")

Value = TypeVar("Value")


class Answered(NamedTuple):
    """An entry and its answer."""

    entry: bytes  # ID
    payload: bytes | None  # in the full form; None if there is none yet
    of: bytes  # ID of the entry that got this answer: an earlier one if `entry` repeats its id


def unready(status: FeedStatus) -> str | None:
    """Return why a feed gives no probabilities now, if so."""
    if not status.has_begun:
        return "no worker has begun it"
    if status.holder is None:
        return "no worker holds it"
    is_warming = status.answer.get("status") != "ok"
    return "it is warming up: it has no model yet" if is_warming else None


def _keeps_ids(status: FeedStatus) -> bool:
    """Return whether a repeated id gets its first answer: if the feed has a dedupe window."""
    return int(status.settings.get("limits", {}).get("dedupe_window", 0)) > 0


class _SharedRead(Generic[Value]):
    """A value of a feed that is read in a thread, over its own connection, and shared by requests.

    One read serves all requests that arrive during it, and up to `max_age` seconds after it.
    """

    def __init__(
        self, read: Callable[[FeedReader], Value], reader: FeedReader, max_age: float = 0.0
    ) -> None:
        self._read, self._reader, self._max_age = read, reader, max_age
        self._lock = asyncio.Lock()
        self._value: Value | WorkerError = Unavailable("it was not looked at yet")
        self._began = self._ended = -math.inf

    async def get(self, max_age: float | None = None) -> Value:
        """Return the value: read now, during the wait for it, or at most `max_age` seconds ago.

        Raises WorkerError if the read fails, for all requests that share it.
        """
        arrived = time.monotonic()
        max_age = self._max_age if max_age is None else max_age
        async with self._lock:
            now = time.monotonic()
            if self._began < arrived and now - self._ended > max_age:
                try:
                    self._value = await asyncio.to_thread(self._read, self._reader)
                except WorkerError as error:
                    self._value = error
                self._began, self._ended = now, time.monotonic()
        if isinstance(self._value, WorkerError):
            raise self._value
        return self._value

    async def close(self) -> None:
        """Close the connection after the current read."""
        async with self._lock:
            self._reader.close()


class GatewayFeed:
    """A feed and its connections; to be created in a running event loop.

    Requests are refused while `high_water` entries wait for the worker; 0 is no limit.
    """

    def __init__(self, url: str, feed: str, high_water: int) -> None:
        self.keys, self._high_water = FeedKeys(feed), high_water
        self._calls, reads = (
            AwaitedConnection(Connection(url, Stop(), timeout=seconds), self.keys.state)
            for seconds in (TIMEOUT, TIMEOUT + BLOCK_MS / 1000)
        )
        self._reads = reads
        self.answers = AwaitedAnswers(self.keys, reads, self._calls)
        self._sampled = _SharedRead(read_for_gateway, FeedReader(url, feed), FRESH_SECONDS)
        self._status = _SharedRead(read_status, FeedReader(url, feed))

    async def connected(self, timeout: float) -> None:
        """Wait until Redis answers, for at most `timeout` seconds."""
        await asyncio.gather(self._calls.connected(timeout), self._reads.connected(timeout))

    async def close(self) -> None:
        """Close the connections; waiting requests get no answer."""
        await self.answers.close()
        await self._calls.close()
        await self._reads.close()
        await self._sampled.close()
        await self._status.close()

    async def sampled(self) -> FeedStatus:
        """Return a recent sample of the status that requests need. Raises WorkerError."""
        self._calls.check()
        return await self._sampled.get()

    async def check_ids_are_kept(self) -> None:
        """Raise Refused unless the feed gives a repeated id its first answer.

        The feed may have started since the last sample, so refuse only after a new one.
        """
        if _keeps_ids(await self.sampled()):
            return
        found = await self._sampled.get(max_age=0)
        if not found.has_begun:
            raise later("key_too_early", feed=self.keys.feed, words=unready(found))
        if not _keeps_ids(found):
            raise Refused("key_not_kept", feed=self.keys.feed)

    async def check_room(self) -> None:
        """Raise Refused if the feed is a combination, or too many entries wait."""
        found = await self.sampled()
        if found.has_begun and "predictor" not in found.settings:
            raise Refused("combination", feed=self.keys.feed)
        if self._high_water and found.waiting >= self._high_water:
            seconds = min(_MAX_RETRY_SECONDS, max(1, math.ceil(found.waiting_seconds)))
            raise later("too_many_waiting", seconds, waiting=found.waiting)

    async def takes_traces(self) -> bool:
        """Return whether entries of this feed may have a trace context."""
        settings = (await self.sampled()).settings.get("predictor", {})
        return int(settings.get("semantics", 0)) >= WITH_TRACES

    async def add(self, entries: Sequence[Fields]) -> list[bytes]:
        """Add entries in order; return their IDs.

        Raises Refused, with the IDs of the added entries, if Redis refused one or did not answer.
        """
        key = self.keys.input
        found = await self._calls.try_all([commands.append(key, fields) for fields in entries])
        failed = [one for one in found if isinstance(one, WorkerError)]
        if not failed:
            return found
        log.error("entries may not have been added", reason=str(failed[0]))
        added = [one.decode() for one in found if isinstance(one, bytes)]
        raise Refused(
            "add_uncertain" if isinstance(failed[0], Unavailable) else "add_refused",
            ids=added,
            headers={"Retry-After": "1"},
            failed=len(failed),
            entries=len(found),
            words=outward(failed[0]),
        )

    async def is_waiting(self, entry: bytes) -> bool:
        """Return whether an entry is in the input and not answered yet."""
        cursor = await self._calls.call(*commands.field(self.keys.state, "cursor"))
        found = await self._calls.call(*commands.entries(self.keys.input, entry, entry, 1))
        return bool(found) and parse_id(cursor or b"0-0") < parse_id(entry)

    async def first_answers(self, answered: Sequence[Answered]) -> list[Answered]:
        """Replace each answer to a repeated id by the first answer to the id, if it is stored."""
        repeats = [one for one in answered if one.payload and status_of(one.payload) == "duplicate"]
        if not repeats:
            return list(answered)
        seqs = {one.entry: orjson.loads(one.payload or b"")["first"] for one in repeats}
        last = max((one.entry for one in repeats), key=parse_id)
        firsts = await by_seq([*seqs.values()], last, self._read)
        found = []
        for one in answered:
            first = firsts.get(seqs.get(one.entry, -1))
            found.append(
                one if first is None else Answered(one.entry, full(payload(first)), first[0])
            )
        return found

    async def _read(self, ranges: Sequence[Range]) -> list[list[Any]]:
        return await self._calls.call_all(
            [commands.entries(self.keys.out, *each) for each in ranges]
        )

    async def status(self) -> bytes:
        """Return what `status --json` prints."""
        self._calls.check()
        return orjson.dumps(printed(await self._status.get()))

    async def features(self) -> dict[str, Any]:
        """Return the named features in the newest report; {} without names."""
        entries = await self._newest(self.keys.met, 1)
        report = message(entries[0]) if entries else None
        return (report.get("features") or {}) if isinstance(report, dict) else {}

    async def alarms(self, count: int) -> bytes:
        """Return the newest alarms as a JSON array, oldest first, each with its entry ID."""
        entries = await self._newest(self.keys.alarms, count)
        alarms = [(entry[0].decode(), message(entry)) for entry in reversed(entries)]
        return orjson.dumps([{"entry": at} | one for at, one in alarms if isinstance(one, dict)])

    async def _newest(self, stream: str, count: int) -> list[Any]:
        """Return the last entries of a stream, newest first."""
        found: list[Any] = await self._calls.call(*commands.last_entries(stream, count))
        return found


def full(found: bytes) -> bytes:
    """Return an answer in the full form, a rejection with its sentence."""
    is_full = b'"status":' in found[:20] and b'"status":"rejected"' not in found[:40]
    return found if is_full else orjson.dumps(parse(found))


def status_of(found: bytes) -> str:
    """Return the status of a full answer without parsing all of it.

    Raises StateLost if there is none, since another program wrote the entry.
    """
    head = found[:40].partition(b'"status":"')[2]
    if not head:
        raise StateLost("an entry of out is no answer: another program wrote it")
    return head.partition(b'"')[0].decode()
