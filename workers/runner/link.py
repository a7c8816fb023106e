"""The connections of a process to Redis, and what it has checked there."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from workers.broker.client import TIMEOUT
from workers.broker.connection import Connection
from workers.broker.feed_reader import FeedReader
from workers.broker.permissions import Checks
from workers.config.redis_servers import CLUSTER, kind_of
from workers.config.settings import WorkerSettings
from workers.feed.agreement import agreement
from workers.feed.keys import FeedKeys
from workers.feed.state import Agreement, FeedState
from workers.feed.stored_settings import effective_settings
from workers.log import Logger
from workers.runner.outages import HASTE, REPLY
from workers.session import preflight
from workers.session.durability import durability
from workers.session.known_feeds import KnownFeeds
from workers.session.opening import commands_of
from workers.stop import Stop

log = Logger("online_svm.worker")

SLICE = 256
"""Entries of one feed that are answered at once, at most."""

_REMEMBERED = 64
"""Kinds of feeds that are remembered; most processes have one or two."""


class Settled(NamedTuple):
    """What a feed is answered with.

    Attributes
    ----------
    settings : WorkerSettings
        In force; entries of a batch are bounded for a process of many feeds.
    agreement : Agreement
        That a feed has which begins now with these settings.
    """

    settings: WorkerSettings
    agreement: Agreement


class SettledSettings:
    """Remembers what settings that were given and settings that are stored come to.

    Parameters
    ----------
    batch : int
        Bound on this setting.
    """

    def __init__(self, batch: int) -> None:
        self._batch = batch
        # Kept with what was given, whose identity is part of the key.
        self._found: dict[tuple[int, str, str], tuple[WorkerSettings, Settled]] = {}

    def of(self, given: WorkerSettings, feed: str, state: FeedState | None) -> Settled:
        """Return the settings in force, and their agreement; see `effective_settings`.

        Raises
        ------
        ConfigurationChanged, BadConfiguration, StateLost
            As `effective_settings`.
        """
        stored = (
            ("", "") if state is None else (state.agreement.config, state.agreement.config_hash)
        )
        key = (id(given), *stored)
        if key not in self._found:
            if len(self._found) >= _REMEMBERED:
                self._found.clear()
            self._found[key] = given, self._settled(effective_settings(given, feed, state))
        return self._found[key][1]

    def _settled(self, used: WorkerSettings) -> Settled:
        bounded = used.model_copy(update={"batch": min(used.batch, self._batch)})
        return Settled(bounded, agreement(used.predictor, used.limits))


@dataclass(frozen=True, slots=True)
class Link:
    """The connections of a process to Redis, and what it has checked there.

    Attributes
    ----------
    url : str
    stop : Stop
    commands, reads : Connection
    server : dict or None
        The fields of INFO; the server passed its checks. None where there are several servers.
    checks : Checks
        Of the rights of this user.
    known : KnownFeeds
    settled : SettledSettings
    accept_environment : bool
    permitted : set of str
        Feeds whose commands this user may run.
    """

    url: str
    stop: Stop
    commands: Connection
    reads: Connection
    server: dict[str, str] | None
    checks: Checks
    known: KnownFeeds
    settled: SettledSettings
    accept_environment: bool
    permitted: set[str]

    @property
    def is_cluster(self) -> bool:
        """Whether feeds are on several servers: each waits for its own, aside."""
        return kind_of(self.url) == CLUSTER

    def check_rights(self, feed: str, settings: WorkerSettings) -> None:
        """Raise AccessDenied unless this user may do all that a feed with these settings needs."""
        if feed not in self.permitted:
            self.checks.check(commands_of(self.url, FeedKeys(feed), settings))
            self.permitted.add(feed)

    def be_patient(self, is_one_feed: bool = False) -> None:
        """From now on wait for a Redis that does not answer.

        In place, or aside: where a feed would keep those of other nodes waiting.
        """
        is_aside = self.is_cluster and not is_one_feed
        for connection in (self.commands, self.reads):
            connection.patience = 0.0 if is_aside else None
            connection.haste = HASTE if is_aside else 0.0


@contextmanager
def linked(
    settings: WorkerSettings,
    url: str,
    stop: Stop,
    accept_environment: bool,
    known: KnownFeeds,
) -> Iterator[Link]:
    """Connect to the server, and check it.

    Raises
    ------
    RedisUnsuitable, Unavailable
    """
    is_cluster = kind_of(url) == CLUSTER
    # On a cluster a feed waits for its node aside, so that the feeds of other nodes go on.
    timeout, haste = (REPLY, HASTE) if is_cluster else (TIMEOUT, 0.0)
    commands = Connection(url, stop, settings.wait_redis, timeout)
    reads = Connection(url, stop, settings.wait_redis, timeout)
    try:
        with FeedReader(url, "any", connections=(commands, reads)) as any_feed:
            server = any_feed.server()
            preflight.check_server(server, url)
            for warning in durability(any_feed, server):
                log.warning(warning)
        with Checks(url, stop, settings.wait_redis, timeout, haste) as checks:
            yield Link(
                url, stop, commands, reads, None if is_cluster else server, checks, known,
                SettledSettings(SLICE), accept_environment, set(),
            )  # fmt: skip
    finally:
        commands.close()
        reads.close()
