"""Add selected feeds to the loop of a worker; remove feeds that are no longer selected."""

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
    """Serves the selected feeds, as the selection changes."""

    loop: FeedLoop
    context: WorkerContext
    selection: Selection
    max_feeds: int
    feed_factory: FeedFactory
    registry: RegistryWatch
    leases: Leases
    watch: WorkerWatch
    is_full: bool = False  # whether more feeds are selected than served

    def serve(self, poll_seconds: float) -> None:
        """Serve the feeds until a stop is requested, then take snapshots.

        Every `poll_seconds` it checks which feeds are selected; more often with short leases, so
        that it knows of a feed before the lease of another process lapses. If only names are
        selected and all their feeds are parked, it raises the error of the first.
        """
        loop, polled_at = self.loop, float("-inf")
        poll_seconds = min(poll_seconds, self.leases.seconds / 2)
        self.watch.on_started()
        while not self.context.stop.requested:
            self.watch.on_tick(self.leases.renewed)
            left = polled_at + poll_seconds - monotonic()
            if left <= 0:
                self._follow(self.registry.poll())
                polled_at, left = monotonic(), poll_seconds
            loop.run_turn(left)
            if not self.selection.patterns and (error := loop.failure) is not None:
                raise error
            loop.log_parked()
        self.watch.on_stopped()
        loop.stop()

    def _follow(self, selected: list[str]) -> None:
        """Serve at most `max_feeds` of these feeds, named ones first."""
        feeds = self.loop.feeds
        for feed in [feed for feed in feeds if not self.selection.selects(feed)]:
            log.info("feed given up: it is another process's now", feed=feed)
            self.loop.remove(feed)
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
            telemetry = self.watch.on_feed_added(feed, opening.settings)
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
    """Open the resources that the feeds of a process share; see `service.Worker`.

    Without a `pool`, the first feed that needs one starts one; `child`, a refit process that was
    started early, starts one at once.
    """
    own_pool: list[RefitPool] = []

    def start_pool(first: Child | None) -> RefitPool:
        started = RefitPool(
            settings.refit_processes, redis.stop, settings.refit_memory, first=first
        )
        opened.callback(started.close)
        own_pool.append(started)
        return started

    def refits(used: WorkerSettings, telemetry: Telemetry) -> PooledRefitter:
        shared = pool or (own_pool[0] if own_pool else start_pool(None))
        return shared.refitter(used.predictor, telemetry, redis.stop)

    with ExitStack() as opened:
        if child is not None:
            start_pool(child)
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
    """Open the supervisor of a process; see `service.Worker`."""
    redis, url, stop = context.redis, context.redis.url, context.stop
    # On a cluster, all keys of a command must be in one slot; those of one feed are.
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
        polls = Connection(
            url, stop, 0.0, REPLY_SECONDS if redis.is_cluster else TIMEOUT, fail_fast_for
        )
        opened.callback(polls.close)
        outages = opened.enter_context(Outages(url, leases, stop.wake))
        registry = RegistryWatch(polls, selection, settings.max_feeds, redis.known, **per_call)
        opened.callback(registry.close)
        loop = FeedLoop(context, leases, reader, outages)
        opened.callback(loop.collections.allow)
        yield FeedSupervisor(
            loop, context, selection, settings.max_feeds, feed_factory, registry, leases, watch
        )


def _ignore(_feed: str, _outcome: Outcome) -> None:
    pass
