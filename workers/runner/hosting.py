"""Hosting of feeds: which of them a process serves, in one loop, and all that they share."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic

from workers.broker.client import TIMEOUT
from workers.broker.connection import Connection
from workers.broker.leases import Leases
from workers.config.settings import WorkerSettings
from workers.feed.selection import Selection
from workers.log import Logger
from workers.monitor.watch import WorkerWatch
from workers.refit.child import Child
from workers.refit.pool import RefitPool
from workers.refit.pooled_refitter import PooledRefitter
from workers.runner.hosted_feed import HostedFeed
from workers.runner.link import Link
from workers.runner.loop import FeedLoop
from workers.runner.node_reader import NodeReader
from workers.runner.opening import Opens, Shared
from workers.runner.outages import HASTE, REPLY, Outages
from workers.runner.registry_watch import RegistryWatch
from workers.runner.replay_budget import ReplayBudget
from workers.runner.shared_reader import SharedReader
from workers.runner.snapshot_fetcher import SnapshotFetcher
from workers.session.answer import Outcome
from workers.session.telemetry import Telemetry
from workers.stop import Stop

log = Logger("online_svm.worker")


class Hosting:
    """Takes up the feeds that are selected, serves them, and gives up those that no longer are.

    Parameters
    ----------
    loop : FeedLoop
    shared : Shared
    selection : Selection
    settings : WorkerSettings
        Of the process.
    opens : callable
        Returns the opening of a feed.
    registry : RegistryWatch
    leases : Leases
    watch : WorkerWatch
    """

    def __init__(
        self,
        loop: FeedLoop,
        shared: Shared,
        selection: Selection,
        settings: WorkerSettings,
        opens: Opens,
        registry: RegistryWatch,
        leases: Leases,
        watch: WorkerWatch,
    ) -> None:
        self._loop, self._shared, self._selection = loop, shared, selection
        self._most, self._opens = settings.max_feeds, opens
        self._registry, self._leases, self._watch = registry, leases, watch
        self._is_full = False

    def serve(self, look: float) -> None:
        """Serve the feeds until a stop is requested, then leave snapshots.

        Parameters
        ----------
        look : float
            Seconds between two looks at which feeds are selected, and have a state; fewer where
            leases are short, so that a feed that this process waits for is known before it has it.

        Raises
        ------
        WorkerError
            If feeds are named and none of them can go on: why the first one cannot.
        """
        loop, looked = self._loop, float("-inf")
        look = min(look, self._leases.seconds / 2)
        self._watch.begins()
        while not self._shared.stop.requested:
            self._watch.turns(self._leases.renewed)
            left = looked + look - monotonic()
            if left <= 0:
                self._follow(self._registry.look())
                looked, left = monotonic(), look
            loop.turn(left)
            if not self._selection.patterns and (error := loop.failure) is not None:
                raise error
            loop.tell_aside()
        self._watch.ends()
        loop.end()

    def _follow(self, selected: list[str]) -> None:
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
            opening = self._opens(feed, self._shared.link)
            told = self._watch.takes(feed, opening.settings, opening.source)
            self._loop.add(HostedFeed(feed, opening, self._shared, told))


@contextmanager
def hosting(
    selection: Selection,
    settings: WorkerSettings,
    opens: Opens,
    link: Link,
    writer: str,
    observe: Callable[[str, Outcome], None] | None,
    watch: WorkerWatch,
    pool: RefitPool | None = None,
    child: Child | None = None,
) -> Iterator[Hosting]:
    """Open what the feeds of a process share; see `service.run`.

    Parameters
    ----------
    selection, settings, opens, observe, watch, pool
        As for `service.run`.
    link : Link
    writer : str
        Name of this worker, for people.
    child : Child, optional
        A refit process that was begun early.
    """
    url, stop = link.url, link.stop
    # A command on a cluster has keys of one slot, which here is that of one feed.
    at_a_time = {"together": 1} if link.is_cluster else {}
    haste = HASTE if link.is_cluster else 0.0
    with ExitStack() as opened:
        refits = _Refits(settings, stop, pool, child)
        opened.callback(refits.close)
        fetcher = SnapshotFetcher(url, stop.wake)
        opened.callback(fetcher.close)
        shared = Shared(
            link, writer, refits, observe or _ignore, ReplayBudget(settings.replay_budget), fetcher
        )
        leases = opened.enter_context(Leases(url, writer, settings.lease, stop.wake, **at_a_time))
        reader = (
            NodeReader(url, stop, link.reads, haste=haste)
            if link.is_cluster
            else SharedReader(url, stop, link.reads)
        )
        opened.callback(reader.close)
        looks = Connection(url, stop, 0.0, REPLY if link.is_cluster else TIMEOUT, haste)
        opened.callback(looks.close)
        outages = opened.enter_context(Outages(url, leases, stop.wake))
        registry = RegistryWatch(looks, selection, settings.max_feeds, link.known, **at_a_time)
        opened.callback(registry.close)
        loop = FeedLoop(shared, leases, reader, outages)
        opened.callback(loop.collections.allow)
        yield Hosting(loop, shared, selection, settings, opens, registry, leases, watch)


class _Refits:
    """Opens the refits of feeds: in one pool, which begins once a feed needs it.

    Parameters
    ----------
    settings : WorkerSettings
        Of the process: how many processes the pool has, and how much memory.
    stop : Stop
    pool : RefitPool or None
        That of others, to use in its place.
    child : Child or None
        A process that was begun early: the first one of the pool.
    """

    def __init__(
        self, settings: WorkerSettings, stop: Stop, pool: RefitPool | None, child: Child | None
    ) -> None:
        self._settings, self._stop, self._given = settings, stop, pool
        self._own: RefitPool | None = None if child is None else self._begun(child)

    def __call__(self, settings: WorkerSettings, told: Telemetry) -> PooledRefitter:
        pool = self._given or self._own
        if pool is None:
            pool = self._own = self._begun(None)
        return pool.refitter(settings.predictor, told, self._stop)

    def close(self) -> None:
        """End the processes."""
        if self._own is not None:
            self._own.close()

    def _begun(self, child: Child | None) -> RefitPool:
        settings = self._settings
        return RefitPool(settings.refit_processes, self._stop, settings.refit_memory, first=child)


def _ignore(_feed: str, _outcome: Outcome) -> None:
    """Observe nothing."""
