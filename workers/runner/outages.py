"""Feeds that wait for their node of a Redis Cluster, while the feeds of other nodes are answered.

One thread serves all feeds, so it must not wait for a silent node. A feed whose node is silent
keeps its session and waits here. A second thread probes the node or its successor; once that
answers, the feed continues. If a node answers but refuses the feed's commands, the feed is tried
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
"""Seconds for a node of a cluster to reply: once per outage, feeds of other nodes wait that long.
Replicas have one of these seconds to acknowledge a write."""

FAIL_FAST_SECONDS = 10.0
"""Seconds for which commands to a silent node fail at once, while the thread probes the node."""

PROBE_PAUSE_SECONDS = 0.1  # seconds between two probes of a silent node

log = Logger("online_svm.worker")


@dataclass(slots=True)
class _Waiting:
    """A feed that waits; times by `time.monotonic`."""

    key: str  # of its state
    replicas: int  # that must acknowledge its commits
    tried_at: float = 0.0  # last try
    retry_at: float = 0.0  # earliest time of the next try
    delays: Iterator[float] = field(default_factory=delays)


class Outages:
    """The feeds of a cluster that wait for their node.

    A probe renews a lease, which shows whether the node and its replicas answer. `wake` is called
    when feeds may be tried again.
    """

    def __init__(self, url: str, leases: Leases, wake: Callable[[], None]) -> None:
        self._url, self._leases, self._wake = url, leases, wake
        self._waiting: dict[str, _Waiting] = {}
        self._logged_nodes: set[str] = set()
        # Start of the last answered probe, by URL of the node and whether replicas acknowledged it.
        self._answered_at: dict[tuple[str | None, bool], float] = {}
        self._stop = Stop()
        self._has_work = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.request()
        self._has_work.set()
        if self._thread is not None:
            self._thread.join(2 * REPLY_SECONDS)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, feed: str, replicas: int, reason: str) -> None:
        """Add a feed that waits for its node, after each failed try."""
        now, key = time.monotonic(), FeedKeys(feed).state
        waiting = self._waiting.get(feed) or _Waiting(key, replicas)
        waiting.tried_at, waiting.retry_at = now, now + next(waiting.delays)
        self._waiting[feed] = waiting
        node = redacted(nodes_of(self._url).node_of_key(key) or "")
        if node not in self._logged_nodes:
            self._logged_nodes.add(node)
            log.warning("feeds of a node wait for it", node=node or "none", reason=reason)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="outages", daemon=True)
            self._thread.start()
        self._has_work.set()

    def discard(self, feed: str) -> None:
        """Remove a feed that continues, or that is no longer served."""
        if self._waiting.pop(feed, None) is not None and not self._waiting:
            log.info("no feed waits for its node any more")
            self._logged_nodes.clear()

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
        """Return whether no probe of the feed's current node was answered since the last try."""
        node = nodes_of(self._url).node_of_key(one.key)
        return self._answered_at.get((node, one.replicas > 0), -1.0) <= one.tried_at

    def _run(self) -> None:
        connection = Connection(self._url, Stop(), timeout=REPLY_SECONDS)
        while not self._stop.requested:
            self._has_work.wait()
            self._has_work.clear()
            while (feeds := self._feeds_to_probe()) and not self._stop.requested:
                answered = [self._probe(connection, feed, one) for feed, one in feeds]
                if any(answered):
                    self._wake()
                if not all(answered):
                    self._stop.wait(PROBE_PAUSE_SECONDS)
        connection.close()

    def _feeds_to_probe(self) -> list[tuple[str, _Waiting]]:
        """Return one feed of each node to probe: the one that needs the most replicas."""
        first: dict[str | None, tuple[str, _Waiting]] = {}
        waiting = self._waiting.copy()  # atomic; the loop's thread may change the original
        for feed, one in sorted(waiting.items(), key=lambda pair: -pair[1].replicas):
            if self._must_wait(one):
                first.setdefault(nodes_of(self._url).node_of_key(one.key), (feed, one))
        return list(first.values())

    def _probe(self, connection: Connection, feed: str, one: _Waiting) -> bool:
        """Probe the current node of a feed; return whether the node and its replicas answer."""
        nodes, began, acknowledged = nodes_of(self._url), time.monotonic(), True
        try:
            self._leases.probe(connection, feed, one.replicas)
        except WorkerError:
            acknowledged = False
        node = nodes.node_of_key(one.key)
        if not node:
            return False
        if acknowledged:
            nodes.note_reply(node)
        elif nodes.health(node, REPLY_SECONDS) is not NodeHealth.NO_REPLICAS:
            return False
        self._answered_at[node, False] = began
        if acknowledged:
            self._answered_at[node, True] = began
        return acknowledged
