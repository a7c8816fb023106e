"""Blocked reads that wait for the input of many feeds at once, over a few connections.

`XREAD` over several streams returns as soon as one of them gets an entry. The next `XREAD` names
all of them again, and Redis looks at each. So one read covers at most `STREAMS_PER_READ` streams,
and busy streams are read apart from quiet ones, which stay blocked. A blocked read returns few
entries of a stream; a feed with more then reads alone.
"""

import math
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from workers.broker import commands, feed_reader
from workers.broker.client import TIMEOUT
from workers.broker.connection import Connection
from workers.broker.large_replies import max_cuts
from workers.broker.nodes import nodes_of
from workers.broker.pipeline import PendingReply
from workers.broker.streams import Entry
from workers.errors import Stopped, Unavailable, WorkerError

STREAMS_PER_READ = 64
"""Streams of one read; ending and restarting it costs Redis about 60 microseconds."""

BUSY_STREAMS_PER_READ = 8
"""Streams of one read of busy streams, which often ends: about 10 microseconds each time."""

SPARE_CONNECTIONS = 64  # connections beyond those that full reads of all streams need

QUIET_WAIT_FACTOR = 5
"""How much longer a read of quiet streams blocks: its cost is only that it ends and restarts."""

SHORT_WAIT_MS = 50  # milliseconds that the read on the last free connection blocks
ENTRIES_PER_STREAM = 16  # largest number of entries of one stream that a blocked read returns
MAX_REPLY_BYTES = 1 << 23  # after a larger reply each of its streams is read alone
BUSY_SECONDS = 5.0  # seconds after its last entry during which a stream counts as busy


class EntrySink(Protocol):
    """Takes the entries that arrive on a stream."""

    @property
    def count(self) -> int:
        """Entries that a read should request."""

    def put(self, entries: Sequence[Entry], may_be_more: bool) -> None:
        """Take the next entries; `may_be_more` without entries asks to read the stream alone."""


class StreamRead(NamedTuple):
    """A stream whose next entries a feed waits for."""

    feed: str
    key: str
    cursor: bytes  # ID after which entries are new
    input: EntrySink  # replaced when the feed starts again from its position


class Arrival(NamedTuple):
    """The entries that a read returned for a stream."""

    read: StreamRead
    entries: list[Entry]
    may_be_more: bool  # True without entries: the stream should be read alone


@dataclass(slots=True, eq=False)
class _BlockedRead:
    connection: Connection
    sent: PendingReply
    streams: list[StreamRead]
    count: int
    until: float  # time limit of the reply, by `time.monotonic`
    is_busy: bool


class SharedReader:
    """Blocked reads over all feeds of one server that wait for input.

    Parameters
    ----------
    reads : Connection
        The connection on which feeds read alone. It provides URL and stop, and also counts the
        failures of the blocked reads.
    block_ms : int, optional
        Milliseconds that a read of busy streams blocks; default as for `FeedReader`.
    streams_per_read, spare : int
        Streams in one read; connections beyond those that full reads need.
    fail_fast_for : float
        For new connections; see `Connection`.
    """

    def __init__(
        self,
        reads: Connection,
        block_ms: int | None = None,
        streams_per_read: int = STREAMS_PER_READ,
        spare: int = SPARE_CONNECTIONS,
        fail_fast_for: float = 0.0,
    ) -> None:
        self._url, self._reads = reads.url, reads
        self._block_ms = feed_reader.BLOCK_MS if block_ms is None else block_ms
        self._fail_fast_for = fail_fast_for
        self._per_read, self._spare = streams_per_read, spare
        self._reads_by_descriptor: dict[int, _BlockedRead] = {}  # by their descriptors
        self._unsent: list[_BlockedRead] = []  # they could not be sent
        self._covered = self._covered_busy = 0  # numbers of streams
        self._idle_connections: dict[str | None, list[Connection]] = {}  # by node
        self._last_entry: dict[str, float] = {}  # when a stream last got an entry, by its key

    @property
    def descriptors(self) -> Collection[int]:
        """Descriptors that become readable when entries arrive or a connection breaks."""
        return self._reads_by_descriptor.keys()

    @property
    def has_room(self) -> bool:
        """Whether another read may start; if not, one ends within `SHORT_WAIT_MS`."""
        return self._room() > 0

    @property
    def seconds_left(self) -> float:
        """Seconds after which `arrivals` must be called, even if no descriptor is readable."""
        return math.inf

    def cover(self, streams: Iterable[StreamRead]) -> None:
        """Start reads for streams that no read covers; call it only if `has_room`."""
        now = time.monotonic()
        busy: list[StreamRead] = []
        quiet: list[StreamRead] = []
        for one in streams:
            (busy if self._is_busy(one, now) else quiet).append(one)
        if busy and quiet and self._room() < 2:
            busy, quiet = busy + quiet, []
        for first in range(0, len(busy), per_read := self._busy_per_read(len(busy))):
            self._start_read(busy[first : first + per_read], self._block_ms, is_busy=True)
        for first in range(0, len(quiet), self._per_read):
            part = quiet[first : first + self._per_read]
            self._start_read(part, QUIET_WAIT_FACTOR * self._block_ms, is_busy=False)

    def _is_busy(self, one: StreamRead, now: float) -> bool:
        return now - self._last_entry.get(one.key, -BUSY_SECONDS) < BUSY_SECONDS

    def _busy_per_read(self, more: int) -> int:
        """Return how many busy streams one read should cover once `more` are added.

        Few, since each entry ends the read of all; but so many that the reads of busy streams take
        at most half of the spare connections.
        """
        busy = self._covered_busy + more
        return min(self._per_read, max(BUSY_STREAMS_PER_READ, -(-2 * busy // max(self._spare, 1))))

    def arrivals(self, readable: Iterable[int] = ()) -> tuple[list[Arrival], list[StreamRead]]:
        """Return the arrivals of the reads that ended, and their streams without entries.

        No read covers these streams any longer.
        """
        now, reads = time.monotonic(), self._reads_by_descriptor
        timed_out = [descriptor for descriptor, blocked in reads.items() if now > blocked.until]
        for descriptor in timed_out:
            reads[descriptor].connection.close()
        ended, self._unsent = self._unsent, []
        ended += [reads.pop(at) for at in dict.fromkeys((*readable, *timed_out)) if at in reads]
        arrived: list[Arrival] = []
        quiet: list[StreamRead] = []
        for blocked in ended:
            self._count(blocked, -1)
            self._receive(blocked, arrived, quiet)
        return arrived, quiet

    def close(self) -> None:
        """Close the connections."""
        covers = (*self._reads_by_descriptor.values(), *self._unsent)
        free = (connection for some in self._idle_connections.values() for connection in some)
        for connection in (*free, *(blocked.connection for blocked in covers)):
            connection.close()
        self._reads_by_descriptor, self._unsent, self._idle_connections = {}, [], {}
        self._covered = self._covered_busy = 0

    def _count(self, blocked: _BlockedRead, sign: int) -> None:
        self._covered += sign * len(blocked.streams)
        self._covered_busy += sign * len(blocked.streams) * blocked.is_busy

    def _room(self) -> int:
        started = len(self._reads_by_descriptor) + len(self._unsent)
        return self._spare + self._covered // self._per_read - started

    def _start_read(self, streams: Sequence[StreamRead], max_block_ms: int, is_busy: bool) -> None:
        free = self._idle_connections.get(nodes_of(self._url).node_of_key(streams[0].key))
        connection = free.pop() if free else self._connection()
        count = min(ENTRIES_PER_STREAM, *(one.input.count for one in streams))
        # The last possible read ends soon: its streams are then covered together with the others.
        block = max_block_ms if self._room() > 1 else min(max_block_ms, SHORT_WAIT_MS)
        cursors = [(one.key, one.cursor) for one in streams]
        sent = connection.send(
            *commands.read_after(cursors, count, block),
            limit=MAX_REPLY_BYTES,
            max_cuts=max_cuts(count),
        )
        until = time.monotonic() + block / 1000 + TIMEOUT
        blocked = _BlockedRead(connection, sent, list(streams), count, until, is_busy)
        self._count(blocked, 1)
        descriptor = connection.descriptor(sent)
        if descriptor is None:
            self._unsent.append(blocked)
        else:
            self._reads_by_descriptor[descriptor] = blocked

    def _connection(self) -> Connection:
        # No retries: after a failed read, the feeds' own commands wait for Redis.
        timeout = TIMEOUT + QUIET_WAIT_FACTOR * self._block_ms / 1000
        return Connection(self._url, self._reads.stop, 0.0, timeout, self._fail_fast_for)

    def _receive(
        self, blocked: _BlockedRead, arrived: list[Arrival], quiet: list[StreamRead]
    ) -> None:
        """Add the arrivals of a read to `arrived`, and its other streams to `quiet`."""
        at = nodes_of(self._url).node_of_key(blocked.streams[0].key)
        self._idle_connections.setdefault(at, []).append(blocked.connection)
        try:
            reply = blocked.connection.receive(blocked.sent)
        except (Unavailable, Stopped):
            self._reads.note_failure(blocked.sent.url)
            quiet += blocked.streams
            return
        except WorkerError:
            # A key is no stream, or has large entries: the read of that stream alone fails again.
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
            self._last_entry[one.key] = now
            arrived.append(Arrival(one, entries, len(entries) >= blocked.count))
