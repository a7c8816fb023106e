"""Blocked reads that wait for the input of many feeds at once, over a few connections.

`XREAD` over several streams returns when the first of them gets an entry. The other streams must
then be read again, and Redis looks at each. So one read covers at most `STREAMS_PER_READ` streams,
and streams that were busy a moment ago have reads of their own: the quiet ones stay blocked. A
blocked read returns few entries; a feed that has more is then read alone.
"""

import math
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from workers.broker import commands, feed_reader
from workers.broker.client import TIMEOUT
from workers.broker.connection import Connection
from workers.broker.large_replies import most_cuts
from workers.broker.nodes import nodes_of
from workers.broker.pipeline import PendingReply
from workers.broker.streams import Entry
from workers.errors import Stopped, Unavailable, WorkerError

STREAMS_PER_READ = 64
"""Any entry ends a read of so many streams, which costs Redis about 60 microseconds."""

BUSY_STREAMS_PER_READ = 8
"""For busy streams: an entry costs Redis about 10 microseconds."""

SPARE_CONNECTIONS = 64
"""Connections beyond those that all streams need: so many groups of busy streams have their own."""

QUIET_WAIT_FACTOR = 5
"""A read of quiet streams waits so many times longer: their cost is that reads end and begin."""

SHORT_WAIT_MS = 50
"""Milliseconds that the last read waits for which there is a connection."""

ENTRIES_PER_STREAM = 16
"""Entries of one stream that a blocked read returns, at most."""

MAX_REPLY_BYTES = 1 << 23
"""Beyond these bytes of a reply each of its streams is read alone."""

BUSY_SECONDS = 5.0
"""Seconds after its last entry during which a stream counts as busy."""


class EntrySink(Protocol):
    """Takes the entries that arrive on a stream."""

    @property
    def count(self) -> int:
        """Entries that a read should request."""

    def hand_in(self, entries: Sequence[Entry], may_be_more: bool) -> None:
        """Take the next entries; or, if there are none, note that the stream may have some."""


class StreamRead(NamedTuple):
    """A stream whose next entries a feed waits for."""

    feed: str
    key: str
    cursor: bytes  # ID after which entries are new
    input: EntrySink  # a feed that reads again from its position has another one


class Arrival(NamedTuple):
    """The entries that a read brought."""

    read: StreamRead
    entries: list[Entry]
    may_be_more: bool  # without entries: the stream should be read alone


@dataclass(slots=True, eq=False)
class _BlockedRead:
    connection: Connection
    sent: PendingReply
    streams: list[StreamRead]
    count: int
    until: float  # by `time.monotonic`: a reply that has not come by then does not come
    is_busy: bool


class SharedReader:
    """Blocked reads over all feeds of one server that wait for input.

    Parameters
    ----------
    reads : Connection
        The connection on which feeds read alone. It names the server and the stop, and counts the
        failures of the blocked reads as well.
    block_ms : int, optional
        Milliseconds that a read of busy streams waits; by default as `FeedReader`.
    together, spare : int
        Streams of one read; connections beyond those that all streams need.
    fail_fast_for : float
        For new connections; see `Connection`.
    """

    def __init__(
        self,
        reads: Connection,
        block_ms: int | None = None,
        together: int = STREAMS_PER_READ,
        spare: int = SPARE_CONNECTIONS,
        fail_fast_for: float = 0.0,
    ) -> None:
        self._url, self._reads = reads.url, reads
        self._block_ms = feed_reader.BLOCK_MS if block_ms is None else block_ms
        self._fail_fast_for = fail_fast_for
        self._together, self._spare = together, spare
        self._covers: dict[int, _BlockedRead] = {}  # by their descriptors
        self._broken: list[_BlockedRead] = []  # they could not be sent
        self._covered = self._covered_busy = 0  # streams
        self._free: dict[str | None, list[Connection]] = {}  # by their node
        self._busy: dict[str, float] = {}  # when a stream last had an entry, by its key

    @property
    def descriptors(self) -> Collection[int]:
        """Descriptors that become readable when entries arrive or a connection breaks."""
        return self._covers.keys()

    @property
    def has_room(self) -> bool:
        """Whether another read may begin; else one ends within `SHORT_WAIT_MS`."""
        return self._room() > 0

    @property
    def seconds_left(self) -> float:
        """Seconds until the next call of `arrivals`, even if no descriptor is readable."""
        return math.inf

    def cover(self, streams: Iterable[StreamRead]) -> None:
        """Wait for the input of these feeds, which no read covers yet; there must be room."""
        now = time.monotonic()
        busy: list[StreamRead] = []
        quiet: list[StreamRead] = []
        for one in streams:
            (busy if self._is_busy(one, now) else quiet).append(one)
        if busy and quiet and self._room() < 2:
            busy, quiet = busy + quiet, []
        for first in range(0, len(busy), few := self._few(len(busy))):
            self._begin(busy[first : first + few], self._block_ms, is_busy=True)
        for first in range(0, len(quiet), self._together):
            part = quiet[first : first + self._together]
            self._begin(part, QUIET_WAIT_FACTOR * self._block_ms, is_busy=False)

    def _is_busy(self, one: StreamRead, now: float) -> bool:
        return now - self._busy.get(one.key, -BUSY_SECONDS) < BUSY_SECONDS

    def _few(self, more: int) -> int:
        """Return how many busy streams one read covers, when `more` are added.

        Each entry ends a read, and all its streams are read again, so they should be few. But the
        reads of busy streams should take at most half of the spare connections.
        """
        busy = self._covered_busy + more
        return min(self._together, max(BUSY_STREAMS_PER_READ, -(-2 * busy // max(self._spare, 1))))

    def arrivals(self, readable: Iterable[int] = ()) -> tuple[list[Arrival], list[StreamRead]]:
        """Return what came on `readable` descriptors, and the streams that got nothing.

        Both are covered no longer.
        """
        now = time.monotonic()
        overdue = [descriptor for descriptor, one in self._covers.items() if now > one.until]
        for descriptor in overdue:
            self._covers[descriptor].connection.close()
        over = dict.fromkeys((*readable, *overdue))
        ended, self._broken = self._broken, []
        ended += [self._covers.pop(one) for one in over if one in self._covers]
        arrived: list[Arrival] = []
        quiet: list[StreamRead] = []
        for blocked in ended:
            self._count(blocked, -1)
            self._finish(blocked, arrived, quiet)
        return arrived, quiet

    def close(self) -> None:
        """Close the connections."""
        covers = (*self._covers.values(), *self._broken)
        free = (connection for some in self._free.values() for connection in some)
        for connection in (*free, *(blocked.connection for blocked in covers)):
            connection.close()
        self._covers, self._broken, self._free = {}, [], {}
        self._covered = self._covered_busy = 0

    def _count(self, blocked: _BlockedRead, sign: int) -> None:
        self._covered += sign * len(blocked.streams)
        self._covered_busy += sign * len(blocked.streams) * blocked.is_busy

    def _room(self) -> int:
        """Return how many more reads may begin, beyond those that full ones would need."""
        begun = len(self._covers) + len(self._broken)
        return self._spare + self._covered // self._together - begun

    def _begin(self, streams: Sequence[StreamRead], longest: int, is_busy: bool) -> None:
        free = self._free.get(nodes_of(self._url).place(streams[0].key))
        connection = free.pop() if free else self._connection()
        count = min(ENTRIES_PER_STREAM, *(one.input.count for one in streams))
        # The last one ends soon, so that feeds that wait for room are covered with its own.
        block = longest if self._room() > 1 else min(longest, SHORT_WAIT_MS)
        cursors = [(one.key, one.cursor) for one in streams]
        sent = connection.send(
            *commands.read_after(cursors, count, block),
            limit=MAX_REPLY_BYTES,
            most_cuts=most_cuts(count),
        )
        until = time.monotonic() + block / 1000 + TIMEOUT
        blocked = _BlockedRead(connection, sent, list(streams), count, until, is_busy)
        self._count(blocked, 1)
        descriptor = connection.descriptor(sent)
        if descriptor is None:
            self._broken.append(blocked)
        else:
            self._covers[descriptor] = blocked

    def _connection(self) -> Connection:
        # No retries: if a read fails, the commands of the feeds wait for Redis.
        timeout = TIMEOUT + QUIET_WAIT_FACTOR * self._block_ms / 1000
        return Connection(self._url, self._reads.stop, 0.0, timeout, self._fail_fast_for)

    def _finish(
        self, blocked: _BlockedRead, arrived: list[Arrival], quiet: list[StreamRead]
    ) -> None:
        """Add what a read brought to `arrived`, and its other streams to `quiet`."""
        at = nodes_of(self._url).place(blocked.streams[0].key)
        self._free.setdefault(at, []).append(blocked.connection)
        try:
            reply = blocked.connection.receive(blocked.sent)
        except (Unavailable, Stopped):
            self._reads.note_failure(blocked.sent.url)
            quiet += blocked.streams
            return
        except WorkerError:
            # One of the keys is no stream, or has large entries: a read of it alone fails.
            arrived += [Arrival(one, [], True) for one in blocked.streams]
            return
        if not reply:
            quiet += blocked.streams
            return
        found = {bytes(key).decode(): entries for key, entries in reply}
        now = time.monotonic()
        for one in blocked.streams:
            entries = found.get(one.key)
            if entries is None:
                quiet.append(one)
                continue
            self._busy[one.key] = now
            arrived.append(Arrival(one, entries, len(entries) >= blocked.count))
