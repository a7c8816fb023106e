"""One feed behind the gateway: adds entries, awaits answers, samples the status."""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import orjson

from workers.broker import commands
from workers.broker.client import TIMEOUT
from workers.broker.connection import Connection
from workers.broker.feed_reader import FeedReader
from workers.broker.streams import pairs_of, payload
from workers.errors import StateLost, Unavailable, WorkerError
from workers.feed.keys import FeedKeys
from workers.feed.position import parse_id
from workers.feed.recent_ids import AnsweredEntry
from workers.gateway.answers import BLOCK_MS, AwaitedAnswers, Entry, Range, by_seq, full
from workers.gateway.awaited_connection import AwaitedConnection
from workers.gateway.published_states import Moment
from workers.gateway.refused import Refused, later, outward
from workers.log import Logger
from workers.push.ingest import Fields
from workers.reading.answers import message
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


class _Repeat(NamedTuple):
    """An example that repeats an id."""

    id: str
    seq: int | None  # of the first answer; None if the answer does not name it


def _repeated(answer: bytes | None) -> _Repeat | None:
    """Return which id an example repeats, according to its answer; None if it repeats none.

    An example that is sent again with its label while it waits is answered as a repeated label.
    """
    if answer is None or status_of(answer) not in ("duplicate", "label"):
        return None
    found = orjson.loads(answer)
    if found["status"] == "duplicate":
        return _Repeat(found["id"], found["first"])
    return _Repeat(found["example"], None) if found["done"] == "repeated" else None


def unready(status: FeedStatus) -> str | None:
    """Return why a feed gives no probabilities now, if so."""
    if not status.has_begun:
        return "no worker has begun it"
    if status.holder is None:
        return "no worker holds it"
    is_warming = status.answer.get("status") != "ok"
    return "it is warming up: it has no model yet" if is_warming else None


def _dedupe_window(status: FeedStatus) -> int:
    """Return how many ids the feed remembers; a repeated one gets its first answer."""
    return int(status.settings.get("limits", {}).get("dedupe_window", 0))


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

    async def check_ids_are_kept(self, rows: int) -> None:
        """Raise Refused unless the feed remembers the ids of a request with so many rows.

        The feed may have started since the last sample, so refuse only after a new one.
        """
        if _dedupe_window(await self.sampled()) >= rows:
            return
        found = await self._sampled.get(max_age=0)
        if not found.has_begun:
            raise later("key_too_early", feed=self.keys.feed, words=unready(found))
        if (window := _dedupe_window(found)) < rows:
            raise Refused("key_not_kept", feed=self.keys.feed, window=window, rows=rows)

    async def check_room(self) -> None:
        """Raise Refused if too many entries wait."""
        found = await self.sampled()
        if self._high_water and found.waiting >= self._high_water:
            seconds = min(_MAX_RETRY_SECONDS, max(1, math.ceil(found.waiting_seconds)))
            raise later("too_many_waiting", seconds, waiting=found.waiting)

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
        """Replace each answer to a repeated example by the first answer to its id.

        Raises Refused: 410 with its `seq` if a first answer is not stored any more.
        """
        repeats = {
            one.entry: repeat for one in answered if (repeat := _repeated(one.payload)) is not None
        }
        if not repeats:
            return list(answered)
        firsts = await self._firsts(repeats)
        for entry, repeat in repeats.items():
            if entry not in firsts and repeat.seq is not None:
                added = [one.entry.decode() for one in answered]
                raise Refused("answer_gone", ids=added, feed=self.keys.feed, seq=repeat.seq)
        return [
            Answered(one.entry, full(payload(first)), first[0])
            if (first := firsts.get(one.entry)) is not None
            else one
            for one in answered
        ]

    async def _firsts(self, repeats: Mapping[bytes, "_Repeat"]) -> dict[bytes, Entry]:
        """Return the entry of `out` with the first answer of each repeat, where it is stored."""
        places = await self._places([repeat.id for repeat in repeats.values()])
        known = {
            entry: place
            for (entry, repeat), place in zip(repeats.items(), places, strict=True)
            if place is not None and repeat.seq in (None, place.seq)
        }
        pages = await self._read([(place.entry, place.entry, 1) for place in known.values()])
        firsts = {entry: page[0] for entry, page in zip(known, pages, strict=True) if page}
        # An id may have left the feed's memory since it was repeated.
        seqs = {
            entry: repeat.seq
            for entry, repeat in repeats.items()
            if entry not in known and repeat.seq is not None
        }
        if seqs:
            found = await by_seq([*seqs.values()], max(seqs, key=parse_id), self._read)
            firsts |= {entry: found[seq] for entry, seq in seqs.items() if seq in found}
        return firsts

    async def answer_to(self, id: str) -> Answered:
        """Return the answer to the example with the producer's id.

        Raises Refused: 404 if the feed does not remember the id; 410 if the answer is not stored.
        """
        (place,) = await self._places([id])
        if place is None:
            raise Refused("id_unknown", feed=self.keys.feed)
        (found,) = await self.answers.find([place.entry])
        if found is None:
            raise Refused("answer_gone", feed=self.keys.feed, seq=place.seq)
        return Answered(place.entry, full(found), place.entry)

    async def _places(self, ids: Sequence[str]) -> list[AnsweredEntry | None]:
        """Return where the answer to each id is; None if the feed does not remember the id."""
        values = await self._calls.call(*commands.fields(self.keys.answered_ids, *ids))
        return [None if value is None else AnsweredEntry.decode(value) for value in values]

    async def _read(self, ranges: Sequence[Range]) -> list[list[Any]]:
        return await self._calls.call_all(
            [commands.entries(self.keys.out, *each) for each in ranges]
        )

    async def moment(self) -> Moment:
        """Return how far the feed is, and its newest published state.

        Raises Refused: 503 if no worker has begun the feed.
        """
        (n, config_hash), newest = await self._calls.call_all(
            [
                commands.fields(self.keys.state, "n", "config_hash"),
                commands.all_fields(self.keys.published),
            ]
        )
        if n is None or not n.isdigit():
            raise later("state_missing", feed=self.keys.feed, words="no worker has begun it")
        return Moment(int(n), (config_hash or b"").decode(errors="replace"), pairs_of(newest))

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


def status_of(found: bytes) -> str:
    """Return the status of a full answer without parsing all of it.

    Raises StateLost if there is none, since another program wrote the entry.
    """
    head = found[:40].partition(b'"status":"')[2]
    if not head:
        raise StateLost("an entry of out is no answer: another program wrote it")
    return head.partition(b'"')[0].decode()
