"""Wait for the input of many feeds at once: each of a few connections blocks on some of them.

`XREAD` over several streams returns when the first of them gets an entry. The others of that read
must then be asked for again, and Redis looks at each of them. So a read covers `TOGETHER` streams
at most, and those that were busy a moment ago are covered apart from the quiet ones, which then
stay blocked. The entries that a blocked read returns are few; a feed that has more is read alone.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workers.broker.batch_size import Entry
from workers.broker.client import TIMEOUT
from workers.broker.connection import Connection
from workers.broker.pipeline import Sent
from workers.engine.read_ahead import InputReader
from workers.errors import Stopped, Unavailable, WorkerError
from workers.stop import Stop

TOGETHER = 64
"""Streams of one read: a wake-up by any of them costs Redis some 60 microseconds."""

SPARE = 8
"""Connections beyond those that all streams need: so many busy parts are covered on their own."""

QUIET = 5
"""Times as long a read of quiet streams waits: what ends it and begins it again is their cost."""

SHORT = 50
"""Milliseconds that a read waits where there is room for no other."""

COUNT = 16
"""Entries of one stream that a blocked read returns, at most."""

LIMIT = 1 << 23
"""Bytes of the reply to a blocked read; beyond them each of its streams is read alone."""

BUSY = 1.0
"""Seconds since its last entry for which a stream counts as busy."""


class Wanted(NamedTuple):
    """Input that a feed waits for.

    Attributes
    ----------
    feed, key : str
    cursor : bytes
        ID after which entries are new.
    input : InputReader
        Where they go; a feed that begins to read anew has another one.
    """

    feed: str
    key: str
    cursor: bytes
    input: InputReader


class Arrival(NamedTuple):
    """What came for a feed.

    Attributes
    ----------
    wanted : Wanted
    entries : list of Entry
    may_be_more : bool
        Whether the stream may hold more; without entries, that it should be read alone.
    """

    wanted: Wanted
    entries: list[Entry]
    may_be_more: bool


@dataclass(slots=True, eq=False)
class _Cover:
    """One blocked read."""

    connection: Connection
    sent: Sent
    wanted: list[Wanted]
    count: int
    until: float  # by `time.monotonic`: a reply that has not come then does not come


class SharedReader:
    """Blocked reads over all feeds of one server that wait for input.

    Parameters
    ----------
    url : str
    stop : Stop
    reads : Connection
        The connection on which feeds read alone; it counts the failures of these as well.
    block_ms : int
        Milliseconds that a read of busy streams waits.
    together : int
        Streams of one read.
    spare : int
        Connections beyond those that all streams need.
    haste : float
        Of the connections; see `Connection`.
    """

    def __init__(
        self,
        url: str,
        stop: Stop,
        reads: Connection,
        block_ms: int = 1000,
        together: int = TOGETHER,
        spare: int = SPARE,
        haste: float = 0.0,
    ) -> None:
        self._url, self._stop, self._reads, self._block_ms = url, stop, reads, block_ms
        self._haste = haste
        self._together, self._spare = together, spare
        self._covers: list[_Cover] = []
        self._free: list[Connection] = []
        self._busy: dict[str, float] = {}  # when a stream was last read, by its key

    @property
    def descriptors(self) -> list[int]:
        """What can be read once something arrives, or a connection breaks."""
        found = (cover.connection.descriptor(cover.sent) for cover in self._covers)
        return [descriptor for descriptor in found if descriptor is not None]

    @property
    def has_room(self) -> bool:
        """Whether another read may begin; else one ends within `SHORT` milliseconds."""
        return self._room() > 0

    def cover(self, wanted: Iterable[Wanted]) -> None:
        """Wait for the input of these feeds, which no read covers yet; there must be room."""
        now = time.monotonic()
        busy: list[Wanted] = []
        quiet: list[Wanted] = []
        for one in wanted:
            part = busy if now - self._busy.get(one.key, -BUSY) < BUSY else quiet
            part.append(one)
        if busy and quiet and self._room() < 2:
            busy, quiet = busy + quiet, []
        for part, block in ((busy, self._block_ms), (quiet, QUIET * self._block_ms)):
            for first in range(0, len(part), self._together):
                self._begin(part[first : first + self._together], block)

    def arrivals(self, readable: Iterable[int] = ()) -> tuple[list[Arrival], list[Wanted]]:
        """Return what came, and those for which nothing came; none of them is covered any more.

        Parameters
        ----------
        readable : iterable of int
            Those of `descriptors` that can be read.
        """
        ready, now = set(readable), time.monotonic()
        for one in self._covers:
            if now > one.until:
                one.connection.close()
        ended = [one for one in self._covers if _is_over(one, ready)]
        arrived: list[Arrival] = []
        quiet: list[Wanted] = []
        if ended:
            self._covers = [one for one in self._covers if one not in ended]
        for cover in ended:
            self._finish(cover, arrived, quiet)
        return arrived, quiet

    def close(self) -> None:
        """Give up the connections."""
        for connection in (*self._free, *(cover.connection for cover in self._covers)):
            connection.close()
        self._covers, self._free = [], []

    def _room(self) -> int:
        """Return how many more reads may begin, beyond those that full ones would need."""
        covered = sum(len(cover.wanted) for cover in self._covers)
        return self._spare + covered // self._together - len(self._covers)

    def _begin(self, wanted: Sequence[Wanted], longest: int) -> None:
        connection = self._free.pop() if self._free else self._connection()
        count = min(COUNT, *(one.input.count for one in wanted))
        # The last one ends soon, so that feeds that wait for room are covered with its own.
        block = longest if self._room() > 1 else min(longest, SHORT)
        sent = connection.send(
            "XREAD", "COUNT", count, "BLOCK", block, "STREAMS",
            *[one.key for one in wanted], *[one.cursor for one in wanted],
            limit=LIMIT,
        )  # fmt: skip
        until = time.monotonic() + block / 1000 + TIMEOUT
        self._covers.append(_Cover(connection, sent, list(wanted), count, until))

    def _connection(self) -> Connection:
        # No patience: where a read fails, the commands of the feeds wait for Redis.
        timeout = TIMEOUT + QUIET * self._block_ms / 1000
        return Connection(self._url, self._stop, 0.0, timeout, self._haste)

    def _finish(self, cover: _Cover, arrived: list[Arrival], quiet: list[Wanted]) -> None:
        """Add what a read that ended brought."""
        self._free.append(cover.connection)
        try:
            reply = cover.connection.receive(cover.sent)
        except (Unavailable, Stopped):
            self._reads.note_failure(cover.sent.url)
            quiet += cover.wanted
            return
        except WorkerError:
            # One of the streams is no stream, or has large entries: read alone, it says so.
            arrived += [Arrival(one, [], True) for one in cover.wanted]
            return
        if not reply:
            quiet += cover.wanted
            return
        found = {bytes(key).decode(): entries for key, entries in reply}
        now = time.monotonic()
        for one in cover.wanted:
            entries = found.get(one.key)
            if entries is None:
                quiet.append(one)
                continue
            self._busy[one.key] = now
            arrived.append(Arrival(one, entries, len(entries) >= cover.count))


def _is_over(cover: _Cover, readable: set[int]) -> bool:
    """Return whether a read ended: its reply can be read, or it failed."""
    descriptor = cover.connection.descriptor(cover.sent)
    return descriptor is None or descriptor in readable
