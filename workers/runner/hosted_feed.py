"""One feed among many: its session, what it waits for, and why it is set aside."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Literal

from online_svm.errors import OnlineSVMError
from workers.broker.leases import FeedLease
from workers.errors import Fenced, Stopped, Unavailable, WorkerError
from workers.log import Logger
from workers.runner.link import SLICE
from workers.runner.opening import FeedOpening, Shared
from workers.runner.shared_reader import Wanted
from workers.session.answer import Outcome
from workers.session.downstream import SECONDS
from workers.session.feed_session import Arriving, FeedSession
from workers.session.telemetry import Telemetry

log = Logger("online_svm.worker")

FAIR_SLICE = 128
"""Entries of one feed that are answered at once, at most, while others wait for so long."""

LONGEST = 0.01
"""Seconds of answering one feed at once, about, where others wait and its entries take long."""

_LEAST = 4
"""Entries of a slice, at least, where there are as many: what a slice itself costs is as much."""

FIRST_RETRY, LAST_RETRY = 10.0, 600.0
"""Seconds until a feed that was set aside is tried again: at first, then twice as many, and so on;
at most."""

_FOR_SNAPSHOTS = 0.8
"""Part of the grace period in which snapshots are left; the rest is for closing down."""

_END = object()
"""What ends the steps of a start."""

_FIRST_COST = 1e-3
"""Seconds that an entry is assumed to take before one was answered."""

Stage = Literal["lease", "starting", "working", "waiting", "aside"]
"""What a feed does: it waits for its lease, is taken over, is answered, waits for its node of a
cluster, or is set aside."""

Need = Literal["turn", "input", "refit", "gate", "recovery", "nothing"]
"""What a feed needs to go on."""


class HostedFeed:
    """A feed that a process answers, or will.

    Its errors end its own work, not that of the others: it is set aside.

    Parameters
    ----------
    feed : str
    opening : FeedOpening
    shared : Shared
    telemetry : Telemetry

    Attributes
    ----------
    stage : Stage
    reason : str or None
        Why it was set aside last, or waits for its node; None once it is answered again.
    error : Exception or None
        For which it was set aside, unless it waits for Redis alone.
    retry_at : float
        When it is tried again, by `time.monotonic`, while it is set aside.
    lease : FeedLease or None
    session : FeedSession or None
    covered : set of Arriving
        What a blocked read waits for input for.
    open_at : float
        When its consumers are looked at again, by `time.monotonic`, while they are behind.
    """

    def __init__(
        self, feed: str, opening: FeedOpening, shared: Shared, telemetry: Telemetry
    ) -> None:
        self.feed, self._opening, self._shared = feed, opening, shared
        self._settings, self._store, self._telemetry = opening.settings, opening.store, telemetry
        self.stage: Stage = "lease"
        self.reason: str | None = None
        self.error: Exception | None = None
        self.retry_at = self.open_at = 0.0
        self.lease: FeedLease | None = None
        self.session: FeedSession[Any] | None = None
        self.covered: set[Arriving] = set()
        self._idle_at = b""  # the cursor when it was idle last
        self._opened = ExitStack()
        self._steps: Iterator[None] = iter(())
        self._failed = 0
        self._is_spoilt = False
        self._ending: str | None = None  # what is noted once it is given up
        self._cost = _FIRST_COST  # seconds an entry
        self._taken, self._spent = 0, 0.0  # entries that are answered now, seconds that they took

    def stand_by(self) -> None:
        """Note that another process has the lease."""
        self._telemetry.enter("standby")

    @property
    def is_refitting(self) -> bool:
        """Whether a refit of it is computed now, at normal priority."""
        return self.session is not None and self.session.is_refitting

    def begin(self) -> None:
        """Begin to take the feed over, its lease is held; `start_some` goes on."""
        self.stage, self._steps = "starting", self._starting()

    def start_some(self) -> Need:
        """Do a step of taking the feed over."""
        return self._attempt(self._start_some)

    def work(self, is_alone: bool = False) -> Need:
        """Answer some of what can be answered now.

        Up to `SLICE` entries where it is alone: no other feed has any. Else `FAIR_SLICE` of them,
        or `LONGEST` seconds, about.
        """
        return self._attempt(lambda: self._work(is_alone))

    def resume(self) -> Need:
        """Go on, if the node answers again."""
        self.stage = "working"
        need = self._attempt(lambda: self._then(self._running.resume))
        if self.stage in ("working", "starting"):
            self.reason = None
            self._telemetry.waits(None)
        return need

    def finish_commit(self) -> Need:
        """Wait for the commit that was sent last."""
        return self._attempt(lambda: self._then(self._running.finish_commit))

    @property
    def may_confirm(self) -> bool:
        """Whether `finish_commit` need not wait."""
        return self.session is None or self.session.may_confirm

    def check_ownership(self) -> Need:
        """After a lost lease or connection, check that the feed is still this process's."""
        return self._attempt(lambda: self._then(self._running.check_ownership))

    def idle(self) -> Need:
        """Do what is due while no input comes. What was committed since was checked thereby."""
        session = self._running
        is_checked, self._idle_at = session.cursor != self._idle_at, session.cursor
        return self._attempt(lambda: self._then(lambda: session.idle(is_checked)))

    @property
    def may_snapshot(self) -> bool:
        """Whether the feed can leave a snapshot now, without a wait for a refit."""
        return self.stage == "working" and self._running.may_snapshot

    def keep(self) -> Need:
        """Leave a snapshot before its time, so that a kill costs a shorter replay."""
        return self._attempt(lambda: self._then(self._keep))

    @property
    def wait_replicas(self) -> int:
        """Replicas that must acknowledge its commits."""
        return self._settings.wait_replicas

    def wanted(self) -> list[Wanted]:
        """Return the streams that the feed waits for."""
        return [Wanted(self.feed, *awaited) for awaited in self._running.awaited()]

    def waits_for(self, wanted: Wanted) -> bool:
        """Return whether this is what the feed still waits for."""
        session = self.session
        if session is None or self.stage != "working":
            return False
        return any(awaited.input is wanted.input for awaited in session.awaited())

    def need(self) -> Need:
        """Return what the feed needs to go on."""
        session = self.session
        if self.stage == "waiting":
            return "nothing"
        if session is None:
            return "nothing" if self.stage != "starting" else "recovery"
        if session.is_recovering:
            self.stage = "starting"
            return "recovery"
        if session.has_to_take_refit and not self._may_go_ahead(session):
            # Before there is input, too: the answer to it then comes soon.
            return "refit" if session.waits_for_refit else "turn"
        if session.is_spent:
            return "input"
        return "gate" if self.open_at > time.monotonic() else "turn"

    @property
    def stop_order(self) -> tuple[bool, int]:
        """When it leaves its snapshot at a graceful stop: the longest replays would come first.

        Those that wait for a refit come last: it is computed meanwhile.
        """
        if self.stage != "working":
            return True, 0
        return not self.may_snapshot, -self._running.unsaved

    def end(self) -> None:
        """Leave a snapshot, where there is something new and the grace period is not over."""
        self.begin_end()
        self.finish_end()

    def begin_end(self) -> None:
        """Begin what `end` does: `finish_end` is the next call, before any other."""
        if not self._can_snapshot():
            return
        self._telemetry.enter("stopping")
        stop = self._shared.stop
        if self._running.unsaved == 0:
            self._ending = f"seq {self._running.position.seq}"
        elif stop.age >= _FOR_SNAPSHOTS * stop.grace:
            self._end_without("the grace period is nearly over")
        elif self._attempt(lambda: self._then(self._running.send_snapshot)) != "nothing":
            self._ending = f"seq {self._running.position.seq}"
        elif not self._can_snapshot() and self.stage == "working":
            self._end_without("a refit, or Redis, was awaited in vain")

    def _can_snapshot(self) -> bool:
        """Return whether the predictor is known to hold what is committed."""
        return self.stage == "working" and not self._is_spoilt

    def _end_without(self, reason: str) -> None:
        log.warning("stopped without a snapshot", feed=self.feed, reason=reason)
        self._ending = f"without a snapshot: {reason}"

    def finish_end(self) -> bool:
        """Wait for the snapshot, and give the feed up; return whether nothing is left to replay."""
        ending, is_kept = self._ending, False
        if ending is not None and self._attempt(self._finish_snapshot) != "nothing":
            is_kept = self._running.unsaved == 0
            self._store.note("stopped", ending)
        if self.stage == "waiting":
            log.warning("stopped without a snapshot", feed=self.feed, reason=self.reason)
        self._give_up()
        return is_kept

    def fail(self, error: WorkerError) -> None:
        """Set the feed aside for a reason that was found elsewhere."""
        self._set_aside(error)

    @property
    def _running(self) -> FeedSession[Any]:
        assert self.session is not None
        return self.session

    def _then(self, step: Callable[[], object]) -> Need:
        step()
        return self.need()

    def _attempt(self, step: Callable[[], Need]) -> Need:
        """Do a step; where it fails, set the feed aside."""
        try:
            return step()
        except Stopped:
            # The predictor may have learned examples that are not committed: no snapshot.
            self._is_spoilt = True
        except Unavailable as error:
            if self.stage == "working" and not self._running.is_recovering:
                self._wait(error)
            else:
                self._set_aside(error)
        except (WorkerError, OnlineSVMError) as error:
            self._set_aside(error)
        except Exception as error:
            log.exception("a fault of the program", feed=self.feed)
            self._set_aside(error)
        return "nothing"

    def _starting(self) -> Iterator[None]:
        """Check the feed, and take it over."""
        shared = self._shared
        session = self.session = yield from self._opening.session(
            shared, self.lease, self._committed, self._telemetry, self._opened
        )
        while not session.recover_some():
            yield
        shared.link.known.add(self.feed)
        shared.replays.note(self.feed, session.unsaved)
        self._store.note("began", f"epoch {session.epoch}, seq {session.position.seq}")

    def _start_some(self) -> Need:
        if next(self._steps, _END) is None:
            return "recovery"
        # Later ones begin where the session has to read its position again.
        if not self._running.recover_some():
            return "recovery"
        self.stage, self.reason, self.error, self._failed = "working", None, None, 0
        return self.need()

    def _work(self, is_alone: bool) -> Need:
        session = self._running
        if session.has_to_take_refit and not self._may_go_ahead(session):
            # It may have been able to go ahead when it asked for this turn.
            if not session.waits_for_refit:
                self._answer(session.take_refit)
            return self.need()
        if not session.may_answer():
            if not session.is_recovering:
                self.open_at = time.monotonic() + SECONDS
            return self.need()
        fair = max(_LEAST, min(FAIR_SLICE, int(LONGEST / self._cost)))
        entries = session.next_now(SLICE if is_alone else fair)
        if entries:
            self._taken = len(entries)
            self._answer(lambda: session.answer(entries))
        return self.need()

    def _may_go_ahead(self, session: FeedSession[Any]) -> bool:
        is_gated = self.open_at > time.monotonic()
        return session.may_go_ahead and not is_gated and not self._shared.replays.is_exceeded

    def _answer(self, step: Callable[[], None]) -> None:
        """Do a step of answering; after the last step, note what an entry cost."""
        began = time.thread_time()  # others may have the processor meanwhile
        step()
        self._spent += time.thread_time() - began
        if self._running.is_paused or not self._taken:
            return
        self._cost += (self._spent / self._taken - self._cost) / 2
        self._taken, self._spent = 0, 0.0

    def _committed(self, outcome: Outcome) -> None:
        self._shared.replays.note(self.feed, self._running.unsaved)
        self._shared.observe(self.feed, outcome)

    def _finish_snapshot(self) -> Need:
        return self._then(self._running.finish_snapshot)

    def _keep(self) -> None:
        self._running.snapshot()
        # Where none could be kept, it is tried again after the next commit.
        self._shared.replays.note(self.feed, 0)

    def _set_aside(self, error: Exception) -> None:
        self.reason = f"{type(error).__name__}: {error}"
        self._give_up()
        if isinstance(error, Fenced | Unavailable):
            # Another process has it, or Redis is away: wait for the lease again.
            wait = self._settings.lease
        else:
            wait = min(FIRST_RETRY * 2.0**self._failed, LAST_RETRY)
            self._failed += 1
        self.error = None if isinstance(error, Unavailable) else error
        self.stage, self.retry_at = "aside", time.monotonic() + wait
        self._store.note("failed", self.reason, self._shared.writer)
        self._telemetry.fails(self.reason)

    def _wait(self, error: Unavailable) -> None:
        """Wait for the node of the feed, with all that was learned."""
        self.stage, self.reason = "waiting", str(error)
        self.covered.clear()
        self._telemetry.waits(self.reason)

    def _give_up(self) -> None:
        """Forget the session, and what it holds."""
        self._shared.replays.forget(self.feed)
        self.session, self._steps = None, iter(())
        self.covered.clear()
        self._opened.close()
