"""Add the selected feeds to the loop of a worker, and remove those that no longer are."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from time import monotonic

from workers.broker.client import TIMEOUT
from workers.broker.connection import Connection
from workers.broker.leases import Leases
from workers.broker.node_reader import NodeReader
from workers.broker.shared_reader import SharedReader
from workers.config.settings import WorkerSettings
from workers.feed.selection import Selection
from workers.log import Logger
from workers.monitor.watch import WorkerWatch
from workers.refit.pool import RefitPool
from workers.refit.process import Child
from workers.refit.refitter import PooledRefitter
from workers.runner.feed_task import FeedTask
from workers.runner.loop import FeedLoop
from workers.runner.opening import FeedFactory, SnapshotFetcher, WorkerContext
from workers.runner.outages import FAIL_FAST_SECONDS, REPLY_SECONDS, Outages
from workers.runner.redis_context import RedisContext
from workers.runner.registry_watch import RegistryWatch
from workers.session.answer import Outcome
from workers.session.snapshots import ReplayBudget
from workers.session.telemetry import Telemetry

log = Logger("online_svm.worker")


@dataclass(slots=True)
class FeedSupervisor:
    """Takes up the feeds that are selected, serves them, and gives up those that no longer are."""

    loop: FeedLoop
    context: WorkerContext
    selection: Selection
    max_feeds: int
    feed_factory: FeedFactory
    registry: RegistryWatch
    leases: Leases
    watch: WorkerWatch
    is_full: bool = False  # more feeds are selected than are served

    def serve(self, look: float) -> None:
        """Serve the feeds until a stop is requested, then leave snapshots.

        Raises WorkerError if feeds are named and none of them can go on: why the first one cannot.

        Parameters
        ----------
        look : float
            Seconds between two looks at which feeds are selected, and have a state; fewer where
            leases are short, so that a feed that this process waits for is known before it has it.
        """
        loop, looked = self.loop, float("-inf")
        look = min(look, self.leases.seconds / 2)
        self.watch.on_started()
        while not self.context.stop.requested:
            self.watch.on_tick(self.leases.renewed)
            left = looked + look - monotonic()
            if left <= 0:
                self._follow(self.registry.look())
                looked, left = monotonic(), look
            loop.turn(left)
            if not self.selection.patterns and (error := loop.failure) is not None:
                raise error
            loop.log_set_aside()
        self.watch.on_stopped()
        loop.end()

    def _follow(self, selected: list[str]) -> None:
        """Serve these feeds, names before listed ones, `max_feeds` at most."""
        feeds = self.loop.feeds
        for feed in [feed for feed in feeds if not self.selection.selects(feed)]:
            log.info("feed given up: it is another process's now", feed=feed)
            self.loop.drop(feed)
            self.watch.on_feed_removed(feed)
        named = [feed for feed in selected if feed in self.selection.names]
        listed = [feed for feed in selected if feed not in self.selection.names]
        new = [feed for feed in (*named, *listed) if feed not in feeds]
        room = max(0, self.max_feeds - len(feeds))
        if len(new) > room and not self.is_full:
            log.warning(
                "not all selected feeds are served: max_feeds is reached", max_feeds=self.max_feeds,
                not_served=len(new) - room,
            )  # fmt: skip
        elif self.is_full and len(new) <= room:
            log.info("all selected feeds are served again")
        self.is_full = len(new) > room
        for feed in new[:room]:
            opening = self.feed_factory(feed, self.context.redis)
            telemetry = self.watch.on_feed_added(feed, opening.settings, opening.source)
            self.loop.add(FeedTask(feed, opening, self.context, telemetry))


@contextmanager
def worker_context(
    redis: RedisContext,
    settings: WorkerSettings,
    writer: str,
    observe: Callable[[str, Outcome], None] | None,
    pool: RefitPool | None,
    child: Child | None,
) -> Iterator[WorkerContext]:
    """Open what the feeds of a process share; see `service.Worker`.

    `child` is a refit process that was started early: the first one of a pool of its own.
    """
    own: list[RefitPool] = []  # a pool that begins once a feed needs it

    def begin(first: Child | None) -> RefitPool:
        made = RefitPool(settings.refit_processes, redis.stop, settings.refit_memory, first=first)
        opened.callback(made.close)
        own.append(made)
        return made

    def refits(used: WorkerSettings, telemetry: Telemetry) -> PooledRefitter:
        shared = pool or (own[0] if own else begin(None))
        return shared.refitter(used.predictor, telemetry, redis.stop)

    with ExitStack() as opened:
        if child is not None:
            begin(child)
        fetcher = SnapshotFetcher(redis.url, redis.stop.wake)
        opened.callback(fetcher.close)
        budget = ReplayBudget(settings.replay_budget)
        yield WorkerContext(redis, writer, refits, observe or _ignore, budget, fetcher)


@contextmanager
def feed_supervisor(
    selection: Selection,
    settings: WorkerSettings,
    feed_factory: FeedFactory,
    context: WorkerContext,
    watch: WorkerWatch,
) -> Iterator[FeedSupervisor]:
    """Open what serves the selected feeds of a process; see `service.Worker`."""
    redis, url, stop = context.redis, context.redis.url, context.stop
    # A command on a cluster has keys of one slot, and the keys of one feed share a slot.
    per_call = {"feeds_per_call": 1} if redis.is_cluster else {}
    fail_fast_for = FAIL_FAST_SECONDS if redis.is_cluster else 0.0
    with ExitStack() as opened:
        leases = opened.enter_context(
            Leases(url, context.writer, settings.lease, stop.wake, **per_call)
        )
        reader = (
            NodeReader(redis.reads, fail_fast_for=fail_fast_for)
            if redis.is_cluster
            else SharedReader(redis.reads)
        )
        opened.callback(reader.close)
        looks = Connection(
            url, stop, 0.0, REPLY_SECONDS if redis.is_cluster else TIMEOUT, fail_fast_for
        )
        opened.callback(looks.close)
        outages = opened.enter_context(Outages(url, leases, stop.wake))
        registry = RegistryWatch(looks, selection, settings.max_feeds, redis.known, **per_call)
        opened.callback(registry.close)
        loop = FeedLoop(context, leases, reader, outages)
        opened.callback(loop.collections.allow)
        yield FeedSupervisor(
            loop, context, selection, settings.max_feeds, feed_factory, registry, leases, watch
        )


def _ignore(_feed: str, _outcome: Outcome) -> None:
    """Observe nothing."""
