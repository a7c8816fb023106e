"""The connections of a process to Redis, and the results of its checks."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from workers.broker.client import TIMEOUT
from workers.broker.connection import Connection
from workers.broker.feed_reader import FeedReader
from workers.broker.permissions import Checks
from workers.config.redis_url import CLUSTER, kind_of
from workers.config.retention_settings import RetentionSettings
from workers.config.settings import WorkerSettings
from workers.feed.keys import FeedKeys
from workers.feed.pinned_config import pinned_config
from workers.feed.state import FeedState, PinnedConfig
from workers.feed.stored_settings import effective_settings
from workers.log import Logger
from workers.runner.outages import FAIL_FAST_SECONDS, REPLY_SECONDS
from workers.session.known_feeds import KnownFeeds
from workers.session.preflight import check_server, commands_of, durability
from workers.stop import Stop

log = Logger("online_svm.worker")

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
