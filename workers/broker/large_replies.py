"""Large replies: the number of entries that a read requests, large values, snapshots.

If a reply exceeds Redis's `client-output-buffer-limit`, Redis closes the connection amid the reply.
A read of several entries is then repeated with fewer, and a string is read in pieces. A single
entry cannot be read in pieces: the reader stops with an error that names the entry. The scripts
here only read, so they have no failpoints.
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
"""Cut replies to a read of one entry, before the reason is looked up. Restarts of Redis cut replies
too; with the growing pauses, five attempts take about a second."""

_MAX_CUTS_OF_PIECE = 2  # one may be a restart of Redis
_LARGE_BYTES = 1 << 20  # bytes from which an entry counts as too large if the limit is unknown

_OVERHEAD_BYTES = 1 << 15
"""Redis counts up to 1.25 times the bytes of the entry, and these in addition (its allocator)."""

_FIRST_PIECE_BYTES, _MIN_PIECE_BYTES = 1 << 20, 1 << 10

log = Logger("online_svm.redis")


def max_cuts(count: int) -> int:
    """Return after how many cut replies a read of `count` entries gives up."""
    return _MAX_CUTS_OF_ENTRY if count == 1 else 1


def check_entry_is_deliverable(connection: Connection, stream: str, after: bytes) -> None:
    """Raise ReplyNotGiven if the first entry after an ID, whose reply was cut, is too large.

    If it is smaller than the limit, the network broke the connection: another attempt may succeed.
    If the user may not read the limit, an entry of 1 MiB counts as too large.
    """
    found = connection.evaluate(ENTRY_SIZE, [stream], [after])
    if not found:
        return
    entry, size = found[0].decode(), int(found[1])
    limit = _output_limit(connection, stream)
    is_deliverable = (
        size < _LARGE_BYTES if limit is None else size + size // 4 + _OVERHEAD_BYTES < limit
    )
    if is_deliverable:
        return
    named = "may be too small" if limit is None else f"is {limit:.0f} bytes for normal clients"
    raise ReplyNotGiven(
        f"{stream}: Redis closes the connection whenever it is asked for entry {entry} of {size} "
        f"bytes; its client-output-buffer-limit {named}. Raise it (CONFIG SET "
        f'client-output-buffer-limit "normal 0 0 0"), or delete the entry: XDEL {stream} {entry} '
        "(from Redis 7 on the worker then names the command that accepts the loss)"
    )


def read_value(connection: Connection, key: str) -> bytes | None:
    """Return a string, if it exists; read it in pieces if Redis does not send it whole.

    Raises ReplyNotGiven if Redis does not even send small pieces.
    """
    try:
        whole: bytes | None = connection.call("GET", key, max_cuts=_MAX_CUTS_OF_PIECE)
    except ReadCut as error:
        log.warning("a read failed; reading the value in pieces", key=key, reason=str(error))
    else:
        return whole
    return _read_in_pieces(connection, key)


def _read_in_pieces(connection: Connection, key: str) -> bytes | None:
    held, size, whole = bytearray(), _FIRST_PIECE_BYTES, 1
    while len(held) < whole:
        first = len(held) + 1
        try:
            reply = connection.call(
                "EVAL", _PIECE.text, 1, key, first, len(held) + size, max_cuts=_MAX_CUTS_OF_PIECE
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
    """Return the largest reply in bytes for normal clients; None if this user may not read it."""
    try:
        _, text = connection.call("CONFIG", "GET", "client-output-buffer-limit", key=stream)
    except (Stopped, Unavailable):
        raise
    except WorkerError:
        return None
    hard, soft = text.decode().partition("normal")[2].split()[:2]
    return min((int(limit) for limit in (hard, soft) if int(limit) > 0), default=math.inf)


_MIN_REPLY_BYTES = 1 << 20
"""A reply limit is not smaller: of the smallest entries, the protocol takes more than the data."""

_FIRST_COUNT = 16
"""Entries to request before their size is known: Redis holds a whole reply in memory before it
sends any of it."""

_FULL_READS_TO_GROW = 256  # full reads after a cut one, before more entries are requested again


class BatchSize:
    """The number of entries to read and answer at once: at most `entries`, about `size` bytes.

    A read requests a number of entries, so `count`, the number to request next, adapts to their
    sizes: it starts small, is halved if a read returns more than `size` bytes, and doubled if it
    returns less than a quarter. Entries beyond `size` bytes are left to the next batch, which
    changes no answer.
    """

    def __init__(self, entries: int, size: int) -> None:
        self._max_entries = self._entries = entries
        self._size = size
        self._full_reads = 0  # full reads since the last change of `_max_entries`
        self.start_small()

    @property
    def reply_limit(self) -> int | None:
        """Bytes beyond which a reply is dropped; None (no limit) for a single entry."""
        return None if self.count == 1 else max(2 * self._size, _MIN_REPLY_BYTES)

    def start_small(self) -> None:
        """Request few entries next, and twice as many after each full read."""
        self.count = min(_FIRST_COUNT, self._max_entries)

    def halve(self, reason: ReadTooLarge) -> None:
        """Request half as many entries, at least one, after a failed read.

        After a cut reply the number grows again only after many full reads, since each cut costs a
        connection.
        """
        self.count = max(1, self.count // 2)
        if isinstance(reason, ReadCut):
            self._max_entries, self._full_reads = self.count, 0
            self.start_small()
        log.warning(
            "a read failed; asking for fewer entries at once",
            entries=self.count,
            reason=str(reason),
        )

    def first_of(self, entries: Sequence[Entry]) -> int:
        """Return how many of these entries form the next batch, at least one; adapt `count`."""
        sizes = [sum(map(len, fields)) for _, fields in entries]
        total = sum(sizes)
        if total > self._size:
            self.count = max(1, min(self.count, len(entries)) // 2)
            return max(1, sum(upto <= self._size for upto in accumulate(sizes)))
        if 4 * total < self._size and len(entries) == self.count:
            self._full_reads += 1
            if self._full_reads >= _FULL_READS_TO_GROW:
                self._max_entries, self._full_reads = min(self._entries, 2 * self._max_entries), 0
            self.count = min(self._max_entries, 2 * self.count)
        return len(entries)


MAX_SNAPSHOT_BYTES = 1 << 26  # larger snapshots are not read ahead

SILENT_SECONDS = 5.0
"""Seconds for which a server that did not answer is skipped: other feeds would wait for it."""

_MAX_HEADER_BYTES = 1 << 12  # more than the header of any reply has
_LINE_END = b"\r\n"


class StoredSnapshot(NamedTuple):
    """The bytes of a snapshot, with the pointer and configuration hash in the feed's state."""

    pointer: Pointer
    config_hash: str
    data: memoryview
    chunks: tuple[bytes, ...]  # of the memory


class SnapshotReader:
    """Reads snapshots ahead, over connections of its own, without copies or retries.

    One thread uses it; another may call `close`. After a failure the feed reads its snapshot
    itself, and reports the error if it fails again.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._clients: dict[str, Any] = {}  # of redis-py, by the URL of the server
        self._failed_at: dict[str, float] = {}  # last failure of a server, by its URL
        self._is_closed = threading.Event()

    def newest(self, keys: FeedKeys) -> StoredSnapshot | None:
        """Return the newest snapshot of a feed; None if that fails."""
        url, connection = "", None
        try:
            url = nodes_of(self._url).url_of((), keys.state)
            connection = self._connected(url)
            connection.send_command("HMGET", keys.state, "snapshot", "config_hash")
            stored = connection.read_response()
            if stored is None or None in stored:
                return None
            pointer = Pointer.parse(stored[0])
            if pointer.parts > 1:
                return None
            left, found = MAX_SNAPSHOT_BYTES, list[memoryview]()
            for key in pointer.keys(keys):
                found.append(_string(connection, key, left))
                left -= len(found[-1])
            chunks = tuple(map(bytes, found[1:]))
            return StoredSnapshot(pointer, stored[1].decode(), found[0], chunks)
        except (redis.ConnectionError, redis.TimeoutError, OSError):
            self._failed_at[url] = time.monotonic()
        except (redis.RedisError, ValueError, WorkerError):
            pass  # the feed meets the same error, and reports it
        if connection is not None:
            connection.disconnect()
        return None

    def close(self) -> None:
        """Interrupt a read of the other thread; later reads fail at once."""
        self._is_closed.set()
        for connected in list(self._clients.values()):
            sock = connected.connection._sock
            if sock is not None:
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def disconnect(self) -> None:
        """Close the connections; called by the thread that reads."""
        for connected in self._clients.values():
            connected.connection.disconnect()

    def _connected(self, url: str) -> Any:
        is_silent = time.monotonic() - self._failed_at.get(url, -math.inf) < SILENT_SECONDS
        if is_silent or self._is_closed.is_set():
            raise ValueError("not asked")
        if url not in self._clients:
            self._clients[url] = client(url)
        connection = self._clients[url].connection
        connection.connect()  # does nothing if it is connected
        return connection


def _string(connection: Any, key: str, most: int) -> memoryview:
    """Return a string of Redis, received in place; redis-py would copy it holding the GIL.

    Raises ValueError if it has more than `most` bytes, or there is none.
    """
    connection.send_command("GET", key)
    sock: socket.socket = connection._sock
    header = bytearray()
    while _LINE_END not in header:
        part = sock.recv(_MAX_HEADER_BYTES)
        if not part or len(header) > _MAX_HEADER_BYTES:
            raise ConnectionError("no reply")
        header += part
    line, _, rest = bytes(header).partition(_LINE_END)
    if not line.startswith(b"$") or line == b"$-1":
        raise ValueError("no string")
    size = int(line[1:])
    if size > most:
        raise ValueError("too large")
    held = memoryview(bytearray(size + len(_LINE_END)))
    held[: len(rest)] = rest
    _fill(sock, held[len(rest) :])
    return held[:size]


def _fill(sock: socket.socket, left: memoryview) -> None:
    """Receive until a buffer is full, in one system call if possible.

    After each call the thread must take the GIL again: milliseconds while another thread computes.
    """
    # recv over TLS takes no flags, and returns one record at a time.
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
