"""Wait for the input of many feeds on a Redis Cluster: blocked reads, and questions at intervals.

A blocked read has one feed there. So those that were busy a moment ago get one each, as far as
`BLOCKED` connections go; an entry of theirs is read at once. The nodes of the other feeds are asked
at intervals. A process of a few feeds has blocked reads alone.
"""

import time
from collections.abc import Collection, Iterable

from typing_extensions import override

from workers.broker.connection import Connection
from workers.runner.node_polls import NodePolls
from workers.runner.shared_reader import BUSY, QUIET, Arrival, SharedReader, Wanted
from workers.stop import Stop

BLOCKED = 64
"""Connections for blocked reads; feeds that are quiet get half of them at most."""


class NodeReader(SharedReader):
    """What `SharedReader` is for one server.

    Parameters
    ----------
    url : str
        Of a cluster.
    stop : Stop
    reads : Connection
        The connection on which feeds read alone; it counts the failures of these as well.
    block_ms : int, optional
        Milliseconds that a read of a busy stream waits.
    haste : float
        Of the connections; see `Connection`.
    blocked : int
        Connections for blocked reads.
    """

    def __init__(
        self,
        url: str,
        stop: Stop,
        reads: Connection,
        block_ms: int | None = None,
        haste: float = 0.0,
        blocked: int = BLOCKED,
    ) -> None:
        super().__init__(url, stop, reads, block_ms, together=1, haste=haste)
        self._blocked = blocked
        self._polls = NodePolls(url, haste)

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
    def patience(self) -> float:
        return self._polls.patience()

    @override
    def cover(self, wanted: Iterable[Wanted]) -> None:
        now, left = time.monotonic(), self._blocked - len(self._covers) - len(self._broken)
        for one in wanted:
            is_busy = now - self._busy.get(one.key, -BUSY) < BUSY
            if left > (0 if is_busy else self._blocked // 2):
                self._begin([one], self._block_ms if is_busy else QUIET * self._block_ms, is_busy)
                left -= 1
            else:
                self._polls.add(one)

    @override
    def arrivals(self, readable: Iterable[int] = ()) -> tuple[list[Arrival], list[Wanted]]:
        ready = set(readable)
        arrived, quiet = super().arrivals(ready)
        came, broken = self._polls.turn(ready)
        now = time.monotonic()
        self._busy.update((arrival.wanted.key, now) for arrival in came)
        for url, wanted in broken.items():
            self._reads.note_failure(url)
            quiet += wanted
        return arrived + came, quiet

    @override
    def close(self) -> None:
        super().close()
        self._polls.close()
