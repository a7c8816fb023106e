"""Wait for the input of many feeds at once: each of a few connections blocks on some of them.

`XREAD` over several streams returns when the first of them gets an entry. The others of that read
must then be asked for again, and Redis looks at each of them. So a read covers `TOGETHER` streams
at most, and those that were busy a moment ago are covered apart from the quiet ones, which then
stay blocked. The entries that a blocked read returns are few; a feed that has more is read alone.
"""

import math
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workers.broker import feed_reader
from workers.broker.batch_size import Entry
from workers.broker.client import TIMEOUT
from workers.broker.connection import Connection
from workers.broker.large_replies import most_cuts
from workers.broker.nodes import nodes_of
from workers.broker.pipeline import Sent
from workers.errors import Stopped, Unavailable, WorkerError
from workers.session.feed_session import Arriving
from workers.stop import Stop

TOGETHER = 64
"""Streams of one read: a wake-up by any of them costs Redis some 60 microseconds."""

FEW = 8
"""Streams of one read of busy ones: that costs Redis some 10 microseconds."""

SPARE = 64
"""Connections beyond those that all streams need: so many busy parts are covered on their own."""

QUIET = 5
"""Times as long a read of quiet streams waits: what ends it and begins it again is their cost."""

SHORT = 50
"""Milliseconds that a read waits where there is room for no other."""

COUNT = 16
"""Entries of one stream that a blocked read returns, at most."""

LIMIT = 1 << 23
"""Bytes of the reply to a blocked read; beyond them each of its streams is read alone."""

BUSY = 5.0
"""Seconds since its last entry for which a stream counts as busy."""


class Wanted(NamedTuple):
    """Input that a feed waits for.

    Attributes
    ----------
    feed, key : str
    cursor : bytes
        ID after which entries are new.
    input : Arriving
        Where they go; a feed that begins to read anew has another one.
    """

    feed: str
    key: str
    cursor: bytes
    input: Arriving


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
    is_busy: bool


class SharedReader:
    """Blocked reads over all feeds of one server that wait for input.

    Parameters
    ----------
    url : str
    stop : Stop
    reads : Connection
        The connection on which feeds read alone; it counts the failures of these as well.
    block_ms : int, optional
        Milliseconds that a read of busy streams waits; by default as `FeedReader`.
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
        block_ms: int | None = None,
        together: int = TOGETHER,
        spare: int = SPARE,
        haste: float = 0.0,
    ) -> None:
        self._url, self._stop, self._reads = url, stop, reads
        self._block_ms = feed_reader.BLOCK_MS if block_ms is None else block_ms
        self._haste = haste
        self._together, self._spare = together, spare
        self._covers: dict[int, _Cover] = {}  # by their descriptors
        self._broken: list[_Cover] = []  # they could not be sent
        self._covered = self._covered_busy = 0  # streams
        self._free: dict[str | None, list[Connection]] = {}  # by the node that they lead to
        self._busy: dict[str, float] = {}  # when a stream was last read, by its key

    @property
    def descriptors(self) -> Collection[int]:
        """What can be read once something arrives, or a connection breaks."""
        return self._covers.keys()

    @property
    def has_room(self) -> bool:
        """Whether another read may begin; else one ends within `SHORT` milliseconds."""
        return self._room() > 0

    @property
    def patience(self) -> float:
        """Seconds after which `arrivals` is to be called, whatever can be read."""
        return math.inf

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
        for first in range(0, len(busy), few := self._few(len(busy))):
            self._begin(busy[first : first + few], self._block_ms, is_busy=True)
        for first in range(0, len(quiet), self._together):
            part = quiet[first : first + self._together]
            self._begin(part, QUIET * self._block_ms, is_busy=False)

    def _few(self, more: int) -> int:
        """Return how many busy streams one read covers, where so many more are to be covered.

        Each entry ends a read, and all its streams are asked for again. So they are few, but not so
        few that the reads of busy streams take more than half of the spare connections.
        """
        busy = self._covered_busy + more
        return min(self._together, max(FEW, -(-2 * busy // max(self._spare, 1))))

    def arrivals(self, readable: Iterable[int] = ()) -> tuple[list[Arrival], list[Wanted]]:
        """Return what came, and those for which nothing came; none of them is covered any more.

        Parameters
        ----------
        readable : iterable of int
            Those of `descriptors` that can be read.
        """
        now = time.monotonic()
        overdue = [descriptor for descriptor, one in self._covers.items() if now > one.until]
        for descriptor in overdue:
            self._covers[descriptor].connection.close()
        over = dict.fromkeys((*readable, *overdue))
        ended, self._broken = self._broken, []
        ended += [self._covers.pop(one) for one in over if one in self._covers]
        arrived: list[Arrival] = []
        quiet: list[Wanted] = []
        for cover in ended:
            self._count(cover, -1)
            self._finish(cover, arrived, quiet)
        return arrived, quiet

    def close(self) -> None:
        """Give up the connections."""
        covers = (*self._covers.values(), *self._broken)
        free = (connection for some in self._free.values() for connection in some)
        for connection in (*free, *(cover.connection for cover in covers)):
            connection.close()
        self._covers, self._broken, self._free = {}, [], {}
        self._covered = self._covered_busy = 0

    def _count(self, cover: _Cover, sign: int) -> None:
        """Note that a read covers its streams from now on, or no more."""
        self._covered += sign * len(cover.wanted)
        self._covered_busy += sign * len(cover.wanted) * cover.is_busy

    def _room(self) -> int:
        """Return how many more reads may begin, beyond those that full ones would need."""
        begun = len(self._covers) + len(self._broken)
        return self._spare + self._covered // self._together - begun

    def _begin(self, wanted: Sequence[Wanted], longest: int, is_busy: bool) -> None:
        free = self._free.get(nodes_of(self._url).place(wanted[0].key))
        connection = free.pop() if free else self._connection()
        count = min(COUNT, *(one.input.count for one in wanted))
        # The last one ends soon, so that feeds that wait for room are covered with its own.
        block = longest if self._room() > 1 else min(longest, SHORT)
        sent = connection.send(
            "XREAD", "COUNT", count, "BLOCK", block, "STREAMS",
            *[one.key for one in wanted], *[one.cursor for one in wanted],
            limit=LIMIT, most_cuts=most_cuts(count),
        )  # fmt: skip
        until = time.monotonic() + block / 1000 + TIMEOUT
        cover = _Cover(connection, sent, list(wanted), count, until, is_busy)
        self._count(cover, 1)
        descriptor = connection.descriptor(sent)
        if descriptor is None:
            self._broken.append(cover)
        else:
            self._covers[descriptor] = cover

    def _connection(self) -> Connection:
        # No patience: where a read fails, the commands of the feeds wait for Redis.
        timeout = TIMEOUT + QUIET * self._block_ms / 1000
        return Connection(self._url, self._stop, 0.0, timeout, self._haste)

    def _finish(self, cover: _Cover, arrived: list[Arrival], quiet: list[Wanted]) -> None:
        """Add what a read that ended brought."""
        at = nodes_of(self._url).place(cover.wanted[0].key)
        self._free.setdefault(at, []).append(cover.connection)
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
