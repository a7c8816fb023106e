"""Fetch the snapshots of feeds that are about to be taken over, in another thread.

Most of a start is reading and hashing snapshots of a megabyte and more, and restoring predictors
from them. Reading and hashing release Python's lock, so a second processor does them while this one
restores. What is fetched is named by its hash: if the feed has another snapshot by the time it is
taken over, or anything went wrong here, it is read in the usual way, which says what is wrong.
"""

import math
import socket
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import redis

from workers.broker.client import TIMEOUT, client
from workers.broker.nodes import nodes_of
from workers.errors import WorkerError
from workers.feed.keys import FeedKeys
from workers.feed.state import Pointer
from workers.session import snapshots
from workers.session.snapshots import LoadedSnapshot

LARGEST = 1 << 26
"""Bytes of a snapshot that is fetched ahead; a larger one is read once it is needed."""

AWAY = 5.0
"""Seconds for which a server that did not answer is not asked: other feeds would wait for it."""

_LINE = 1 << 12  # more than any reply has in front of its bytes
_END = b"\r\n"


class Fetched(NamedTuple):
    """A snapshot that was read and passed its checks.

    Attributes
    ----------
    pointer : Pointer
    config_hash : str
        Of the feed, as it was stored.
    snapshot : LoadedSnapshot
    """

    pointer: Pointer
    config_hash: str
    snapshot: LoadedSnapshot


class SnapshotFetcher:
    """Fetches snapshots, one after the other.

    Parameters
    ----------
    url : str
        Of Redis.
    wake : callable
        Called when one is there.
    """

    def __init__(self, url: str, wake: Callable[[], None]) -> None:
        self._url, self._wake = url, wake
        self._clients: dict[str, Any] = {}  # of redis-py, by the URL of their server
        self._failed: dict[str, float] = {}  # when a server last did not answer, by its URL
        self._is_closed = threading.Event()
        self._threads = ThreadPoolExecutor(1, "snapshots")

    def fetch(self, feed: str) -> "Future[Fetched | None]":
        """Begin to fetch the newest snapshot of a feed; the result is None where that failed."""
        found = self._threads.submit(self._fetched, feed)
        found.add_done_callback(lambda _found: self._wake())
        return found

    def close(self) -> None:
        """Fetch no more."""
        self._is_closed.set()
        for connected in list(self._clients.values()):
            sock = connected.connection._sock
            if sock is not None:
                _shut(sock)
        # Last of all, in the thread that uses them; what waits before it ends at once.
        self._threads.submit(self._disconnect)
        self._threads.shutdown(wait=False)

    def _disconnect(self) -> None:
        for connected in self._clients.values():
            connected.connection.disconnect()

    def _fetched(self, feed: str) -> Fetched | None:
        keys, at, connection = FeedKeys(feed), "", None
        try:
            at = nodes_of(self._url).url_of((), keys.state)
            connection = self._connected(at)
            stored = _reply(connection, "HMGET", keys.state, "snapshot", "config_hash")
            if stored is None or None in stored:
                return None
            pointer, config_hash = Pointer.parse(stored[0]), stored[1].decode()
            if pointer.parts > 1:
                return None
            data = _bulk(connection, pointer.keys(keys)[0])
            if data is None:
                return None
            loaded = snapshots.decode(data, pointer, feed, config_hash)
            return Fetched(pointer, config_hash, loaded)
        except (redis.ConnectionError, redis.TimeoutError, OSError):
            self._failed[at] = time.monotonic()
        except (redis.RedisError, ValueError, WorkerError):
            pass  # it is found again, and told, where the feed is taken over
        if connection is not None:
            connection.disconnect()
        return None

    def _connected(self, at: str) -> Any:
        """Return a connection to a server."""
        is_away = time.monotonic() - self._failed.get(at, -math.inf) < AWAY
        if is_away or self._is_closed.is_set():
            raise ValueError("not asked")
        if at not in self._clients:
            self._clients[at] = client(at)
        connection = self._clients[at].connection
        connection.connect()  # nothing where it is
        return connection


def _reply(connection: Any, *command: str) -> Any:
    connection.send_command(*command)
    return connection.read_response()


def _bulk(connection: Any, key: str) -> memoryview | None:
    """Return a string of Redis, read where it stays; None if there is none, or it is too large.

    The parser of redis-py copies it several times, and holds Python's lock meanwhile.

    Raises
    ------
    OSError, ValueError
        If it does not come. The connection cannot be used any more.
    """
    connection.send_command("GET", key)
    sock: socket.socket = connection._sock
    head = bytearray()
    while _END not in head:
        part = sock.recv(_LINE)
        if not part or len(head) > _LINE:
            raise ConnectionError("no reply")
        head += part
    line, _, rest = bytes(head).partition(_END)
    if not line.startswith(b"$") or line == b"$-1":
        raise ValueError("no string")
    size = int(line[1:])
    if size > LARGEST:
        raise ValueError("too large")
    held = memoryview(bytearray(size + len(_END)))
    held[: len(rest)] = rest
    _fill(sock, held[len(rest) :])
    return held[:size]


def _fill(sock: socket.socket, left: memoryview) -> None:
    """Read until a buffer is full, in one call of the system where that is possible.

    After each call a thread waits for Python's lock, milliseconds where another one computes.
    """
    # A connection over TLS takes no flags, and gives a record of it at a time.
    is_plain = type(sock) is socket.socket
    seconds = sock.gettimeout()
    if is_plain:
        sock.settimeout(None)
        whole, part = divmod(TIMEOUT if seconds is None else seconds, 1.0)
        sock.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(whole), int(part * 1e6))
        )
    try:
        while left:
            count = sock.recv_into(left, 0, socket.MSG_WAITALL if is_plain else 0)
            if not count:
                raise ConnectionError("the reply was cut")
            left = left[count:]
    finally:
        sock.settimeout(seconds)


def _shut(sock: socket.socket) -> None:
    """End a read that another thread waits in."""
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
