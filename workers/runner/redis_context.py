"""The connections of a process to Redis, the results of its checks, and feeds that wait for a node.

One thread serves all feeds, so it must not wait for a silent node of a Redis Cluster. A feed whose
node is silent keeps its session and waits in `Outages`. A second thread probes the node or its
successor; once that answers, the feed continues. If a node answers but refuses the feed's commands,
the feed is tried again with growing delays.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from workers.broker.client import TIMEOUT, delays
from workers.broker.connection import Connection
from workers.broker.feed_reader import FeedReader
from workers.broker.leases import Leases
from workers.broker.nodes import NodeHealth, nodes_of
from workers.broker.permissions import Checks
from workers.config.redis_url import CLUSTER, kind_of, redacted
from workers.config.retention_settings import RetentionSettings
from workers.config.settings import WorkerSettings
from workers.errors import WorkerError
from workers.feed.keys import FeedKeys
from workers.feed.pinned_config import pinned_config
from workers.feed.state import FeedState, PinnedConfig
from workers.feed.stored_settings import effective_settings
from workers.log import Logger
from workers.session.preflight import KnownFeeds, check_server, commands_of, durability
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


SLICE_ENTRIES = 256  # most entries of one feed in one batch
_MAX_CACHED = 64  # most entries of a `SettingsCache`; most processes need one or two


_Key = tuple[int, str, str, RetentionSettings | None]
"""Identity of the given settings; the stored configuration, its hash, the stored retention."""


class EffectiveSettings(NamedTuple):
    """The settings and the configuration of a feed."""

    settings: WorkerSettings  # with a bounded `batch`, see `SettingsCache`
    pinned: PinnedConfig  # the configuration of a new feed with these settings


class SettingsCache:
    """Caches the effective settings by given and stored settings.

    The setting `batch` is limited to `max_batch`, so that no feed delays others for long.
    """

    def __init__(self, max_batch: int) -> None:
        self._max_batch = max_batch
        # The values keep the given settings alive, so that the id() in the key is not reused.
        self._cached: dict[_Key, tuple[WorkerSettings, EffectiveSettings]] = {}

    def effective(
        self, given: WorkerSettings, feed: str, state: FeedState | None
    ) -> EffectiveSettings:
        """Return the effective settings and the pinned configuration.

        Raises ConfigurationChanged, BadConfiguration, StateLost as `effective_settings`.
        """
        stored = (
            ("", "", None)
            if state is None
            else (state.pinned.config, state.pinned.config_hash, state.retention)
        )
        key = (id(given), *stored)
        if key not in self._cached:
            if len(self._cached) >= _MAX_CACHED:
                self._cached.clear()
            used = effective_settings(given, feed, state)
            bounded = used.model_copy(update={"batch": min(used.batch, self._max_batch)})
            pinned = pinned_config(used.predictor, used.limits)
            self._cached[key] = given, EffectiveSettings(bounded, pinned)
        return self._cached[key][1]


@dataclass(frozen=True, slots=True)
class RedisContext:
    """The connections of a process to Redis, and the results of its checks."""

    url: str
    stop: Stop
    commands: Connection
    reads: Connection
    server: dict[str, str] | None  # INFO of the only server, checked; None on a cluster
    checks: Checks  # of this user's permissions
    known: KnownFeeds
    settings_cache: SettingsCache
    permitted: set[str]  # feeds whose permissions were checked

    @property
    def is_cluster(self) -> bool:
        """Whether feeds are spread over several servers; each feed waits for its own server."""
        return kind_of(self.url) == CLUSTER

    def check_rights(self, feed: str, settings: WorkerSettings) -> None:
        """Raise AccessDenied unless this user may run all commands of a feed; check only once."""
        if feed not in self.permitted:
            self.checks.check(commands_of(self.url, FeedKeys(feed), settings))
            self.permitted.add(feed)

    def retry_forever(self) -> None:
        """Retry, from now on, until Redis answers.

        On a cluster, commands to a silent node fail at once instead: its feeds are parked, and
        feeds of other nodes continue.
        """
        for connection in (self.commands, self.reads):
            connection.retry_timeout = 0.0 if self.is_cluster else None
            connection.fail_fast_for = FAIL_FAST_SECONDS if self.is_cluster else 0.0


@contextmanager
def redis_context(
    settings: WorkerSettings, url: str, stop: Stop, known: KnownFeeds
) -> Iterator[RedisContext]:
    """Connect to the server and check it. Raises RedisUnsuitable, Unavailable."""
    is_cluster = kind_of(url) == CLUSTER
    timeout, fail_fast_for = (REPLY_SECONDS, FAIL_FAST_SECONDS) if is_cluster else (TIMEOUT, 0.0)
    commands = Connection(url, stop, settings.wait_redis, timeout)
    reads = Connection(url, stop, settings.wait_redis, timeout)
    try:
        with FeedReader(url, "any", connections=(commands, reads)) as any_feed:
            server = any_feed.server()
            check_server(server, url)
            for warning in durability(any_feed, server):
                log.warning(warning)
        with Checks(url, stop, settings.wait_redis, timeout, fail_fast_for) as checks:
            yield RedisContext(
                url, stop, commands, reads, None if is_cluster else server, checks, known,
                SettingsCache(SLICE_ENTRIES), set(),
            )  # fmt: skip
    finally:
        commands.close()
        reads.close()
