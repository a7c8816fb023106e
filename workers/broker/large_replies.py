"""Replies of bounded size: the number of entries that a read requests, large values, snapshots.

Redis does not send a reply that exceeds its `client-output-buffer-limit`, but closes the connection
within it. A read of several entries is repeated with fewer, and a string is read in pieces. A
single entry has no pieces: the reader stops with an error that names it. The scripts here do not
write, so they have no failpoints.
"""

import math
import socket
import struct
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any, NamedTuple

import redis

from workers.broker.client import TIMEOUT, client
from workers.broker.commands import Script
from workers.broker.connection import Connection
from workers.broker.nodes import nodes_of
from workers.broker.streams import Entry
from workers.errors import ReadCut, ReadTooLarge, ReplyNotGiven, Stopped, Unavailable, WorkerError
from workers.feed.keys import FeedKeys
from workers.feed.state import Pointer
from workers.log import Logger

ENTRY_SIZE = Script.load("entry_size")
_PIECE = Script.load("piece")

_MAX_CUTS_OF_ENTRY = 5
"""Cut replies to a read of one entry, before it is asked why. Some may be restarts of Redis; the
pauses between them grow, so that they take about a second."""

_MAX_CUTS_OF_PIECE = 2  # one may be a restart of Redis

_LARGE_BYTES = 1 << 20
"""Bytes from which an entry is the likely reason where the limit cannot be looked up."""

_OVERHEAD_BYTES = 1 << 15
"""Bytes that Redis may count in addition to a quarter more than the entry has (its allocator)."""

_FIRST_PIECE_BYTES, _MIN_PIECE_BYTES = 1 << 20, 1 << 10

log = Logger("online_svm.redis")


def most_cuts(count: int) -> int:
    """Return how many cut replies end a read of `count` entries; fewer are read after that."""
    return _MAX_CUTS_OF_ENTRY if count == 1 else 1


def check_entry_is_given(connection: Connection, stream: str, after: bytes) -> None:
    """Raise ReplyNotGiven if the first entry after an ID, whose reply was cut, is too large.

    If the entry is smaller than the limit, the network broke the connection, and another attempt is
    worth it. If the limit cannot be looked up, an entry of 1 MiB counts as too large.
    """
    found = connection.evaluate(ENTRY_SIZE, [stream], [after])
    if not found:
        return
    entry, size = found[0].decode(), int(found[1])
    limit = _output_limit(connection, stream)
    is_given = size < _LARGE_BYTES if limit is None else size + size // 4 + _OVERHEAD_BYTES < limit
    if is_given:
        return
    named = "may be too small" if limit is None else f"is {limit:.0f} bytes for normal clients"
    raise ReplyNotGiven(
        f"{stream}: Redis closes the connection whenever it is asked for entry {entry} of {size} "
        f"bytes; its client-output-buffer-limit {named}. Raise it (CONFIG SET "
        f'client-output-buffer-limit "normal 0 0 0"), or delete the entry: XDEL {stream} {entry} '
        "(from Redis 7 on the worker then names the command that accepts the loss)"
    )


def value_of(connection: Connection, key: str) -> bytes | None:
    """Return a string, if it exists, in pieces if Redis does not send it whole.

    Raises ReplyNotGiven if Redis does not send small pieces either.
    """
    try:
        whole: bytes | None = connection.call("GET", key, most_cuts=_MAX_CUTS_OF_PIECE)
    except ReadCut as error:
        log.warning("a read failed; reading the value in pieces", key=key, reason=str(error))
    else:
        return whole
    return _in_pieces(connection, key)


def _in_pieces(connection: Connection, key: str) -> bytes | None:
    held, size, whole = bytearray(), _FIRST_PIECE_BYTES, 1
    while len(held) < whole:
        first = len(held) + 1
        try:
            reply = connection.call(
                "EVAL", _PIECE.text, 1, key, first, len(held) + size, most_cuts=_MAX_CUTS_OF_PIECE
            )
        except ReadCut as error:
            if size <= _MIN_PIECE_BYTES:
                raise ReplyNotGiven(
                    f"{key}: Redis closes the connection even when it is asked for {size} bytes of "
                    'it: raise its limit (CONFIG SET client-output-buffer-limit "normal 0 0 0")'
                ) from None
            size //= 2
            log.warning("a read failed; reading smaller pieces", bytes=size, reason=str(error))
            continue
        if not reply:
            return None
        whole, piece = reply
        held += piece
    return bytes(held)


def _output_limit(connection: Connection, stream: str) -> float | None:
    """Return the bytes of a reply to a normal client, at most; None if this user may not ask."""
    try:
        _, text = connection.call("CONFIG", "GET", "client-output-buffer-limit", key=stream)
    except (Stopped, Unavailable):
        raise
    except WorkerError:
        return None
    hard, soft = text.decode().partition("normal")[2].split()[:2]
    return min((int(limit) for limit in (hard, soft) if int(limit) > 0), default=math.inf)


_MIN_REPLY_BYTES = 1 << 20
"""Bytes that any reply may have: for the smallest entries the protocol takes more than the data."""

_FIRST_COUNT = 16
"""Entries to request at first: nothing is known about their sizes yet, and Redis prepares the whole
reply in its memory before it sends any of it."""

_FULL_READS_TO_GROW = 256  # full reads after a cut one, before more entries are requested again


class BatchSize:
    """Entries to read and to answer at once: at most `entries`, about `size` bytes.

    Redis returns entries by number, so the number is adapted to their sizes: it begins small, is
    halved if a read returns more bytes than allowed, and doubled if it returns less than a quarter.
    Entries beyond the bound are answered in the next batch, which changes no answer. `count` is the
    number to request now.

    Examples
    --------
    >>> size = BatchSize(entries=4, size=10)
    >>> size.first_of([(b"1-0", [b"x", b"[1,2]"]), (b"2-0", [b"x", b"[3,4]"])])
    1
    >>> size.count
    1
    """

    def __init__(self, entries: int, size: int) -> None:
        self._most = self._entries = entries
        self._size = size
        self._full = 0  # full reads in a row within the bound of bytes
        self.begin_small()

    @property
    def reply_limit(self) -> int | None:
        """Bytes beyond which a reply is dropped. A read of a single entry has no limit."""
        return None if self.count == 1 else max(2 * self._size, _MIN_REPLY_BYTES)

    def begin_small(self) -> None:
        """Request few entries next; after each full read twice as many."""
        self.count = min(_FIRST_COUNT, self._most)

    def halve(self, reason: ReadTooLarge) -> None:
        """Request half as many from now on, at least one, after a read that failed.

        After a cut reply the number grows only after many reads: each attempt costs a connection.
        """
        self.count = max(1, self.count // 2)
        if isinstance(reason, ReadCut):
            self._most, self._full = self.count, 0
            self.begin_small()
        log.warning(
            "a read failed; asking for fewer entries at once",
            entries=self.count,
            reason=str(reason),
        )

    def first_of(self, entries: Sequence[Entry]) -> int:
        """Return how many of the first entries form a batch: at least one."""
        sizes = [sum(map(len, fields)) for _, fields in entries]
        total = sum(sizes)
        if total > self._size:
            self.count = max(1, min(self.count, len(entries)) // 2)
            return max(1, sum(upto <= self._size for upto in accumulate(sizes)))
        if 4 * total < self._size and len(entries) == self.count:
            self._full += 1
            if self._full >= _FULL_READS_TO_GROW:
                self._most, self._full = min(self._entries, 2 * self._most), 0
            self.count = min(self._most, 2 * self.count)
        return len(entries)


MAX_SNAPSHOT_BYTES = 1 << 26
"""Larger snapshots are read when they are needed."""

SILENT_SECONDS = 5.0
"""Seconds for which a server that did not answer is not asked: other feeds would wait for it."""

_MAX_HEAD_BYTES = 1 << 12  # more than any reply has before its bytes
_LINE_END = b"\r\n"


class StoredSnapshot(NamedTuple):
    """The bytes of a snapshot, with its pointer and configuration hash from the state."""

    pointer: Pointer
    config_hash: str
    data: memoryview


class SnapshotReader:
    """Reads snapshots for another thread, over connections of its own, without copies or retries.

    One thread uses it, another may close. A failure is no error: the feed then reads its snapshot
    itself, and reports the failure.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._clients: dict[str, Any] = {}  # of redis-py, by the URL of their server
        self._failed: dict[str, float] = {}  # when a server last did not answer, by its URL
        self._is_closed = threading.Event()

    def newest(self, keys: FeedKeys) -> StoredSnapshot | None:
        """Return the newest snapshot of a feed; None if that fails."""
        at, connection = "", None
        try:
            at = nodes_of(self._url).url_of((), keys.state)
            connection = self._connected(at)
            connection.send_command("HMGET", keys.state, "snapshot", "config_hash")
            stored = connection.read_response()
            if stored is None or None in stored:
                return None
            pointer = Pointer.parse(stored[0])
            if pointer.parts > 1:
                return None
            data = _string(connection, pointer.keys(keys)[0])
            return StoredSnapshot(pointer, stored[1].decode(), data)
        except (redis.ConnectionError, redis.TimeoutError, OSError):
            self._failed[at] = time.monotonic()
        except (redis.RedisError, ValueError, WorkerError):
            pass  # the feed finds it again, and reports it
        if connection is not None:
            connection.disconnect()
        return None

    def close(self) -> None:
        """End a read that another thread waits in; later ones fail at once."""
        self._is_closed.set()
        for connected in list(self._clients.values()):
            sock = connected.connection._sock
            if sock is not None:
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def disconnect(self) -> None:
        """Close the connections, in the thread that uses them."""
        for connected in self._clients.values():
            connected.connection.disconnect()

    def _connected(self, at: str) -> Any:
        is_silent = time.monotonic() - self._failed.get(at, -math.inf) < SILENT_SECONDS
        if is_silent or self._is_closed.is_set():
            raise ValueError("not asked")
        if at not in self._clients:
            self._clients[at] = client(at)
        connection = self._clients[at].connection
        connection.connect()  # does nothing if it is connected
        return connection


def _string(connection: Any, key: str) -> memoryview:
    """Return a string of Redis, received in place; redis-py copies it under Python's lock."""
    connection.send_command("GET", key)
    sock: socket.socket = connection._sock
    head = bytearray()
    while _LINE_END not in head:
        part = sock.recv(_MAX_HEAD_BYTES)
        if not part or len(head) > _MAX_HEAD_BYTES:
            raise ConnectionError("no reply")
        head += part
    line, _, rest = bytes(head).partition(_LINE_END)
    if not line.startswith(b"$") or line == b"$-1":
        raise ValueError("no string")
    size = int(line[1:])
    if size > MAX_SNAPSHOT_BYTES:
        raise ValueError("too large")
    held = memoryview(bytearray(size + len(_LINE_END)))
    held[: len(rest)] = rest
    _fill(sock, held[len(rest) :])
    return held[:size]


def _fill(sock: socket.socket, left: memoryview) -> None:
    """Read until a buffer is full, in one system call if possible.

    After each call a thread waits for Python's lock: milliseconds if another one computes.
    """
    # A connection over TLS takes no flags, and returns one record at a time.
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
