"""The loop of a worker: one thread serves its feeds, and waits for all at once.

A turn: answer feeds that have input, in fair turns, for a few milliseconds; do a step of those that
are taken over; confirm the commits whose replies have come; leave snapshots that bound the replays
after a kill; let the blocked reads cover the feeds that wait for input; wait until something
arrives. No feed waits for the refit, the consumers, the lease or the recovery of another.
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

SERVE_SECONDS = 0.01
"""Seconds of answering before the loop looks at what arrived meanwhile."""

REFIT_CHECK_SECONDS = 0.05
"""Seconds between two looks at refits that feeds wait for. A result wakes the loop; one that is
awaited for so long gets more of the processor."""

REPLAY_CHECK_SECONDS = 0.002
"""Seconds between two looks at refits that replays wait for."""

MAX_STARTS = 4
"""Feeds that are taken over at a time; the others wait without using memory."""

UNCONFIRMED_SECONDS = 1.0
"""Seconds without the reply to a commit after which the loop waits for it, and for nothing else."""

SPIN_SECONDS = 200e-6 if (os.cpu_count() or 1) > 1 else 0.0
"""Seconds of polling before the loop sleeps, where one feed was served: a client that sends one
example at a time sends the next as soon as it has the answer, and saves a wake-up so."""

IDLE_CHECKS_A_SECOND = 20
"""Idle feeds whose input is checked each second, one after the other: of a thousand each is checked
once in 50 s."""


class FeedLoop:
    """Serves feeds until it is stopped.

    Attributes
    ----------
    collections : FullCollections
        Put off while feeds are taken over. The owner of the loop allows them again at its end.
    """

    def __init__(
        self, context: WorkerContext, leases: Leases, reader: SharedReader, outages: Outages
    ) -> None:
        self._context, self._leases, self._reader = context, leases, reader
        self._outages = outages
        self.feeds: dict[str, FeedTask] = {}
        self._turns = FairTurns()
        self._sent: dict[str, float] = {}  # since when a commit of theirs may be unconfirmed
        self._uncovered_reads: dict[str, dict[str, StreamRead]] = {}  # by key
        self._awaiting: set[str] = set()  # they wait for a refit
        self._blocked: set[str] = set()  # they wait for their consumers
        self._due: deque[str] = deque()  # they hold their lease, and are not begun
        self._starting: deque[str] = deque()
        self._aside: set[str] = set()
        self._unlogged: list[FeedTask] = []  # parked since `log_set_aside`
        self._idle: deque[str] = deque()  # in the order in which their input is checked
        self._checked_at = time.monotonic()
        self.collections = FullCollections()
        self._failures, self._stalled = self._count_failures(), 0
        self._served: set[str] = set()  # since the last wait

    @property
    def failure(self) -> Exception | None:
        """Why the first feed cannot go on, where none can; None where any waits or is answered."""
        if not self.feeds or len(self._aside) < len(self.feeds):
            return None
        errors = [task.error for task in self.feeds.values()]
        return None if None in errors else errors[0]

    def log_set_aside(self) -> None:
        """Log which feeds were parked since the last call."""
        unlogged, self._unlogged = self._unlogged, []
        for task in unlogged:
            again = max(0, round(task.retry_at - time.monotonic()))
            log.error("feed set aside", feed=task.feed, reason=task.reason, again_after=again)

    def add(self, task: FeedTask) -> None:
        """Serve another feed, as soon as its lease is held."""
        self.feeds[task.feed] = task
        self._idle.append(task.feed)
        self._ask(task)

    def drop(self, feed: str) -> None:
        """Leave a snapshot of a feed, and serve it no more."""
        task = self.feeds.pop(feed)
        self._forget(feed)
        self._aside.discard(feed)
        self._outages.discard(feed)
        task.end()
        self._release(task)

    def turn(self, longest: float) -> None:
        """Serve the feeds once; wait for at most so many seconds if there is nothing to do."""
        self._follow_leases()
        self._try_again()
        self._resume()
        self._check_doubts()
        self._check_some()
        self._answer()
        self._start_some()
        self._cover()
        self._confirm()
        self._bound_replays()
        self._wait(longest)

    def end(self) -> None:
        """Leave a snapshot of each feed, within the grace period, and give up the leases."""
        self.collections.allow()
        self._confirm(all_of_them=True)
        # While Redis stores the snapshot of one feed, the process makes the next snapshot.
        ending: FeedTask | None = None
        snapshots = 0
        for task in sorted(self.feeds.values(), key=lambda each: each.stop_order):
            task.begin_end()
            if ending is not None:
                snapshots += ending.finish_end()
            ending = task
        if ending is not None:
            snapshots += ending.finish_end()
        log.info("feeds stopped", feeds=len(self.feeds), with_snapshot=snapshots)
        leases = [task.lease for task in self.feeds.values() if task.lease is not None]
        self._leases.release(leases)

    def _ask(self, task: FeedTask) -> None:
        task.stage = "lease"
        task.lease = self._leases.request(task.feed)

    def _follow_leases(self) -> None:
        """Begin the feeds whose lease was acquired; doubt those whose lease was lost."""
        for lease in self._leases.take_changes():
            task = self.feeds.get(lease.feed)
            if task is None or task.lease is not lease:
                continue
            if task.stage == "lease" and lease.problem is not None:
                task.fail(WrongKeyType(lease.problem))
                self._place(task, "nothing")
            elif task.stage == "lease" and lease.is_held and lease.feed not in self._due:
                self._due.append(lease.feed)
            elif task.stage == "lease" and lease.holder:
                task.stand_by()
            elif task.stage == "working":
                self._place(task, task.check_ownership())

    def _try_again(self) -> None:
        """Request the leases of parked feeds whose retry time has come."""
        if not self._aside:
            return
        now = time.monotonic()
        for feed in [feed for feed in self._aside if self.feeds[feed].retry_at <= now]:
            self._aside.remove(feed)
            self._ask(self.feeds[feed])

    def _resume(self) -> None:
        """Go on with feeds whose node answers again."""
        for feed in self._outages.due() if self._outages else ():
            task = self.feeds[feed]
            self._place(task, task.resume())
            if task.stage != "waiting":
                self._outages.discard(feed)

    def _check_doubts(self) -> None:
        """After a lost connection, check that every feed is still this process's."""
        failures = self._count_failures()
        if failures == self._failures:
            return
        self._failures = failures
        for task in list(self.feeds.values()):
            if task.stage == "working":
                self._place(task, task.check_ownership())
        self._failures = self._count_failures()

    def _check_some(self) -> None:
        """Check the input of a few of the feeds that are idle."""
        now = time.monotonic()
        due = int((now - self._checked_at) * IDLE_CHECKS_A_SECOND)
        if not due:
            return
        self._checked_at = now
        for _ in range(min(due, IDLE_CHECKS_A_SECOND, len(self._idle))):
            feed = self._idle.popleft()
            task = self.feeds.get(feed)
            if task is None:
                continue
            self._idle.append(feed)
            if task.stage == "working" and feed not in self._sent and task.need() == "input":
                self._place(task, task.idle())

    def _answer(self) -> None:
        """Answer feeds that have input, in fair turns."""
        for waiting in (*self._awaiting, *self._blocked):
            self._place(self.feeds[waiting], self.feeds[waiting].need())
        end = time.perf_counter() + SERVE_SECONDS
        while (feed := self._turns.next()) is not None:
            task = self.feeds[feed]
            began = time.perf_counter()
            need = task.work(is_alone=len(self._turns) == 1)
            now = time.perf_counter()
            self._turns.charge(feed, now - began, need == "turn")
            self._sent[feed] = time.monotonic()
            self._served.add(feed)
            self._place(task, need)
            if now >= end:
                return

    def _start_some(self) -> None:
        """Do a step of one of the feeds that are taken over."""
        while self._due and len(self._starting) < MAX_STARTS:
            feed = self._due.popleft()
            if feed in self.feeds and self.feeds[feed].stage == "lease":
                self.feeds[feed].begin()
                self._starting.append(feed)
        if not self._starting:
            self.collections.allow()
            return
        self.collections.put_off()
        task = self.feeds[self._starting.popleft()]
        began = time.perf_counter()
        self._place(task, task.start_some())
        was_short = time.perf_counter() - began < 1e-4  # it waits for a refit
        self._stalled = self._stalled + 1 if was_short else 0

    def _confirm(self, all_of_them: bool = False) -> None:
        """Confirm the commits of feeds that have nothing else to do, where the replies have come.

        While Redis works on one, the others are served. A reply that does not come is waited for
        at last, which tries again, or finds what is wrong.
        """
        long_ago = time.monotonic() - UNCONFIRMED_SECONDS
        for feed, since in list(self._sent.items()):
            task = self.feeds[feed]
            if not all_of_them:
                if feed in self._turns:
                    continue  # its next commit confirms this one
                if not task.can_confirm and since > long_ago:
                    continue
            del self._sent[feed]
            self._served.add(feed)
            if task.stage == "working":
                self._place(task, task.finish_commit())

    def _bound_replays(self) -> None:
        """Let feeds leave snapshots early while a kill would cost too long replays."""
        replays, end = self._context.replays, time.perf_counter() + SERVE_SECONDS
        while replays.is_exceeded and time.perf_counter() < end:
            found = (self.feeds[feed] for feed in replays.largest())
            task = next((each for each in found if each.may_snapshot), None)
            if task is None:
                return
            self._place(task, task.keep())

    def _cover(self) -> None:
        """Let blocked reads wait for the input of feeds that have none."""
        if self._uncovered_reads and self._reader.has_room:
            uncovered, self._uncovered_reads = self._uncovered_reads, {}
            self._reader.cover([one for of_feed in uncovered.values() for one in of_feed.values()])

    def _wait(self, longest: float) -> None:
        """Wait until something arrives or changes; take what arrived."""
        commands = self._context.redis.commands
        descriptors = [*self._reader.descriptors, *commands.descriptors]
        seconds = self._seconds_to_wait(longest)
        ready = self._context.stop.wait_for(descriptors, seconds, self._spin())
        commands.read_arrived(ready)
        arrived, quiet = self._reader.arrivals(ready)
        for read, entries, may_be_more in arrived:
            task = self._uncovered(read)
            if task is not None:
                read.input.put(entries, may_be_more)
                self._place(task, task.need())
        for read in quiet:
            task = self._uncovered(read)
            if task is not None:
                self._want(task, read)

    def _uncovered(self, read: StreamRead) -> FeedTask | None:
        """Note that no read covers a stream any more; return the feed if it still waits for it."""
        task = self.feeds.get(read.feed)
        if task is None:
            return None
        task.covered.discard(read.input)
        return task if task.waits_for(read) else None

    def _spin(self) -> float:
        """Return how many seconds to poll first; a refit needs the processor more."""
        served, self._served = self._served, set()
        if len(served) != 1:
            return 0.0
        task = self.feeds.get(served.pop())
        return 0.0 if task is None or task.is_refitting else SPIN_SECONDS

    def _seconds_to_wait(self, longest: float) -> float:
        """Return how many seconds the loop may wait."""
        is_stalled = self._stalled > len(self._starting)
        is_waiting = self._uncovered_reads and self._reader.has_room
        if len(self._turns) or is_waiting or (self._starting and not is_stalled):
            return 0.0
        if self._starting:
            return min(longest, REPLAY_CHECK_SECONDS)
        if self._awaiting:
            longest = min(longest, REFIT_CHECK_SECONDS)
        if self._blocked:
            longest = min(longest, CHECK_SECONDS)
        if self._sent:
            longest = min(longest, UNCONFIRMED_SECONDS)
        if self._aside:
            first = min(self.feeds[feed].retry_at for feed in self._aside)
            longest = min(longest, first - time.monotonic())
        if self._outages:
            longest = min(longest, self._outages.seconds_left())
        return min(longest, self._reader.seconds_left)

    def _place(self, task: FeedTask, need: Need) -> None:
        """Put a feed where it waits for what it needs."""
        feed = task.feed
        for waiting, reason in ((self._awaiting, "refit"), (self._blocked, "consumers")):
            waiting.add(feed) if need == reason else waiting.discard(feed)
        if need == "turn":
            self._turns.add(feed)
            return
        self._turns.discard(feed)
        if need == "input":
            for read in task.reads():
                self._want(task, read)
        elif need == "recovery":
            if feed not in self._starting:
                self._starting.append(feed)
        elif task.stage == "waiting":
            self._forget(feed)
            self._outages.add(feed, task.wait_replicas, task.reason or "")
        elif task.stage == "aside":
            self._forget(feed)
            self._aside.add(feed)
            self._unlogged.append(task)
            self._release(task)

    def _want(self, task: FeedTask, read: StreamRead) -> None:
        if read.input not in task.covered:
            task.covered.add(read.input)
            self._uncovered_reads.setdefault(task.feed, {})[read.key] = read

    def _forget(self, feed: str) -> None:
        """Stop serving a feed for now."""
        self._turns.discard(feed)
        self._awaiting.discard(feed)
        self._blocked.discard(feed)
        self._sent.pop(feed, None)
        self._uncovered_reads.pop(feed, None)
        for queue in (self._due, self._starting):
            if feed in queue:
                queue.remove(feed)

    def _release(self, task: FeedTask) -> None:
        lease, task.lease = task.lease, None
        if lease is not None:
            self._leases.release([lease])

    def _count_failures(self) -> int:
        redis = self._context.redis
        return redis.commands.failures + redis.reads.failures
