"""Wait for the input of many feeds on a Redis Cluster: blocked reads, and polls at intervals.

On a cluster, all keys of a command must be in one slot, and each feed has a slot of its own. So a
blocked read covers one feed and occupies one connection. Busy feeds get such reads, up to
`BLOCKED_READS`, so that their entries arrive at once. The other feeds are polled: one packet to a
node contains a read for each of its feeds. A packet is reused until a feed is added or removed.
"""

import time
from collections.abc import Collection, Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import hiredis
import redis
from hiredis import pack_command
from typing_extensions import override

from workers.broker import commands
from workers.broker.client import ReplyTooLarge, client
from workers.broker.connection import Connection
from workers.broker.nodes import NodeHealth, nodes_of
from workers.broker.shared_reader import (
    ENTRIES_PER_STREAM,
    MAX_REPLY_BYTES,
    QUIET_WAIT_FACTOR,
    Arrival,
    SharedReader,
    StreamRead,
)

BLOCKED_READS = 64  # connections for blocked reads; quiet feeds get at most half of them

POLL_SECONDS_PER_FEED = 0.0002
"""Seconds that each feed adds to the poll interval, so that the cost of polls stays constant."""

MIN_POLL_SECONDS, MAX_POLL_SECONDS = 0.05, 1.0
"""Bounds of the poll interval. On average an entry waits for half an interval."""

POLL_TIMEOUT = 2.5  # seconds without a reply after which the connection to a node counts as dead

_CONNECT_TIMEOUT = 1.0
_NO_ENTRIES = b"*-1\r\n"
_RECEIVE_BYTES = 1 << 16


class NodeReader(SharedReader):
    """A `SharedReader` for a cluster, with at most `blocked` connections for blocked reads."""

    def __init__(
        self,
        reads: Connection,
        block_ms: int | None = None,
        fail_fast_for: float = 0.0,
        blocked: int = BLOCKED_READS,
    ) -> None:
        super().__init__(reads, block_ms, streams_per_read=1, fail_fast_for=fail_fast_for)
        self._max_blocked = blocked
        self._polls = NodePolls(reads.url, fail_fast_for)

    @property
    @override
    def descriptors(self) -> Collection[int]:
        return [*super().descriptors, *self._polls.descriptors]

    @property
    @override
    def has_room(self) -> bool:
        return True

    @property
    @override
    def seconds_left(self) -> float:
        return self._polls.seconds_left()

    @override
    def cover(self, streams: Iterable[StreamRead]) -> None:
        now, left = (
            time.monotonic(),
            self._max_blocked - len(self._reads_by_descriptor) - len(self._unsent),
        )
        for one in streams:
            is_busy = self._is_busy(one, now)
            if left > (0 if is_busy else self._max_blocked // 2):
                block_ms = self._block_ms if is_busy else QUIET_WAIT_FACTOR * self._block_ms
                self._start_read([one], block_ms, is_busy)
                left -= 1
            else:
                self._polls.add(one)

    @override
    def arrivals(self, readable: Iterable[int] = ()) -> tuple[list[Arrival], list[StreamRead]]:
        ready = set(readable)
        arrived, quiet = super().arrivals(ready)
        came, broken = self._polls.poll(ready)
        now = time.monotonic()
        self._last_entry.update((arrival.read.key, now) for arrival in came)
        for url, streams in broken.items():
            self._reads.note_failure(url)
            quiet += streams
        return arrived + came, quiet

    @override
    def close(self) -> None:
        super().close()
        self._polls.close()


@dataclass(slots=True, eq=False)
class _Node:
    """The polled feeds of one node, and the connection to it."""

    url: str
    streams: dict[str, tuple[StreamRead, bytes]] = field(default_factory=dict)  # with commands
    packet: bytes = b""  # all commands; emptied when a feed is added or removed
    awaiting: list[StreamRead] = field(default_factory=list)  # polled, without a reply yet
    sent_at: float = 0.0  # by `time.monotonic`
    received: int = 0  # bytes since then
    connected: Any = None
    reader: Any = None

    def send(self) -> None:
        """Poll all feeds of the node. Raises redis.RedisError."""
        if self.connected is None:
            self.connected = client(self.url, POLL_TIMEOUT, _CONNECT_TIMEOUT)
            self.reader = hiredis.Reader()
        if not self.packet:
            self.packet = b"".join(command for _, command in self.streams.values())
        self.awaiting = [one for one, _ in self.streams.values()]
        self.sent_at, self.received = time.monotonic(), 0
        self.connected.connection.send_packed_command([self.packet])

    def replies(self) -> Iterator[tuple[StreamRead, Any]]:
        """Yield each non-empty reply that has arrived, with its stream."""
        data = self._receive()
        self.received += len(data)
        if self.received == len(data) and data == _NO_ENTRIES * len(self.awaiting):
            self.awaiting = []
            return
        if self.received > MAX_REPLY_BYTES:
            raise ReplyTooLarge("a read of many feeds has more bytes than are taken at once")
        self.reader.feed(data)
        place = 0
        try:
            while place < len(self.awaiting) and (reply := self.reader.gets()) is not False:
                place += 1
                if reply is not None:
                    yield self.awaiting[place - 1], reply
        finally:
            del self.awaiting[:place]

    def _receive(self) -> bytes:
        sock = self.connected.connection._sock
        try:
            data: bytes = sock.recv(_RECEIVE_BYTES)
            while data and getattr(sock, "pending", int)():  # TLS may have buffered more
                data += sock.recv(_RECEIVE_BYTES)
        except OSError as error:
            raise redis.ConnectionError(str(error)) from None
        if not data:
            raise redis.ConnectionError("the connection was closed")
        return data

    @property
    def descriptor(self) -> int | None:
        """The descriptor on which replies arrive; None unless replies are awaited."""
        if not self.awaiting or self.connected is None:
            return None
        sock = self.connected.connection._sock
        return None if sock is None else int(sock.fileno())

    def close(self) -> None:
        """Close the connection."""
        if self.connected is not None:
            self.connected.close()
            self.connected.connection_pool.disconnect()
        self.connected, self.awaiting = None, []


def poll_interval(feeds: int) -> float:
    """Return the seconds between two polls of so many feeds."""
    return min(MAX_POLL_SECONDS, max(MIN_POLL_SECONDS, POLL_SECONDS_PER_FEED * feeds))


class NodePolls:
    """Polls feeds. A node that failed is not polled again for `fail_fast_for` seconds."""

    def __init__(self, url: str, fail_fast_for: float) -> None:
        self._url, self._fail_fast_for = url, fail_fast_for
        self._nodes: dict[str, _Node] = {}
        self._due = 0.0

    def __len__(self) -> int:
        return sum(len(node.streams) for node in self._nodes.values())

    def add(self, one: StreamRead) -> None:
        """Poll the input of a feed from now on."""
        at = nodes_of(self._url).node_of_key(one.key) or ""
        node = self._nodes.setdefault(at, _Node(at))
        count = min(ENTRIES_PER_STREAM, one.input.count)
        packed = pack_command(commands.read_after([(one.key, one.cursor)], count))  # type: ignore[arg-type]  # its type hint is a tuple of one
        node.streams[one.key], node.packet = (one, packed), b""

    @property
    def descriptors(self) -> list[int]:
        """Descriptors on which replies arrive."""
        found = (node.descriptor for node in self._nodes.values())
        return [descriptor for descriptor in found if descriptor is not None]

    def seconds_left(self) -> float:
        """Return the seconds until the next poll."""
        return max(0.0, self._due - time.monotonic()) if len(self) else float("inf")

    def poll(self, readable: Container[int]) -> tuple[list[Arrival], dict[str, list[StreamRead]]]:
        """Read the replies that arrived; poll again if it is time.

        Return the arrivals, and the streams of failed nodes by URL; neither are polled any longer.
        """
        arrived: list[Arrival] = []
        broken: dict[str, list[StreamRead]] = {}
        now = time.monotonic()
        is_due = now >= self._due
        if is_due:
            self._due = now + poll_interval(len(self))
        for node in self._nodes.values():
            try:
                if node.descriptor in readable:
                    arrived += self._taken([_arrival(*each) for each in node.replies()])
                if node.awaiting and now - node.sent_at > POLL_TIMEOUT:
                    raise redis.TimeoutError("no reply")
                if is_due and node.streams and not node.awaiting:
                    self._poll_node(node)
            except ReplyTooLarge:  # each feed then reads alone, with fewer entries
                alone = [Arrival(one, [], True) for one, _ in node.streams.values()]
                arrived += self._taken(alone)
                node.close()
            except redis.RedisError:
                broken[node.url] = [one for one, _ in node.streams.values()]
                self._mark_failed(node)
        return arrived, broken

    def close(self) -> None:
        """Close the connections."""
        for node in self._nodes.values():
            node.close()

    def _poll_node(self, node: _Node) -> None:
        nodes = nodes_of(self._url)
        if not node.url or nodes.health(node.url, self._fail_fast_for) is NodeHealth.SILENT:
            raise redis.ConnectionError("it did not answer a moment ago")
        node.send()

    def _mark_failed(self, node: _Node) -> None:
        is_new = node.connected is not None
        node.close()
        node.streams, node.packet = {}, b""
        nodes_of(self._url).note_failure(node.url, NodeHealth.SILENT if is_new else NodeHealth.GOOD)

    def _taken(self, arrivals: list[Arrival]) -> list[Arrival]:
        """Return the arrivals. Their streams are not in the next poll, which may be due already."""
        for one in (arrival.read for arrival in arrivals):
            for node in self._nodes.values():
                if node.streams.get(one.key, (None,))[0] is one:
                    del node.streams[one.key]
                    node.packet = b""
        return arrivals


def _arrival(one: StreamRead, reply: Any) -> Arrival:
    """Return the entries of a reply; after an error, let the feed read its stream alone."""
    if isinstance(reply, hiredis.ReplyError):
        return Arrival(one, [], True)
    entries = reply[0][1]
    return Arrival(one, entries, len(entries) >= min(ENTRIES_PER_STREAM, one.input.count))
