"""Feeds that wait for their node of a Redis Cluster, while the feeds of other nodes are answered.

One thread serves all feeds, so it must not wait for a node that does not answer. A feed whose node
is silent keeps its session and waits here. A second thread probes the node or its successor; once
it answers, the feed continues. If a node answers but refuses what a feed needs, the feed is tried
again with growing delays.
"""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Self

from workers.broker.client import delays
from workers.broker.connection import Connection
from workers.broker.leases import Leases
from workers.broker.nodes import NodeHealth, nodes_of
from workers.config.redis_url import redacted
from workers.errors import WorkerError
from workers.feed.keys import FeedKeys
from workers.log import Logger
from workers.stop import Stop

REPLY_SECONDS = 1.25
"""Seconds within which a node of a cluster must reply; feeds of other nodes wait that long, once.
Replicas have one of these seconds to acknowledge a write."""

FAIL_FAST_SECONDS = 10.0
"""Seconds for which commands to a silent node fail at once; meanwhile the thread probes it."""

PROBE_PAUSE_SECONDS = 0.1
"""Seconds between two probes of the nodes that do not answer."""

log = Logger("online_svm.worker")


@dataclass(slots=True)
class _Waiting:
    """A feed that waits."""

    key: str  # Redis key of its state
    replicas: int  # replicas that must acknowledge its commits
    since: float = 0.0  # time of the last try, by `time.monotonic`
    retry_at: float = 0.0  # earliest time of the next try, likewise
    delays: Iterator[float] = field(default_factory=delays)


class Outages:
    """Which feeds of a cluster wait for their node, and which of them may be tried again.

    A probe renews a lease, which shows whether a node and its replicas answer. `wake` is called
    when feeds may be tried again.
    """

    def __init__(self, url: str, leases: Leases, wake: Callable[[], None]) -> None:
        self._url, self._leases, self._wake = url, leases, wake
        self._waiting: dict[str, _Waiting] = {}
        self._told: set[str] = set()  # nodes whose silence was logged
        # Start of a node's last answered probe, by its URL. True: its replicas acknowledged, too.
        self._answered_at: dict[tuple[str | None, bool], float] = {}
        self._stop = Stop()
        self._asked = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.request()
        self._asked.set()
        if self._thread is not None:
            self._thread.join(2 * REPLY_SECONDS)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, feed: str, replicas: int, reason: str) -> None:
        """Let a feed wait for its node; call this again after each failed try."""
        now, key = time.monotonic(), FeedKeys(feed).state
        known = self._waiting.get(feed) or _Waiting(key, replicas)
        known.since, known.retry_at = now, now + next(known.delays)
        self._waiting[feed] = known
        node = redacted(nodes_of(self._url).node_of_key(key) or "")
        if node not in self._told:
            self._told.add(node)
            log.warning("feeds of a node wait for it", node=node or "none", reason=reason)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="outages", daemon=True)
            self._thread.start()
        self._asked.set()

    def discard(self, feed: str) -> None:
        """Forget a feed that continues, or that is no longer served."""
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

    def seconds_left(self) -> float:
        """Return the seconds until the next feed may be tried; `wake` may be called earlier."""
        now = time.monotonic()
        ready = [one.retry_at for one in self._waiting.values() if not self._must_wait(one)]
        return max(0.0, min(ready) - now) if ready else PROBE_PAUSE_SECONDS

    def _must_wait(self, one: _Waiting) -> bool:
        """Return True until the feed's current node answers a probe begun after the last try."""
        place = nodes_of(self._url).node_of_key(one.key)
        return self._answered_at.get((place, one.replicas > 0), -1.0) <= one.since

    def _run(self) -> None:
        connection = Connection(self._url, Stop(), timeout=REPLY_SECONDS)
        while not self._stop.requested:
            self._asked.wait()
            self._asked.clear()
            while (asked := self._by_node()) and not self._stop.requested:
                found = [self._answers(connection, feed, one) for feed, one in asked]
                if any(found):
                    self._wake()
                if not all(found):
                    self._stop.wait(PROBE_PAUSE_SECONDS)
        connection.close()

    def _by_node(self) -> list[tuple[str, _Waiting]]:
        """Return one feed for each node to probe: the one that needs the most replicas."""
        first: dict[str | None, tuple[str, _Waiting]] = {}
        waiting = self._waiting.copy()  # in one step: the loop's thread changes the dict meanwhile
        for feed, one in sorted(waiting.items(), key=lambda pair: -pair[1].replicas):
            if self._must_wait(one):
                first.setdefault(nodes_of(self._url).node_of_key(one.key), (feed, one))
        return list(first.values())

    def _answers(self, connection: Connection, feed: str, one: _Waiting) -> bool:
        """Probe the current node of a feed; return whether the node and its replicas answer."""
        nodes, began, acknowledged = nodes_of(self._url), time.monotonic(), True
        try:
            self._leases.probe(connection, feed, one.replicas)
        except WorkerError:
            acknowledged = False
        place = nodes.node_of_key(one.key)
        if not place:
            return False
        if acknowledged:
            nodes.note_reply(place)
        elif nodes.health(place, REPLY_SECONDS) is not NodeHealth.NO_REPLICAS:
            return False
        self._answered_at[place, False] = began
        if acknowledged:
            self._answered_at[place, True] = began
        return acknowledged
