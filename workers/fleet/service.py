"""Run a process of many feeds: those that a selection yields, until a stop is requested."""

import platform
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import structlog

from workers.broker import permissions
from workers.broker.client import TIMEOUT
from workers.broker.connection import Connection
from workers.broker.feed_reader import FeedReader
from workers.broker.permissions import Checks
from workers.config.redis_servers import CLUSTER, kind_of
from workers.config.settings import WorkerSettings
from workers.engine import preflight
from workers.engine.assembly import load_compiler
from workers.engine.durability import durability
from workers.engine.known_feeds import KnownFeeds
from workers.engine.telemetry import Telemetry
from workers.errors import BadConfiguration
from workers.fast_imports import importing
from workers.feed.selection import Selection
from workers.fleet.hosted_feed import SLICE, HostedFeed, Shared
from workers.fleet.leases import Leases
from workers.fleet.loop import FeedLoop
from workers.fleet.node_reader import NodeReader
from workers.fleet.outages import HASTE, REPLY, Outages
from workers.fleet.registry_watch import RegistryWatch
from workers.fleet.replay_budget import ReplayBudget
from workers.fleet.settled_settings import SettledSettings
from workers.fleet.shared_reader import SharedReader
from workers.fleet.snapshot_fetcher import SnapshotFetcher
from workers.fleet.watch import FleetWatch
from workers.refit.pool import RefitPool
from workers.refit.pooled_refitter import PooledRefitter
from workers.session.answer import Outcome
from workers.stop import Stop

log = structlog.get_logger("online_svm.worker")

LOOK = 5.0
"""Seconds between two looks at the list of feeds, and at whose share they are."""

SettingsOf = Callable[[str], WorkerSettings]


def run(
    selection: Selection,
    settings: WorkerSettings,
    url: str,
    stop: Stop,
    *,
    name: str | None = None,
    accept_environment: bool = False,
    settings_of: SettingsOf | None = None,
    observe: Callable[[str, Outcome], None] | None = None,
    watch: FleetWatch | None = None,
    look: float = LOOK,
    pool: RefitPool | None = None,
    known: KnownFeeds | None = None,
) -> None:
    """Answer the selected feeds until the stop is requested; then leave snapshots.

    It may be called in any thread: it installs no handlers of signals.

    Parameters
    ----------
    selection : Selection
        Feeds that are listed, or have input, are taken up as they appear; feeds that it selects no
        more are given up, with a snapshot.
    settings : WorkerSettings
        Of the process, and of feeds for which `settings_of` gives no others.
    url : str
        Of Redis.
    stop : Stop
    name : str, optional
        Stable name of this worker; default the host's name.
    accept_environment : bool
        As for `engine.service.run`.
    settings_of : callable, optional
        Returns the settings of a feed.
    observe : callable, optional
        Called with the name of a feed and the outcome of each batch that was committed.
    watch : FleetWatch, optional
        Is told what the process does.
    look : float
        Seconds between two looks at the list of feeds.
    pool : RefitPool, optional
        Computes the refits, where others use it too; by default one of its own does.
    known : KnownFeeds, optional
        As for `engine.service.run`.

    Raises
    ------
    BadConfiguration
        If more feeds are named than `max_feeds`, or the server cannot be used.
    AccessDenied
        If this user may not read the list of feeds, and a pattern needs it.
    Unavailable
        If Redis does not answer in the first place, for longer than `wait_redis`.
    """
    if len(selection.names) > settings.max_feeds:
        raise BadConfiguration(
            f"{len(selection.names)} feeds are named, and max_feeds is {settings.max_feeds}: give "
            "--max-feeds more, or name fewer"
        )
    with ExitStack() as opened:
        shared = opened.enter_context(
            _sharing(settings, url, stop, name, accept_environment, observe, pool, known)
        )
        if selection.patterns:
            shared.checks.check(permissions.of_patterns())
        with importing():
            load_compiler()
        # A command on a cluster has keys of one slot, which here is that of one feed.
        is_cluster = kind_of(url) == CLUSTER
        at_a_time = {"together": 1} if is_cluster else {}
        haste = HASTE if is_cluster else 0.0
        leases = opened.enter_context(
            Leases(url, shared.writer, settings.lease, stop.wake, **at_a_time)
        )
        reads = shared.connections[1]
        reader = (
            NodeReader(url, stop, reads, haste=haste)
            if is_cluster
            else SharedReader(url, stop, reads)
        )
        opened.callback(reader.close)
        looks = Connection(url, stop, 0.0, REPLY if is_cluster else TIMEOUT, haste)
        opened.callback(looks.close)
        outages = opened.enter_context(Outages(url, leases, stop.wake))
        registry = RegistryWatch(looks, selection, settings.max_feeds, shared.known, **at_a_time)
        opened.callback(registry.close)
        loop = FeedLoop(shared, leases, reader, outages)
        opened.callback(loop.collections.allow)
        told = watch or FleetWatch()
        hosts = _Hosts(loop, shared, selection, settings, settings_of, told)
        told.begins(shared.connections, settings.lease)
        looked = float("-inf")
        while not stop.requested:
            told.turns(leases.renewed)
            left = looked + look - time.monotonic()
            if left <= 0:
                hosts.follow(registry.look())
                looked, left = time.monotonic(), look
            loop.turn(left)
        told.ends()
        loop.end()


class _Hosts:
    """Takes up the feeds that are selected, and gives up those that no longer are."""

    def __init__(
        self,
        loop: FeedLoop,
        shared: Shared,
        selection: Selection,
        settings: WorkerSettings,
        settings_of: SettingsOf | None,
        watch: FleetWatch,
    ) -> None:
        self._loop, self._shared, self._selection = loop, shared, selection
        self._most = settings.max_feeds
        self._settings_of = settings_of or (lambda _feed: settings)
        self._watch = watch
        self._is_full = False

    def follow(self, selected: list[str]) -> None:
        """Serve these feeds, names before listed ones, `max_feeds` at most."""
        feeds = self._loop.feeds
        for feed in [feed for feed in feeds if not self._selection.selects(feed)]:
            log.info("feed given up: it is another process's now", feed=feed)
            self._loop.drop(feed)
            self._watch.gives_up(feed)
        named = [feed for feed in selected if feed in self._selection.names]
        listed = [feed for feed in selected if feed not in self._selection.names]
        new = [feed for feed in (*named, *listed) if feed not in feeds]
        room = max(0, self._most - len(feeds))
        if len(new) > room and not self._is_full:
            log.warning(
                "not all selected feeds are served: max_feeds is reached", max_feeds=self._most,
                not_served=len(new) - room,
            )  # fmt: skip
        elif self._is_full and len(new) <= room:
            log.info("all selected feeds are served again")
        self._is_full = len(new) > room
        for feed in new[:room]:
            settings = self._settings_of(feed)
            told = self._watch.takes(feed, settings)
            self._loop.add(HostedFeed(feed, settings, self._shared, told))


@contextmanager
def _sharing(
    settings: WorkerSettings,
    url: str,
    stop: Stop,
    name: str | None,
    accept_environment: bool,
    observe: Callable[[str, Outcome], None] | None,
    pool: RefitPool | None,
    known: KnownFeeds | None,
) -> Iterator[Shared]:
    """Check the server; open what all feeds share."""
    refits = _Refits(settings, stop, pool)
    is_cluster = kind_of(url) == CLUSTER
    # On a cluster a feed waits for its node aside, so that the feeds of other nodes go on.
    timeout, haste = (REPLY, HASTE) if is_cluster else (TIMEOUT, 0.0)
    commands = Connection(url, stop, settings.wait_redis, timeout)
    reads = Connection(url, stop, settings.wait_redis, timeout)
    fetcher = SnapshotFetcher(url, stop.wake)
    try:
        with FeedReader(url, "any", connections=(commands, reads)) as any_feed:
            server = any_feed.server()
            preflight.check_server(server, url)
            for warning in durability(any_feed, server):
                log.warning(warning)
        commands.patience = reads.patience = 0.0 if is_cluster else None
        commands.haste = reads.haste = haste
        with Checks(url, stop, timeout=timeout, haste=haste) as checks:
            yield Shared(
                url,
                (commands, reads),
                None if is_cluster else server,
                stop,
                name or platform.node() or "worker",
                refits,
                observe or _ignore,
                checks,
                ReplayBudget(settings.replay_budget),
                SettledSettings(SLICE),
                fetcher,
                known or KnownFeeds(url),
                accept_environment,
            )
    finally:
        fetcher.close()
        refits.close()
        commands.close()
        reads.close()


class _Refits:
    """Opens the refits of feeds: in one pool, which begins once a feed needs it.

    Parameters
    ----------
    settings : WorkerSettings
        Of the process: how many processes the pool has, and how much memory.
    stop : Stop
    pool : RefitPool or None
        That of others, to use in its place.
    """

    def __init__(self, settings: WorkerSettings, stop: Stop, pool: RefitPool | None) -> None:
        self._settings, self._stop, self._given = settings, stop, pool
        self._own: RefitPool | None = None

    def __call__(self, settings: WorkerSettings, told: Telemetry) -> PooledRefitter:
        pool = self._given or self._own
        if pool is None:
            pool = self._own = self._begun()
        return pool.refitter(settings.predictor, told, self._stop)

    def close(self) -> None:
        """End the processes."""
        if self._own is not None:
            self._own.close()

    def _begun(self) -> RefitPool:
        settings = self._settings
        given = "refit_processes" in settings.model_fields_set
        processes = settings.refit_processes if given else None
        return RefitPool(processes, self._stop, settings.refit_memory)


def _ignore(_feed: str, _outcome: Outcome) -> None:
    """Observe nothing."""
