"""Feeds that wait for their node of a Redis Cluster, while the feeds of other nodes are answered.

One thread serves all feeds, so it must not wait for a node that does not answer. A feed that finds
this keeps its session, with all that it learned, and waits here. Another thread asks the node, or
the one that has taken its place; once that answers, the feed goes on. Where a node answers and
refuses what a feed needs, that feed is tried again later and later.
"""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Self

from workers.broker.backoff import delays
from workers.broker.connection import Connection
from workers.broker.leases import Leases
from workers.broker.nodes import NodeHealth, nodes_of
from workers.config.redis_url import redacted
from workers.errors import WorkerError
from workers.feed.keys import FeedKeys
from workers.log import Logger
from workers.stop import Stop

REPLY = 1.25
"""Seconds that a node of a cluster has for a reply: for so long the feeds of others wait, once.
Replicas have one second of them to acknowledge a write."""

HASTE = 10.0
"""Seconds for which a node that did not answer is passed over; meanwhile the thread asks it."""

PAUSE = 0.1
"""Seconds between two questions to nodes that do not answer."""

log = Logger("online_svm.worker")


@dataclass(slots=True)
class _Waiting:
    """A feed that waits.

    Attributes
    ----------
    key : str
        Of its state.
    replicas : int
        Replicas that must acknowledge its commits.
    since : float
        When it was tried last, by `time.monotonic`.
    retry_at : float
        Before which it is not tried again, likewise.
    """

    key: str
    replicas: int
    since: float = 0.0
    retry_at: float = 0.0
    delays: Iterator[float] = field(default_factory=delays)


class Outages:
    """Which feeds wait for their node, and which of them may be tried again.

    Parameters
    ----------
    url : str
        Of a cluster; of other servers no feed waits here.
    leases : Leases
        A lease is renewed to see whether a node answers, and its replicas.
    wake : callable
        Called when feeds may be tried again.
    """

    def __init__(self, url: str, leases: Leases, wake: Callable[[], None]) -> None:
        self._url, self._leases, self._wake = url, leases, wake
        self._waiting: dict[str, _Waiting] = {}
        self._told: set[str] = set()  # nodes that feeds wait for
        # When a node was last asked and answered, by its URL and whether replicas did, too.
        self._answered: dict[tuple[str | None, bool], float] = {}
        self._stop = Stop()
        self._asked = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.request()
        self._asked.set()
        if self._thread is not None:
            self._thread.join(2 * REPLY)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, feed: str, replicas: int, reason: str) -> None:
        """Let a feed wait: for the first time, or again after it was tried."""
        now, key = time.monotonic(), FeedKeys(feed).state
        known = self._waiting.get(feed) or _Waiting(key, replicas)
        known.since, known.retry_at = now, now + next(known.delays)
        self._waiting[feed] = known
        node = redacted(nodes_of(self._url).place(key) or "")
        if node not in self._told:
            self._told.add(node)
            log.warning("feeds of a node wait for it", node=node or "none", reason=reason)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="outages", daemon=True)
            self._thread.start()
        self._asked.set()

    def discard(self, feed: str) -> None:
        """Forget a feed: it goes on, or is served no more."""
        if self._waiting.pop(feed, None) is not None and not self._waiting:
            log.info("no feed waits for its node any more")
            self._told.clear()

    def due(self) -> list[str]:
        """Return the feeds that may be tried again now."""
        now = time.monotonic()
        return [
            feed
            for feed, one in self._waiting.items()
            if one.retry_at <= now and not self._must_wait(one)
        ]

    def patience(self) -> float:
        """Return the seconds until one of them may be tried again, unless `wake` comes first."""
        now = time.monotonic()
        ready = [one.retry_at for one in self._waiting.values() if not self._must_wait(one)]
        return max(0.0, min(ready) - now) if ready else PAUSE

    def _must_wait(self, one: _Waiting) -> bool:
        """Return whether the present node of a feed has not answered since the feed was tried."""
        place = nodes_of(self._url).place(one.key)
        return self._answered.get((place, one.replicas > 0), -1.0) <= one.since

    def _run(self) -> None:
        connection = Connection(self._url, Stop(), timeout=REPLY)
        while not self._stop.requested:
            self._asked.wait()
            self._asked.clear()
            while (asked := self._by_node()) and not self._stop.requested:
                found = [self._answers(connection, feed, one) for feed, one in asked]
                if any(found):
                    self._wake()
                if not all(found):
                    self._stop.wait(PAUSE)
        connection.close()

    def _by_node(self) -> list[tuple[str, _Waiting]]:
        """Return one feed of each node that has to answer first, the one with the most replicas."""
        first: dict[str | None, tuple[str, _Waiting]] = {}
        waiting = self._waiting.copy()  # at once: the loop's thread changes it meanwhile
        for feed, one in sorted(waiting.items(), key=lambda pair: -pair[1].replicas):
            if self._must_wait(one):
                first.setdefault(nodes_of(self._url).place(one.key), (feed, one))
        return list(first.values())

    def _answers(self, connection: Connection, feed: str, one: _Waiting) -> bool:
        """Ask the present node of a feed; return whether it answers, and its replicas do."""
        nodes, began, acknowledged = nodes_of(self._url), time.monotonic(), True
        try:
            self._leases.probe(connection, feed, one.replicas)
        except WorkerError:
            acknowledged = False
        place = nodes.place(one.key)
        if not place:
            return False
        if acknowledged:
            nodes.answers(place)
        elif nodes.health(place, REPLY) is not NodeHealth.NO_REPLICAS:
            return False
        self._answered[place, False] = began
        if acknowledged:
            self._answered[place, True] = began
        return acknowledged
