"""The loop of a worker: one thread serves its feeds, and waits for all at once.

A turn of the loop: answer feeds that have input, for a few milliseconds, in fair turns; do a step
of a feed that is taken over; start blocked reads for feeds that wait for input; confirm the commits
whose replies have arrived; take snapshots that shorten the replays after a kill; wait until
something arrives. No feed waits for the refit, the consumers, the lease or the recovery of another.
"""

import os
import time
from collections import deque

from workers.broker.leases import Leases
from workers.broker.shared_reader import SharedReader, StreamRead
from workers.errors import WrongKeyType
from workers.log import Logger
from workers.python_process import FullCollections
from workers.runner.fair_turns import FairTurns
from workers.runner.feed_task import FeedTask, Need
from workers.runner.opening import WorkerContext
from workers.runner.outages import Outages
from workers.session.flow_control import CHECK_SECONDS

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
    """Serves feeds until it is stopped.

    Attributes
    ----------
    collections : FullCollections
        Put off while feeds are taken over; the owner of the loop must allow them again.
    """

    def __init__(
        self, context: WorkerContext, leases: Leases, reader: SharedReader, outages: Outages
    ) -> None:
        self._context, self._leases, self._reader = context, leases, reader
        self._outages = outages
        self.feeds: dict[str, FeedTask] = {}
        self._turns = FairTurns()
        self._unconfirmed: dict[str, float] = {}  # by feed: when it last sent a commit
        self._uncovered_reads: dict[str, dict[str, StreamRead]] = {}  # by feed and key
        self._waiting_for_refit: set[str] = set()
        self._waiting_for_consumers: set[str] = set()
        self._startable: deque[str] = deque()  # their lease is held
        self._starting: deque[str] = deque()
        self._parked: set[str] = set()
        self._unlogged: list[FeedTask] = []  # parked since `log_parked`
        self._check_order: deque[str] = deque()  # of the inputs of idle feeds
        self._checked_at = time.monotonic()
        self.collections = FullCollections()
        self._failures, self._stalled = self._count_failures(), 0
        self._served: set[str] = set()  # since the last wait

    @property
    def failure(self) -> Exception | None:
        """The error of the first feed, if all feeds are parked because of errors."""
        if not self.feeds or len(self._parked) < len(self.feeds):
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
        self._request_lease(task)

    def remove(self, feed: str) -> None:
        """Take a snapshot of a feed and stop serving it."""
        task = self.feeds.pop(feed)
        self._dequeue(feed)
        self._parked.discard(feed)
        self._outages.discard(feed)
        task.stop()
        self._release(task)

    def run_turn(self, max_wait: float) -> None:
        """Serve the feeds once; if there is nothing to do, wait for up to `max_wait` seconds."""
        self._follow_leases()
        self._retry_parked()
        self._resume_waiting()
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

    def _request_lease(self, task: FeedTask) -> None:
        task.stage = "lease"
        task.lease = self._leases.request(task.feed)

    def _follow_leases(self) -> None:
        """Queue feeds whose lease was acquired; check ownership after a lost lease."""
        for lease in self._leases.take_changes():
            task = self.feeds.get(lease.feed)
            if task is None or task.lease is not lease:
                continue
            if task.stage == "lease" and lease.problem is not None:
                task.park(WrongKeyType(lease.problem))
                self._enqueue(task, "nothing")
            elif task.stage == "lease" and lease.is_held and lease.feed not in self._startable:
                self._startable.append(lease.feed)
            elif task.stage == "lease" and lease.holder:
                task.stand_by()
            elif task.stage == "working":
                self._enqueue(task, task.check_ownership())

    def _retry_parked(self) -> None:
        """Request the leases of parked feeds whose retry time has come."""
        if not self._parked:
            return
        now = time.monotonic()
        for feed in [feed for feed in self._parked if self.feeds[feed].retry_at <= now]:
            self._parked.remove(feed)
            self._request_lease(self.feeds[feed])

    def _resume_waiting(self) -> None:
        """Resume feeds whose node answers again."""
        for feed in self._outages.due() if self._outages else ():
            task = self.feeds[feed]
            self._enqueue(task, task.resume())
            if task.stage != "waiting":
                self._outages.discard(feed)

    def _check_ownership(self) -> None:
        """After a lost connection, check that this process still owns every feed."""
        failures = self._count_failures()
        if failures == self._failures:
            return
        self._failures = failures
        for task in list(self.feeds.values()):
            if task.stage == "working":
                self._enqueue(task, task.check_ownership())
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
            if task.stage == "working" and feed not in self._unconfirmed and task.need() == "input":
                self._enqueue(task, task.idle())

    def _answer(self) -> None:
        """Answer feeds that have input, in fair turns."""
        for feed in (*self._waiting_for_refit, *self._waiting_for_consumers):
            self._enqueue(self.feeds[feed], self.feeds[feed].need())
        end = time.perf_counter() + SERVE_SECONDS
        while (next_feed := self._turns.next()) is not None:
            task = self.feeds[next_feed]
            began = time.perf_counter()
            need = task.work(is_alone=len(self._turns) == 1)
            now = time.perf_counter()
            self._turns.charge(next_feed, now - began, need == "turn")
            self._unconfirmed[next_feed] = time.monotonic()
            self._served.add(next_feed)
            self._enqueue(task, need)
            if now >= end:
                return

    def _start_feeds(self) -> None:
        """Do a step of one of the feeds that are taken over."""
        while self._startable and len(self._starting) < MAX_STARTS:
            feed = self._startable.popleft()
            if feed in self.feeds and self.feeds[feed].stage == "lease":
                self.feeds[feed].start()
                self._starting.append(feed)
        if not self._starting:
            self.collections.allow()
            return
        self.collections.put_off()
        task = self.feeds[self._starting.popleft()]
        began = time.perf_counter()
        self._enqueue(task, task.start_step())
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
                if feed in self._turns:
                    continue  # its next commit confirms this one
                if not task.can_confirm and since > long_ago:
                    continue
            del self._unconfirmed[feed]
            self._served.add(feed)
            if task.stage == "working":
                self._enqueue(task, task.finish_commit())

    def _bound_replays(self) -> None:
        """Take snapshots early while the replays after a kill would take too long."""
        replays, end = self._context.replays, time.perf_counter() + SERVE_SECONDS
        while replays.is_exceeded and time.perf_counter() < end:
            found = (self.feeds[feed] for feed in replays.largest())
            task = next((each for each in found if each.may_snapshot), None)
            if task is None:
                return
            self._enqueue(task, task.take_snapshot())

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
                self._enqueue(task, task.need())
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
        is_stalled = self._stalled > len(self._starting)
        can_cover = self._uncovered_reads and self._reader.has_room
        if len(self._turns) or can_cover or (self._starting and not is_stalled):
            return 0.0
        if self._starting:
            return min(max_wait, REPLAY_CHECK_SECONDS)
        if self._waiting_for_refit:
            max_wait = min(max_wait, REFIT_CHECK_SECONDS)
        if self._waiting_for_consumers:
            max_wait = min(max_wait, CHECK_SECONDS)
        if self._unconfirmed:
            max_wait = min(max_wait, UNCONFIRMED_SECONDS)
        if self._parked:
            first = min(self.feeds[feed].retry_at for feed in self._parked)
            max_wait = min(max_wait, first - time.monotonic())
        if self._outages:
            max_wait = min(max_wait, self._outages.seconds_left())
        return min(max_wait, self._reader.seconds_left)

    def _enqueue(self, task: FeedTask, need: Need) -> None:
        """Put a feed into the queue for what it needs."""
        feed = task.feed
        queues = ((self._waiting_for_refit, "refit"), (self._waiting_for_consumers, "consumers"))
        for waiting, reason in queues:
            waiting.add(feed) if need == reason else waiting.discard(feed)
        if need == "turn":
            self._turns.add(feed)
            return
        self._turns.discard(feed)
        if need == "input":
            for read in task.reads():
                self._request_read(task, read)
        elif need == "recovery":
            if feed not in self._starting:
                self._starting.append(feed)
        elif task.stage == "waiting":
            self._dequeue(feed)
            self._outages.add(feed, task.wait_replicas, task.reason or "")
        elif task.stage == "parked":
            self._dequeue(feed)
            self._parked.add(feed)
            self._unlogged.append(task)
            self._release(task)

    def _request_read(self, task: FeedTask, read: StreamRead) -> None:
        if read.input not in task.covered:
            task.covered.add(read.input)
            self._uncovered_reads.setdefault(task.feed, {})[read.key] = read

    def _dequeue(self, feed: str) -> None:
        """Remove a feed from all queues."""
        self._turns.discard(feed)
        self._waiting_for_refit.discard(feed)
        self._waiting_for_consumers.discard(feed)
        self._unconfirmed.pop(feed, None)
        self._uncovered_reads.pop(feed, None)
        for queue in (self._startable, self._starting):
            if feed in queue:
                queue.remove(feed)

    def _release(self, task: FeedTask) -> None:
        lease, task.lease = task.lease, None
        if lease is not None:
            self._leases.release([lease])

    def _count_failures(self) -> int:
        redis = self._context.redis
        return redis.commands.failures + redis.reads.failures
