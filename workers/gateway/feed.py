"""One feed behind the gateway: entries are added, answers awaited, its standing looked at."""

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from workers.broker.client import TIMEOUT
from workers.broker.connection import Connection
from workers.broker.feed_reader import FeedReader
from workers.errors import StateLost, Unavailable, WorkerError
from workers.feed.agreement import stored_groups
from workers.feed.keys import FeedKeys
from workers.feed.position import parse_id
from workers.gateway.awaited_connection import AwaitedConnection
from workers.gateway.refused import Refused, later, outward
from workers.gateway.waiting import BLOCK_MS, AwaitedAnswers
from workers.log import Logger
from workers.message.compact.decode import parse
from workers.push.ingest import Fields
from workers.reading.answers import message, newest
from workers.reading.lag import lag
from workers.reading.registry import holder
from workers.reading.status import status
from workers.stop import Stop

FRESH = 0.5
"""Seconds for which a look at the standing of a feed serves all requests."""

_LOOKED_AT = 20  # newest answers, of which one tells whether the feed warms up
_MOST_BACK = 1000  # answers that are read back for the one that a repeated id got
_LONGEST = 60  # seconds of Retry-After, at most

log = Logger("online_svm.gateway")


@dataclass(frozen=True, slots=True)
class Standing:
    """How a feed stands, as a request needs to know.

    Attributes
    ----------
    has_begun, is_answered, is_warming : bool
        Whether a worker began it, one holds it now, and there is no model yet.
    waiting : int
        Entries without an answer.
    seconds : float
        Age of the oldest of them.
    dedupe_window : int
        0 where repeated ids are learned again.
    takes_input : bool
        False for a combination.
    """

    has_begun: bool
    is_answered: bool
    is_warming: bool
    waiting: int
    seconds: float
    dedupe_window: int
    takes_input: bool

    @property
    def unready(self) -> str | None:
        """Why the feed gives no probabilities now; None where it does."""
        if not self.has_begun:
            return "no worker has begun it"
        if not self.is_answered:
            return "no worker holds it"
        return "it is warming up: it has no model yet" if self.is_warming else None


def standing(reader: FeedReader) -> Standing:
    """Return how a feed stands; this only reads.

    Raises
    ------
    WorkerError
        If Redis does not answer, or what is stored is damaged.
    """
    state, lags = reader.state(), lag(reader)
    groups = {} if state is None else stored_groups(reader.keys.feed, state.agreement)
    return Standing(
        has_begun=state is not None,
        is_answered=holder(reader) is not None,
        is_warming=_is_warming(reader),
        waiting=lags.entries,
        seconds=lags.seconds,
        dedupe_window=int(groups.get("limits", {}).get("dedupe_window", 0)),
        takes_input=state is None or "predictor" in groups,
    )


def _is_warming(reader: FeedReader) -> bool:
    found = [message(entry) for entry in newest(reader, reader.keys.out, _LOOKED_AT)]
    told = [one.get("status") for one in found if isinstance(one, dict)]
    return next((one == "warming" for one in reversed(told) if one in ("ok", "warming")), True)


class GatewayFeed:
    """A feed and its connections; made where an event loop runs.

    Parameters
    ----------
    url, feed : str
    high_water : int
        Entries that may wait for the worker before requests are refused; 0 bounds none.
    """

    def __init__(self, url: str, feed: str, high_water: int) -> None:
        self.keys, self._high_water = FeedKeys(feed), high_water
        self._calls, reads = (
            AwaitedConnection(Connection(url, Stop(), timeout=seconds), self.keys.state)
            for seconds in (TIMEOUT, TIMEOUT + BLOCK_MS / 1000)
        )
        self._reads = reads
        self.answers = AwaitedAnswers(self.keys, reads, self._calls)
        self._reader, self._lock = FeedReader(url, feed), asyncio.Lock()
        self._seen: Standing | WorkerError = Unavailable("it was not looked at yet")
        self._looked = -math.inf

    async def connected(self, timeout: float) -> None:
        """Wait until Redis answers, so many seconds at most."""
        await asyncio.gather(self._calls.connected(timeout), self._reads.connected(timeout))

    async def close(self) -> None:
        """Give up the connections; whoever waits gets no answer."""
        await self.answers.close()
        await self._calls.close()
        await self._reads.close()
        async with self._lock:
            self._reader.close()

    async def standing(self) -> Standing:
        """Return how the feed stood at most `FRESH` seconds ago.

        Raises
        ------
        WorkerError
            If that cannot be read, which is found out once for all who ask meanwhile.
        """
        self._calls.check()
        async with self._lock:
            if time.monotonic() - self._looked > FRESH:
                try:
                    self._seen = await asyncio.to_thread(standing, self._reader)
                except WorkerError as error:
                    self._seen = error
                self._looked = time.monotonic()
        if isinstance(self._seen, WorkerError):
            raise self._seen
        return self._seen

    async def check_room(self) -> None:
        """Raise Refused where the feed takes no input, or too much of it waits."""
        found = await self.standing()
        if not found.takes_input:
            raise Refused(400, f"feed {self.keys.feed!r} is a combination: send to its sources")
        if self._high_water and found.waiting >= self._high_water:
            seconds = min(_LONGEST, max(1, math.ceil(found.seconds)))
            raise later(429, f"{found.waiting} entries wait for the worker already", seconds)

    async def add(self, entries: Sequence[Fields]) -> list[bytes]:
        """Add entries in order; return their IDs.

        Raises
        ------
        Refused
            If Redis refused one or did not answer; it has the IDs of those that were added.
        """
        key = self.keys.input
        found = await self._calls.call_all([("XADD", key, "*", *fields) for fields in entries])
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
        cursor = await self._calls.call("HGET", self.keys.state, "cursor")
        found = await self._calls.call("XRANGE", self.keys.input, entry, entry, "COUNT", 1)
        return bool(found) and parse_id(cursor or b"0-0") < parse_id(entry)

    async def first_answer(self, entry: bytes, repeat: bytes) -> bytes:
        """Return the answer that an id got at first, by the answer to its repetition.

        Where that lies too far back, or was trimmed, return the answer to the repetition.
        """
        told = orjson.loads(repeat)
        back = told["seq"] - told["first"]
        if not 0 < back <= _MOST_BACK:
            return repeat
        found = await self._calls.call(
            "XREVRANGE", self.keys.out, entry, "-", "COUNT", back + 1
        )  # fmt: skip
        first = message(found[-1]) if len(found) == back + 1 else None
        is_it = isinstance(first, dict) and first.get("seq") == told["first"]
        return orjson.dumps(first) if is_it else repeat

    async def status(self) -> bytes:
        """Return what `status --json` prints."""
        async with self._lock:
            found = await asyncio.to_thread(status, self._reader)
        return orjson.dumps(asdict(found))

    async def features(self) -> dict[str, Any]:
        """Return what the newest report says of each named feature; nothing without names."""
        async with self._lock:
            entries = await asyncio.to_thread(newest, self._reader, self.keys.met, 1)
        told = message(entries[0]) if entries else None
        return (told.get("features") or {}) if isinstance(told, dict) else {}

    async def alarms(self, count: int) -> bytes:
        """Return the newest alarms as a JSON array, the oldest first, each with its entry ID."""
        async with self._lock:
            entries = await asyncio.to_thread(newest, self._reader, self.keys.alarms, count)
        told = [(entry[0].decode(), message(entry)) for entry in entries]
        return orjson.dumps([{"entry": at} | one for at, one in told if isinstance(one, dict)])


def full(found: bytes) -> bytes:
    """Return the payload of an answer as it is; one in the compact form, as a full answer.

    Examples
    --------
    >>> full(b'{"v":2,"status":"label"}')
    b'{"v":2,"status":"label"}'
    """
    return found if b'"status":' in found[:20] else orjson.dumps(parse(found))


def status_of(found: bytes) -> str:
    """Return the status of a full answer without parsing it all.

    Raises
    ------
    StateLost
        If it has none: another program wrote it.

    Examples
    --------
    >>> status_of(b'{"v":2,"status":"rejected","seq":7}')
    'rejected'
    """
    head = found[:40].partition(b'"status":"')[2]
    if not head:
        raise StateLost("an entry of out is no answer: another program wrote it")
    return head.partition(b'"')[0].decode()
