"""The loop of a worker: one thread serves its feeds, and waits for all at once.

A turn of the loop asks the feeds of each state what they can do now (`feed_states`): answer feeds
that have input, for a few milliseconds, in fair turns; do a step of a feed that is taken over;
start blocked reads for feeds that wait for input; confirm the commits whose replies have arrived;
take snapshots that shorten the replays after a kill; wait until something arrives. No feed waits
for the refit, the consumers, the lease or the recovery of another.
"""

import functools
import os
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from workers.broker.client import TIMEOUT
from workers.broker.connection import Connection
from workers.broker.leases import Leases
from workers.broker.node_reader import NodeReader
from workers.broker.shared_reader import SharedReader, StreamRead
from workers.config.settings import WorkerSettings
from workers.feed.selection import Selection
from workers.log import Logger
from workers.monitor.watch import WorkerWatch
from workers.python_process import FullCollections
from workers.refit.pool import RefitPool
from workers.refit.process import Child
from workers.refit.refitter import PooledRefitter
from workers.runner.fair_turns import FairTurns
from workers.runner.feed_states import TaskState
from workers.runner.feed_task import (
    CONSUMERS_CHECK_SECONDS,
    FeedFactory,
    FeedTask,
    SnapshotFetcher,
    WorkerContext,
)
from workers.runner.redis_context import FAIL_FAST_SECONDS, REPLY_SECONDS, Outages, RedisContext
from workers.runner.registry_watch import RegistryWatch
from workers.session.answer import Outcome
from workers.session.snapshots import ReplayBudget
from workers.session.telemetry import Telemetry

log = Logger("online_svm.worker")

SERVE_SECONDS = 0.01  # seconds of answering in one turn of the loop

REFIT_CHECK_SECONDS = 0.05
"""Seconds between two checks of the refits that feeds wait for. A result also wakes the loop; the
check raises the priority of a refit that is awaited for so long."""

REPLAY_CHECK_SECONDS = 0.002  # seconds between two checks of the refits that replays wait for
MAX_STARTS = 4  # feeds that are taken over at a time; the others wait without using memory

UNCONFIRMED_SECONDS = 1.0
"""Seconds without the reply to a commit after which the loop blocks until it arrives."""

SPIN_SECONDS = 200e-6 if (os.cpu_count() or 1) > 1 else 0.0
"""Seconds of polling before the loop sleeps, if only one feed was served: a client that sends one
example at a time sends the next as soon as it has the answer, and polling saves a wake-up."""

IDLE_CHECKS_PER_SECOND = 20
"""Idle feeds whose input is checked each second, in turn: each of a thousand every 50 s."""


class FeedLoop:
    """Serves feeds until it is stopped."""

    def __init__(
        self, context: WorkerContext, leases: Leases, reader: SharedReader, outages: Outages
    ) -> None:
        self._context, self._leases, self._reader = context, leases, reader
        self._outages = outages
        self.feeds: dict[str, FeedTask] = {}
        # Each feed is in the group of its state, in the order in which the feeds reached it.
        self._groups: dict[TaskState, OrderedDict[str, FeedTask]]
        self._groups = {state: OrderedDict() for state in TaskState}
        self._group_of: dict[str, TaskState] = {}
        self._turns = FairTurns()  # of the feeds that are ready
        self._unconfirmed: dict[str, float] = {}  # by feed: when it last sent a commit
        self._uncovered_reads: dict[str, dict[str, StreamRead]] = {}  # by feed and key
        self._unlogged: list[FeedTask] = []  # parked since `log_parked`
        self._check_order: deque[str] = deque()  # of the inputs of idle feeds
        self._checked_at = time.monotonic()
        # Put off while feeds are taken over; the owner of the loop must allow them again.
        self.collections = FullCollections()
        self._failures, self._stalled = self._count_failures(), 0
        self._served: set[str] = set()  # since the last wait

    @property
    def failure(self) -> Exception | None:
        """The error of the first feed, if all feeds are parked because of errors."""
        if not self.feeds or len(self._groups[TaskState.PARKED]) < len(self.feeds):
            return None
        errors = [task.error for task in self.feeds.values()]
        return None if None in errors else errors[0]

    def log_parked(self) -> None:
        """Log the feeds that were parked since the last call."""
        unlogged, self._unlogged = self._unlogged, []
        for task in unlogged:
            again = max(0, round(task.retry_at - time.monotonic()))
            log.error("feed set aside", feed=task.feed, reason=task.reason, again_after=again)

    def add(self, task: FeedTask) -> None:
        """Serve another feed, as soon as its lease is held."""
        self.feeds[task.feed] = task
        self._check_order.append(task.feed)
        task.lease = self._leases.request(task.feed)
        self._settle(task)

    def remove(self, feed: str) -> None:
        """Take a snapshot of a feed and stop serving it."""
        task = self.feeds.pop(feed)
        self._drop_pending(feed)
        self._turns.discard(feed)
        self._outages.discard(feed)
        del self._groups[self._group_of.pop(feed)][feed]
        task.stop()
        self._release(task)

    def run_turn(self, max_wait: float) -> None:
        """Serve the feeds once; if there is nothing to do, wait for up to `max_wait` seconds."""
        self._follow_leases()
        self._retry()
        self._check_ownership()
        self._check_idle_feeds()
        self._answer()
        self._start_feeds()
        self._cover()
        self._confirm()
        self._bound_replays()
        self._wait(max_wait)

    def stop(self) -> None:
        """Take a snapshot of each feed, within the grace period, and release the leases."""
        self.collections.allow()
        self._confirm(is_forced=True)
        # While Redis stores the snapshot of one feed, the process makes the next one.
        stopping: FeedTask | None = None
        snapshots = 0
        for task in sorted(self.feeds.values(), key=lambda each: each.stop_order):
            task.send_stop_snapshot()
            if stopping is not None:
                snapshots += stopping.finish_stop()
            stopping = task
        if stopping is not None:
            snapshots += stopping.finish_stop()
        log.info("feeds stopped", feeds=len(self.feeds), with_snapshot=snapshots)
        leases = [task.lease for task in self.feeds.values() if task.lease is not None]
        self._leases.release(leases)

    def _follow_leases(self) -> None:
        """Tell feeds of their leases; check ownership after a lost lease."""
        for lease in self._leases.take_changes():
            task = self.feeds.get(lease.feed)
            if task is None or task.lease is not lease:
                continue
            if task.state in (TaskState.LEASE, TaskState.HELD):
                self._do(task, task.follow_lease)
            elif task.is_at_work:
                self._do(task, task.check_ownership)

    def _retry(self) -> None:
        """Request the leases of parked feeds whose retry time has come; resume silent feeds."""
        now, parked = time.monotonic(), self._groups[TaskState.PARKED]
        for task in [task for task in parked.values() if task.retry_at <= now]:
            task.lease = self._leases.request(task.feed)
            self._do(task, task.retry)
        for feed in self._outages.due():  # their node answers again
            self._do(self.feeds[feed], self.feeds[feed].resume)

    def _check_ownership(self) -> None:
        """After a lost connection, check that this process still owns every feed."""
        failures = self._count_failures()
        if failures == self._failures:
            return
        self._failures = failures
        for task in list(self.feeds.values()):
            if task.is_at_work:
                self._do(task, task.check_ownership)
        self._failures = self._count_failures()

    def _check_idle_feeds(self) -> None:
        """Check the input of a few idle feeds."""
        now = time.monotonic()
        due = int((now - self._checked_at) * IDLE_CHECKS_PER_SECOND)
        if not due:
            return
        self._checked_at = now
        for _ in range(min(due, IDLE_CHECKS_PER_SECOND, len(self._check_order))):
            feed = self._check_order.popleft()
            task = self.feeds.get(feed)
            if task is None:
                continue
            self._check_order.append(feed)
            if task.state is TaskState.IDLE and feed not in self._unconfirmed:
                self._do(task, task.idle)

    def _answer(self) -> None:
        """Answer feeds that have input, in fair turns."""
        for state in (TaskState.REFIT, TaskState.BLOCKED):
            for task in list(self._groups[state].values()):
                self._do(task, task.look)
        end = time.perf_counter() + SERVE_SECONDS
        while (next_feed := self._turns.next()) is not None:
            task = self.feeds[next_feed]
            began = time.perf_counter()
            task.work(is_alone=len(self._turns) == 1)
            now = time.perf_counter()
            self._turns.charge(next_feed, now - began, task.state is TaskState.READY)
            self._unconfirmed[next_feed] = time.monotonic()
            self._served.add(next_feed)
            self._settle(task)
            if now >= end:
                return

    def _start_feeds(self) -> None:
        """Do a step of one of the feeds that are taken over."""
        held, starting = self._groups[TaskState.HELD], self._groups[TaskState.STARTING]
        while held and len(starting) < MAX_STARTS:
            task = next(iter(held.values()))
            self._do(task, task.start)
        if not starting:
            self.collections.allow()
            return
        self.collections.put_off()
        task = next(iter(starting.values()))
        starting.move_to_end(task.feed)
        began = time.perf_counter()
        self._do(task, task.start_step)
        was_short = time.perf_counter() - began < 1e-4  # it waits for a refit
        self._stalled = self._stalled + 1 if was_short else 0

    def _confirm(self, is_forced: bool = False) -> None:
        """Confirm the commits of feeds that have nothing else to do and whose reply has arrived.

        After `UNCONFIRMED_SECONDS`, or if `is_forced`, wait for the reply; this also sends the
        commit again, or raises its error.
        """
        long_ago = time.monotonic() - UNCONFIRMED_SECONDS
        for feed, since in list(self._unconfirmed.items()):
            task = self.feeds[feed]
            if not is_forced:
                if task.state is TaskState.READY:
                    continue  # its next commit confirms this one
                if not task.can_confirm and since > long_ago:
                    continue
            del self._unconfirmed[feed]
            self._served.add(feed)
            if task.is_at_work or task.state is TaskState.STOPPED:
                self._do(task, task.finish_commit)

    def _bound_replays(self) -> None:
        """Take snapshots early while the replays after a kill would take too long."""
        replays, end = self._context.replays, time.perf_counter() + SERVE_SECONDS
        while replays.is_exceeded and time.perf_counter() < end:
            found = (self.feeds[feed] for feed in replays.largest())
            task = next((each for each in found if each.may_snapshot), None)
            if task is None:
                return
            self._do(task, task.take_snapshot)

    def _cover(self) -> None:
        """Start blocked reads for the feeds that wait for input."""
        if self._uncovered_reads and self._reader.has_room:
            uncovered, self._uncovered_reads = self._uncovered_reads, {}
            self._reader.cover([read for reads in uncovered.values() for read in reads.values()])

    def _wait(self, max_wait: float) -> None:
        """Wait until something arrives or changes; take what arrived."""
        commands = self._context.redis.commands
        descriptors = [*self._reader.descriptors, *commands.descriptors]
        seconds = self._seconds_to_wait(max_wait)
        ready = self._context.stop.wait_for(descriptors, seconds, self._spin())
        commands.read_arrived(ready)
        arrived, quiet = self._reader.arrivals(ready)
        for read, entries, may_be_more in arrived:
            task = self._uncover(read)
            if task is not None:
                read.input.put(entries, may_be_more)
                self._do(task, task.look)
        for read in quiet:
            task = self._uncover(read)
            if task is not None:
                self._request_read(task, read)

    def _uncover(self, read: StreamRead) -> FeedTask | None:
        """Mark a stream as uncovered; return its feed if the feed still waits for it."""
        task = self.feeds.get(read.feed)
        if task is None:
            return None
        task.covered.discard(read.input)
        return task if task.waits_for(read) else None

    def _spin(self) -> float:
        """Return how many seconds to poll first; 0 during a refit, which needs the processor."""
        served, self._served = self._served, set()
        if len(served) != 1:
            return 0.0
        task = self.feeds.get(served.pop())
        return 0.0 if task is None or task.is_refitting else SPIN_SECONDS

    def _seconds_to_wait(self, max_wait: float) -> float:
        groups = self._groups
        starting = groups[TaskState.STARTING]
        is_stalled = self._stalled > len(starting)
        can_cover = self._uncovered_reads and self._reader.has_room
        if len(self._turns) or can_cover or (starting and not is_stalled):
            return 0.0
        if starting:
            return min(max_wait, REPLAY_CHECK_SECONDS)
        if groups[TaskState.REFIT]:
            max_wait = min(max_wait, REFIT_CHECK_SECONDS)
        if groups[TaskState.BLOCKED]:
            max_wait = min(max_wait, CONSUMERS_CHECK_SECONDS)
        if self._unconfirmed:
            max_wait = min(max_wait, UNCONFIRMED_SECONDS)
        if groups[TaskState.PARKED]:
            first = min(task.retry_at for task in groups[TaskState.PARKED].values())
            max_wait = min(max_wait, first - time.monotonic())
        if self._outages:
            max_wait = min(max_wait, self._outages.seconds_left())
        return min(max_wait, self._reader.seconds_left)

    def _do(self, task: FeedTask, step: Callable[[], None]) -> None:
        """Do a step of a feed, then group the feed by the state that the step left it in."""
        step()
        self._settle(task)

    def _settle(self, task: FeedTask) -> None:
        """Group a feed by its state, after each step; do what the state needs on entry."""
        feed, state, before = task.feed, task.state, self._group_of.get(task.feed)
        if state is not before:
            if before is not None:
                del self._groups[before][feed]
            self._groups[state][feed] = task
            self._group_of[feed] = state
            if before is TaskState.SILENT:
                self._outages.discard(feed)
        if state is TaskState.READY:
            self._turns.add(feed)
            return
        self._turns.discard(feed)
        if state is TaskState.IDLE:
            for read in task.reads():
                self._request_read(task, read)
        elif state is TaskState.SILENT:
            self._drop_pending(feed)
            self._outages.add(feed, task.wait_replicas, task.reason or "")
        elif state is TaskState.PARKED:
            self._drop_pending(feed)
            self._unlogged.append(task)
            self._release(task)

    def _request_read(self, task: FeedTask, read: StreamRead) -> None:
        if read.input not in task.covered:
            task.covered.add(read.input)
            self._uncovered_reads.setdefault(task.feed, {})[read.key] = read

    def _drop_pending(self, feed: str) -> None:
        self._unconfirmed.pop(feed, None)
        self._uncovered_reads.pop(feed, None)

    def _release(self, task: FeedTask) -> None:
        lease, task.lease = task.lease, None
        if lease is not None:
            self._leases.release([lease])

    def _count_failures(self) -> int:
        redis = self._context.redis
        return redis.commands.failures + redis.reads.failures


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
            left = polled_at + poll_seconds - time.monotonic()
            if left <= 0:
                self._follow(self.registry.poll())
                polled_at, left = time.monotonic(), poll_seconds
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
        new = [feed for feed in selected if feed not in feeds]
        new.sort(key=lambda feed: feed not in self.selection.names)
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

    @functools.cache
    def own_pool() -> RefitPool:
        started = RefitPool(
            settings.refit_processes, redis.stop, settings.refit_memory, first=child
        )
        opened.callback(started.close)
        return started

    def refits(used: WorkerSettings, telemetry: Telemetry) -> PooledRefitter:
        return (pool or own_pool()).refitter(used.predictor, telemetry, redis.stop)

    with ExitStack() as opened:
        if child is not None:
            own_pool()
        fetcher = SnapshotFetcher(redis.url, redis.stop.wake)
        opened.callback(fetcher.close)
        budget = ReplayBudget(settings.replay_budget)
        yield WorkerContext(redis, writer, refits, observe, budget, fetcher)


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
