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
from workers.errors import WrongKeyType
from workers.log import Logger
from workers.runner.fair_turns import FairTurns
from workers.runner.full_collections import FullCollections
from workers.runner.hosted_feed import HostedFeed, Need
from workers.runner.opening import Shared
from workers.runner.outages import Outages
from workers.runner.shared_reader import SharedReader, Wanted
from workers.session.downstream import SECONDS

log = Logger("online_svm.worker")

SERVE = 0.01
"""Seconds of answering before the loop looks at what arrived meanwhile."""

AWAIT = 0.05
"""Seconds between two looks at refits that feeds wait for. A result wakes the loop; one that is
awaited for so long gets more of the processor."""

REPLAY = 0.002
"""Seconds between two looks at refits that replays wait for."""

STARTS = 4
"""Feeds that are taken over at a time; the others wait without using memory."""

UNCONFIRMED = 1.0
"""Seconds without the reply to a commit after which the loop waits for it, and for nothing else."""

SPIN = 200e-6 if (os.cpu_count() or 1) > 1 else 0.0
"""Seconds of polling before the loop sleeps, where one feed was served: a client that sends one
example at a time sends the next as soon as it has the answer, and saves a wake-up so."""

CHECKS = 20
"""Idle feeds whose input is checked each second, one after the other: of a thousand each is checked
once in 50 s."""


class FeedLoop:
    """Serves feeds until it is stopped.

    Parameters
    ----------
    shared : Shared
    leases : Leases
    reader : SharedReader
    outages : Outages

    Attributes
    ----------
    feeds : dict of str to HostedFeed
    collections : FullCollections
        Put off while feeds are taken over. Whoever gives up the loop lets them come again.
    """

    def __init__(
        self, shared: Shared, leases: Leases, reader: SharedReader, outages: Outages
    ) -> None:
        self._shared, self._leases, self._reader = shared, leases, reader
        self._outages = outages
        self.feeds: dict[str, HostedFeed] = {}
        self._turns: FairTurns[str] = FairTurns()
        self._sent: dict[str, float] = {}  # since when a commit of theirs may be unconfirmed
        self._wanting: dict[str, dict[str, Wanted]] = {}  # by key: no read covers them yet
        self._awaiting: set[str] = set()  # they wait for a refit
        self._gated: set[str] = set()  # they wait for their consumers
        self._due: deque[str] = deque()  # they hold their lease, and are not begun
        self._starting: deque[str] = deque()
        self._aside: set[str] = set()
        self._untold: list[HostedFeed] = []  # set aside since `tell_aside`
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
        errors = [hosted.error for hosted in self.feeds.values()]
        return None if None in errors else errors[0]

    def tell_aside(self) -> None:
        """Log which feeds were set aside since the last call."""
        untold, self._untold = self._untold, []
        for hosted in untold:
            again = max(0, round(hosted.retry_at - time.monotonic()))
            log.error("feed set aside", feed=hosted.feed, reason=hosted.reason, again_after=again)

    def add(self, hosted: HostedFeed) -> None:
        """Serve another feed, as soon as its lease is held."""
        self.feeds[hosted.feed] = hosted
        self._idle.append(hosted.feed)
        self._ask(hosted)

    def drop(self, feed: str) -> None:
        """Leave a snapshot of a feed, and serve it no more."""
        hosted = self.feeds.pop(feed)
        self._forget(feed)
        self._aside.discard(feed)
        self._outages.discard(feed)
        hosted.end()
        self._release(hosted)

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
        # While Redis stores the snapshot of one feed, that of the next is made.
        ending: HostedFeed | None = None
        snapshots = 0
        for hosted in sorted(self.feeds.values(), key=lambda each: each.stop_order):
            hosted.begin_end()
            if ending is not None:
                snapshots += ending.finish_end()
            ending = hosted
        if ending is not None:
            snapshots += ending.finish_end()
        log.info("feeds stopped", feeds=len(self.feeds), with_snapshot=snapshots)
        leases = [hosted.lease for hosted in self.feeds.values() if hosted.lease is not None]
        self._leases.release(leases)

    def _ask(self, hosted: HostedFeed) -> None:
        hosted.stage = "lease"
        hosted.lease = self._leases.ask(hosted.feed)

    def _follow_leases(self) -> None:
        """Begin the feeds whose lease was acquired; doubt those whose lease was lost."""
        for lease in self._leases.changed():
            hosted = self.feeds.get(lease.feed)
            if hosted is None or hosted.lease is not lease:
                continue
            if hosted.stage == "lease" and lease.problem is not None:
                hosted.fail(WrongKeyType(lease.problem))
                self._place(hosted, "nothing")
            elif hosted.stage == "lease" and lease.is_held and lease.feed not in self._due:
                self._due.append(lease.feed)
            elif hosted.stage == "lease" and lease.holder:
                hosted.stand_by()
            elif hosted.stage == "working":
                self._place(hosted, hosted.check_ownership())

    def _try_again(self) -> None:
        """Ask again for the leases of feeds that were set aside long enough."""
        if not self._aside:
            return
        now = time.monotonic()
        for feed in [feed for feed in self._aside if self.feeds[feed].retry_at <= now]:
            self._aside.remove(feed)
            self._ask(self.feeds[feed])

    def _resume(self) -> None:
        """Go on with feeds whose node answers again."""
        for feed in self._outages.due() if self._outages else ():
            hosted = self.feeds[feed]
            self._place(hosted, hosted.resume())
            if hosted.stage != "waiting":
                self._outages.discard(feed)

    def _check_doubts(self) -> None:
        """After a lost connection, check that every feed is still this process's."""
        failures = self._count_failures()
        if failures == self._failures:
            return
        self._failures = failures
        for hosted in list(self.feeds.values()):
            if hosted.stage == "working":
                self._place(hosted, hosted.check_ownership())
        self._failures = self._count_failures()

    def _check_some(self) -> None:
        """Check the input of a few of the feeds that are idle."""
        now = time.monotonic()
        due = int((now - self._checked_at) * CHECKS)
        if not due:
            return
        self._checked_at = now
        for _ in range(min(due, CHECKS, len(self._idle))):
            feed = self._idle.popleft()
            hosted = self.feeds.get(feed)
            if hosted is None:
                continue
            self._idle.append(feed)
            if hosted.stage == "working" and feed not in self._sent and hosted.need() == "input":
                self._place(hosted, hosted.idle())

    def _answer(self) -> None:
        """Answer feeds that have input, in fair turns."""
        for waiting in (*self._awaiting, *self._gated):
            self._place(self.feeds[waiting], self.feeds[waiting].need())
        end = time.perf_counter() + SERVE
        while (feed := self._turns.next()) is not None:
            hosted = self.feeds[feed]
            began = time.perf_counter()
            need = hosted.work(is_alone=len(self._turns) == 1)
            now = time.perf_counter()
            self._turns.charge(feed, now - began, need == "turn")
            self._sent[feed] = time.monotonic()
            self._served.add(feed)
            self._place(hosted, need)
            if now >= end:
                return

    def _start_some(self) -> None:
        """Do a step of one of the feeds that are taken over."""
        while self._due and len(self._starting) < STARTS:
            feed = self._due.popleft()
            if feed in self.feeds and self.feeds[feed].stage == "lease":
                self.feeds[feed].begin()
                self._starting.append(feed)
        if not self._starting:
            self.collections.allow()
            return
        self.collections.put_off()
        hosted = self.feeds[self._starting.popleft()]
        began = time.perf_counter()
        self._place(hosted, hosted.start_some())
        was_short = time.perf_counter() - began < 1e-4  # it waits for a refit
        self._stalled = self._stalled + 1 if was_short else 0

    def _confirm(self, all_of_them: bool = False) -> None:
        """Confirm the commits of feeds that have nothing else to do, where the replies have come.

        While Redis works on one, the others are served. A reply that does not come is waited for
        at last, which tries again, or finds what is wrong.
        """
        long_ago = time.monotonic() - UNCONFIRMED
        for feed, since in list(self._sent.items()):
            hosted = self.feeds[feed]
            if not all_of_them:
                if feed in self._turns:
                    continue  # its next commit confirms this one
                if not hosted.may_confirm and since > long_ago:
                    continue
            del self._sent[feed]
            self._served.add(feed)
            if hosted.stage == "working":
                self._place(hosted, hosted.finish_commit())

    def _bound_replays(self) -> None:
        """Let feeds leave snapshots early while a kill would cost too long replays."""
        replays, end = self._shared.replays, time.perf_counter() + SERVE
        while replays.is_exceeded and time.perf_counter() < end:
            found = (self.feeds[feed] for feed in replays.largest())
            hosted = next((each for each in found if each.may_snapshot), None)
            if hosted is None:
                return
            self._place(hosted, hosted.keep())

    def _cover(self) -> None:
        """Let blocked reads wait for the input of feeds that have none."""
        if self._wanting and self._reader.has_room:
            wanting, self._wanting = self._wanting, {}
            self._reader.cover([one for of_feed in wanting.values() for one in of_feed.values()])

    def _wait(self, longest: float) -> None:
        """Wait until something arrives or changes; take what arrived."""
        commands = self._shared.link.commands
        descriptors = [*self._reader.descriptors, *commands.descriptors]
        ready = self._shared.stop.wait_for(descriptors, self._patience(longest), self._spin())
        commands.read_arrived(ready)
        arrived, quiet = self._reader.arrivals(ready)
        for wanted, entries, may_be_more in arrived:
            hosted = self._uncovered(wanted)
            if hosted is not None:
                wanted.input.hand_in(entries, may_be_more)
                self._place(hosted, hosted.need())
        for wanted in quiet:
            hosted = self._uncovered(wanted)
            if hosted is not None:
                self._want(hosted, wanted)

    def _uncovered(self, wanted: Wanted) -> HostedFeed | None:
        """Note that no read covers a stream any more; return the feed if it still waits for it."""
        hosted = self.feeds.get(wanted.feed)
        if hosted is None:
            return None
        hosted.covered.discard(wanted.input)
        return hosted if hosted.waits_for(wanted) else None

    def _spin(self) -> float:
        """Return how many seconds to poll first; a refit needs the processor more."""
        served, self._served = self._served, set()
        if len(served) != 1:
            return 0.0
        hosted = self.feeds.get(served.pop())
        return 0.0 if hosted is None or hosted.is_refitting else SPIN

    def _patience(self, longest: float) -> float:
        """Return how many seconds the loop may wait."""
        is_stalled = self._stalled > len(self._starting)
        is_waiting = self._wanting and self._reader.has_room
        if len(self._turns) or is_waiting or (self._starting and not is_stalled):
            return 0.0
        if self._starting:
            return min(longest, REPLAY)
        if self._awaiting:
            longest = min(longest, AWAIT)
        if self._gated:
            longest = min(longest, SECONDS)
        if self._sent:
            longest = min(longest, UNCONFIRMED)
        if self._aside:
            first = min(self.feeds[feed].retry_at for feed in self._aside)
            longest = min(longest, first - time.monotonic())
        if self._outages:
            longest = min(longest, self._outages.patience())
        return min(longest, self._reader.patience)

    def _place(self, hosted: HostedFeed, need: Need) -> None:
        """Note what a feed needs."""
        feed = hosted.feed
        for waiting, reason in ((self._awaiting, "refit"), (self._gated, "gate")):
            waiting.add(feed) if need == reason else waiting.discard(feed)
        if need == "turn":
            self._turns.add(feed)
            return
        self._turns.discard(feed)
        if need == "input":
            for wanted in hosted.wanted():
                self._want(hosted, wanted)
        elif need == "recovery":
            if feed not in self._starting:
                self._starting.append(feed)
        elif hosted.stage == "waiting":
            self._forget(feed)
            self._outages.add(feed, hosted.wait_replicas, hosted.reason or "")
        elif hosted.stage == "aside":
            self._forget(feed)
            self._aside.add(feed)
            self._untold.append(hosted)
            self._release(hosted)

    def _want(self, hosted: HostedFeed, wanted: Wanted) -> None:
        if wanted.input not in hosted.covered:
            hosted.covered.add(wanted.input)
            self._wanting.setdefault(hosted.feed, {})[wanted.key] = wanted

    def _forget(self, feed: str) -> None:
        """Serve a feed no more for now."""
        self._turns.discard(feed)
        self._awaiting.discard(feed)
        self._gated.discard(feed)
        self._sent.pop(feed, None)
        self._wanting.pop(feed, None)
        for queue in (self._due, self._starting):
            if feed in queue:
                queue.remove(feed)

    def _release(self, hosted: HostedFeed) -> None:
        lease, hosted.lease = hosted.lease, None
        if lease is not None:
            self._leases.release([lease])

    def _count_failures(self) -> int:
        link = self._shared.link
        return link.commands.failures + link.reads.failures
