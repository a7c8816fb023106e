"""Ask each node of a Redis Cluster at intervals whether feeds on it have input, all in one go.

A command on a cluster has keys of one slot, which here is that of one feed. So a read that waits
would take a connection for each feed. Reads that do not wait can be sent together: a node gets one
packet with a read for each of its feeds, and answers with one packet, which says of most of them
that there is nothing. What is sent is put together once, and kept until a feed comes or goes.
"""

import time
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Any

import hiredis
import redis
from hiredis import pack_command

from workers.broker.client import ReplyTooLarge, client
from workers.broker.nodes import NodeHealth, nodes_of
from workers.runner.shared_reader import COUNT, LIMIT, Arrival, Wanted

EACH = 0.0002
"""Seconds between two questions to all nodes, for each feed: the feeds together cost the same."""

SHORTEST, LONGEST = 0.05, 1.0
"""Bounds of that; an entry waits so long at most, and half of it on average."""

REPLY = 2.5
"""Seconds without a reply after which the connection to a node counts as dead."""

_CONNECT = 1.0
_NOTHING = b"*-1\r\n"
_BUFFER = 1 << 16


@dataclass(slots=True, eq=False)
class _Node:
    """The feeds of one node.

    Attributes
    ----------
    url : str
    wanted : dict of str to (Wanted, bytes)
        By key, with the command that reads it.
    packet : bytes
        All commands; empty where feeds have come or gone since.
    asked : list of Wanted
        For which a reply is on its way, in order.
    sent_at : float
        When they were sent, by `time.monotonic`.
    """

    url: str
    wanted: dict[str, tuple[Wanted, bytes]] = field(default_factory=dict)
    packet: bytes = b""
    asked: list[Wanted] = field(default_factory=list)
    sent_at: float = 0.0
    received: int = 0
    connected: Any = None
    reader: Any = None

    def send(self) -> None:
        """Ask for all of them.

        Raises
        ------
        redis.RedisError
        """
        if self.connected is None:
            self.connected = client(self.url, REPLY, _CONNECT)
            self.reader = hiredis.Reader()
        if not self.packet:
            self.packet = b"".join(command for _, command in self.wanted.values())
        self.asked = [wanted for wanted, _ in self.wanted.values()]
        self.sent_at, self.received = time.monotonic(), 0
        self.connected.connection.send_packed_command([self.packet])

    def replies(self) -> Iterator[tuple[Wanted, Any]]:
        """Yield what has arrived: each reply that is not empty, and whose it is.

        Raises
        ------
        redis.RedisError
            If the connection broke.
        ReplyTooLarge
            If more than `LIMIT` bytes came.
        """
        data = self._arrived()
        self.received += len(data)
        if self.received == len(data) and data == _NOTHING * len(self.asked):
            self.asked = []
            return
        if self.received > LIMIT:
            raise ReplyTooLarge("a read of many feeds has more bytes than are taken at once")
        self.reader.feed(data)
        place = 0
        try:
            while place < len(self.asked) and (reply := self.reader.gets()) is not False:
                place += 1
                if reply is not None:
                    yield self.asked[place - 1], reply
        finally:
            del self.asked[:place]

    def _arrived(self) -> bytes:
        sock = self.connected.connection._sock
        try:
            data: bytes = sock.recv(_BUFFER)
            while data and getattr(sock, "pending", int)():  # TLS keeps some of what it read
                data += sock.recv(_BUFFER)
        except OSError as error:
            raise redis.ConnectionError(str(error)) from None
        if not data:
            raise redis.ConnectionError("the connection was closed")
        return data

    @property
    def descriptor(self) -> int | None:
        """What can be read once a reply arrives; None where none is on its way."""
        if not self.asked or self.connected is None:
            return None
        sock = self.connected.connection._sock
        return None if sock is None else int(sock.fileno())

    def close(self) -> None:
        """Give up the connection."""
        if self.connected is not None:
            self.connected.close()
            self.connected.connection_pool.disconnect()
        self.connected, self.asked = None, []


def interval(feeds: int) -> float:
    """Return the seconds between two questions to all nodes about so many feeds.

    Examples
    --------
    >>> interval(10), interval(1000), interval(100_000)
    (0.05, 0.2, 1.0)
    """
    return min(LONGEST, max(SHORTEST, EACH * feeds))


class NodePolls:
    """Feeds whose nodes are asked at intervals.

    Parameters
    ----------
    url : str
        Of the cluster.
    haste : float
        Seconds for which a node that did not answer is not asked.
    """

    def __init__(self, url: str, haste: float) -> None:
        self._url, self._haste = url, haste
        self._nodes: dict[str, _Node] = {}
        self._due = 0.0

    def __len__(self) -> int:
        return sum(len(node.wanted) for node in self._nodes.values())

    def add(self, wanted: Wanted) -> None:
        """Ask for the input of a feed from now on."""
        at = nodes_of(self._url).place(wanted.key) or ""
        node = self._nodes.setdefault(at, _Node(at))
        count = min(COUNT, wanted.input.count)
        command = ("XREAD", "COUNT", count, "STREAMS", wanted.key, wanted.cursor)
        packed = pack_command(command)  # type: ignore[arg-type]  # its type hint says a tuple of one
        node.wanted[wanted.key], node.packet = (wanted, packed), b""

    @property
    def descriptors(self) -> list[int]:
        """What can be read once replies arrive."""
        found = (node.descriptor for node in self._nodes.values())
        return [descriptor for descriptor in found if descriptor is not None]

    def patience(self) -> float:
        """Return the seconds until nodes are to be asked again."""
        return max(0.0, self._due - time.monotonic()) if len(self) else float("inf")

    def turn(self, readable: Container[int]) -> tuple[list[Arrival], dict[str, list[Wanted]]]:
        """Read what has arrived, and ask again where that is due.

        Returns
        -------
        arrived : list of Arrival
            These feeds are asked for no more.
        broken : dict of str to list of Wanted
            Likewise, by the URL of the node: its connection failed.
        """
        arrived: list[Arrival] = []
        broken: dict[str, list[Wanted]] = {}
        now = time.monotonic()
        is_due = now >= self._due
        if is_due:
            self._due = now + interval(len(self))
        for node in self._nodes.values():
            try:
                if node.descriptor in readable:
                    arrived += [_arrival(*each) for each in node.replies()]
                if node.asked and now - node.sent_at > REPLY:
                    raise redis.TimeoutError("no reply")
                if is_due and node.wanted and not node.asked:
                    self._ask(node)
            except ReplyTooLarge:  # read alone, fewer entries are asked for
                arrived += [Arrival(wanted, [], True) for wanted, _ in node.wanted.values()]
                node.close()
            except redis.RedisError:
                broken[node.url] = [wanted for wanted, _ in node.wanted.values()]
                self._break(node)
        for arrival in arrived:
            self._drop(arrival.wanted)
        return arrived, broken

    def close(self) -> None:
        """Give up the connections."""
        for node in self._nodes.values():
            node.close()

    def _ask(self, node: _Node) -> None:
        nodes = nodes_of(self._url)
        if not node.url or nodes.health(node.url, self._haste) is NodeHealth.SILENT:
            raise redis.ConnectionError("it did not answer a moment ago")
        node.send()

    def _break(self, node: _Node) -> None:
        is_new = node.connected is not None
        node.close()
        node.wanted, node.packet = {}, b""
        nodes_of(self._url).failed(node.url, NodeHealth.SILENT if is_new else NodeHealth.GOOD)

    def _drop(self, wanted: Wanted) -> None:
        for node in self._nodes.values():
            if node.wanted.get(wanted.key, (None,))[0] is wanted:
                del node.wanted[wanted.key]
                node.packet = b""


def _arrival(wanted: Wanted, reply: Any) -> Arrival:
    """Return what a reply brings; where it is an error, the stream is to be read alone."""
    if isinstance(reply, hiredis.ReplyError):
        return Arrival(wanted, [], True)
    entries = reply[0][1]
    return Arrival(wanted, entries, len(entries) >= min(COUNT, wanted.input.count))
