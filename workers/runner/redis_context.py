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
from workers.session.preflight import commands_of
from workers.session.server_checks import check_server, durability
from workers.stop import Stop

log = Logger("online_svm.worker")

SLICE_ENTRIES = 256
"""Entries of one feed in one batch, at most."""

_MAX_REMEMBERED = 64
"""Entries of a `SettingsCache`, at most; most processes have one or two."""


_Key = tuple[int, str, str, RetentionSettings | None]
"""Identity of the given settings; the stored configuration, its hash, the stored retention."""


class EffectiveSettings(NamedTuple):
    """The settings and the configuration of a feed."""

    settings: WorkerSettings  # in force; `batch` is bounded, see `SettingsCache`
    pinned: PinnedConfig  # what a new feed with these settings pins


class SettingsCache:
    """Caches the effective settings by given and stored settings.

    The setting `batch` is lowered to the argument `batch`, so that no feed delays others for long.
    """

    def __init__(self, batch: int) -> None:
        self._batch = batch
        # Values include the given settings: while they live, the id() in the key is not reused.
        self._found: dict[_Key, tuple[WorkerSettings, EffectiveSettings]] = {}

    def of(self, given: WorkerSettings, feed: str, state: FeedState | None) -> EffectiveSettings:
        """Return the settings in force, and the pinned configuration; see `effective_settings`.

        Raises ConfigurationChanged, BadConfiguration, StateLost as `effective_settings`.
        """
        stored = (
            ("", "", None)
            if state is None
            else (state.pinned.config, state.pinned.config_hash, state.retention)
        )
        key = (id(given), *stored)
        if key not in self._found:
            if len(self._found) >= _MAX_REMEMBERED:
                self._found.clear()
            self._found[key] = given, self._settled(effective_settings(given, feed, state))
        return self._found[key][1]

    def _settled(self, used: WorkerSettings) -> EffectiveSettings:
        bounded = used.model_copy(update={"batch": min(used.batch, self._batch)})
        return EffectiveSettings(bounded, pinned_config(used.predictor, used.limits))


@dataclass(frozen=True, slots=True)
class RedisContext:
    """The connections of a process to Redis, and the results of its checks."""

    url: str
    stop: Stop
    commands: Connection
    reads: Connection
    server: dict[str, str] | None  # checked INFO of the only server; None on a cluster
    checks: Checks  # of this user's permissions
    known: KnownFeeds
    settled: SettingsCache
    permitted: set[str]  # feeds whose commands this user may run

    @property
    def is_cluster(self) -> bool:
        """Whether feeds are spread over several servers; each feed waits for its own server."""
        return kind_of(self.url) == CLUSTER

    def check_rights(self, feed: str, settings: WorkerSettings) -> None:
        """Raise AccessDenied unless this user may run all that a feed with these settings needs."""
        if feed not in self.permitted:
            self.checks.check(commands_of(self.url, FeedKeys(feed), settings))
            self.permitted.add(feed)

    def retry_forever(self, is_one_feed: bool = False) -> None:
        """From now on retry until Redis answers.

        On a cluster a feed is parked instead, unless `is_one_feed`: feeds of other nodes continue.
        """
        is_aside = self.is_cluster and not is_one_feed
        for connection in (self.commands, self.reads):
            connection.retry_timeout = 0.0 if is_aside else None
            connection.fail_fast_for = FAIL_FAST_SECONDS if is_aside else 0.0


@contextmanager
def redis_context(
    settings: WorkerSettings, url: str, stop: Stop, known: KnownFeeds
) -> Iterator[RedisContext]:
    """Connect to the server, and check it.

    Raises RedisUnsuitable, Unavailable.
    """
    is_cluster = kind_of(url) == CLUSTER
    # On a cluster a feed is parked until its node answers; feeds of other nodes continue.
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
