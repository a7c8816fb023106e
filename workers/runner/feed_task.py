"""One feed of a worker: its session, what it waits for, and why it is parked."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Literal

from online_svm.errors import OnlineSVMError
from workers.broker.leases import FeedLease
from workers.broker.shared_reader import EntrySink, StreamRead
from workers.errors import Fenced, Stopped, Unavailable, WorkerError
from workers.log import Logger
from workers.runner.opening import FeedOpening, WorkerContext
from workers.runner.redis_context import SLICE_ENTRIES
from workers.session.answer import Outcome
from workers.session.feed_session import FeedSession
from workers.session.flow_control import CHECK_SECONDS
from workers.session.snapshots import at_stop
from workers.session.telemetry import Telemetry

log = Logger("online_svm.worker")

FAIR_SLICE = 128
"""Entries of one feed that are answered at once, at most, while others wait for so long."""

SLICE_SECONDS = 0.01
"""Seconds of answering one feed at once, about, where others wait and its entries take long."""

_MIN_SLICE = 4
"""Entries of a slice, at least, where there are as many: what a slice itself costs is as much."""

FIRST_RETRY, LAST_RETRY = 10.0, 600.0
"""Seconds until a parked feed is tried again: the first delay, which doubles with each failure, and
the longest."""

_NO_MORE_STEPS = object()
"""What ends the steps of a start."""

_ASSUMED_COST = 1e-3
"""Seconds that an entry is assumed to take before one was answered."""

Stage = Literal["lease", "starting", "working", "waiting", "aside"]
"""What a feed does: it waits for its lease, is taken over, is answered, waits for its node of a
cluster, or is parked."""

Need = Literal["turn", "input", "refit", "consumers", "recovery", "nothing"]
"""What a feed needs to go on."""


class FeedTask:
    """A feed that a process answers, or will.

    An error of the feed ends only its own work: the feed is parked and tried again.

    Attributes
    ----------
    reason : str or None
        Why the feed was parked last, or waits for its node; None once it is answered again.
    error : Exception or None
        The error that parked the feed; None if it only waits for Redis.
    retry_at : float
        When the parked feed is tried again, by `time.monotonic`.
    blocked_until : float
        When its consumers are looked at again, by `time.monotonic`, while they are behind.
    """

    def __init__(
        self, feed: str, opening: FeedOpening, context: WorkerContext, telemetry: Telemetry
    ) -> None:
        self.feed, self._opening, self._context = feed, opening, context
        self._settings, self._store, self._telemetry = opening.settings, opening.store, telemetry
        self.stage: Stage = "lease"
        self.reason: str | None = None
        self.error: Exception | None = None
        self.retry_at = self.blocked_until = 0.0
        self.lease: FeedLease | None = None
        self.session: FeedSession[Any] | None = None
        self.covered: set[EntrySink] = set()  # what a blocked read waits for input for
        self._idle_at = b""  # the cursor when it was idle last
        self._opened = ExitStack()
        self._steps: Iterator[None] = iter(())
        self._failed = 0
        self._is_spoilt = False
        self._ending: str | None = None  # what is noted once it is given up
        self._cost = _ASSUMED_COST  # seconds an entry
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
        return self._try(self._start_some)

    def work(self, is_alone: bool = False) -> Need:
        """Answer some of what can be answered now.

        At most `SLICE_ENTRIES` entries if no other feed has any; else `FAIR_SLICE` of them, or
        about `SLICE_SECONDS`.
        """
        return self._try(lambda: self._work(is_alone))

    def resume(self) -> Need:
        """Continue if the node answers again."""
        self.stage = "working"
        need = self._try(self._running.resume)
        if self.stage in ("working", "starting"):
            self.reason = None
            self._telemetry.waits(None)
        return need

    def finish_commit(self) -> Need:
        """Wait for the commit that was sent last."""
        return self._try(self._running.finish_commit)

    @property
    def can_confirm(self) -> bool:
        """Whether `finish_commit` need not wait."""
        return self.session is None or self.session.can_confirm

    def check_ownership(self) -> Need:
        """After a lost lease or connection, check that the feed is still this process's."""
        return self._try(self._running.check_ownership)

    def idle(self) -> Need:
        """Run periodic work while idle. A commit since the last call has checked ownership."""
        session = self._running
        is_checked, self._idle_at = session.cursor != self._idle_at, session.cursor
        return self._try(lambda: session.idle(is_checked))

    @property
    def may_snapshot(self) -> bool:
        """Whether the feed can leave a snapshot now, without a wait for a refit."""
        return self.stage == "working" and self._running.may_snapshot

    def keep(self) -> Need:
        """Leave a snapshot before its time, so that a kill costs a shorter replay."""
        return self._try(self._keep)

    @property
    def wait_replicas(self) -> int:
        """Replicas that must acknowledge its commits."""
        return self._settings.wait_replicas

    def reads(self) -> list[StreamRead]:
        """Return the streams that the feed waits for."""
        return self._running.reads()

    def waits_for(self, read: StreamRead) -> bool:
        """Return whether this is what the feed still waits for."""
        session = self.session
        if session is None or self.stage != "working":
            return False
        return any(one.input is read.input for one in session.reads())

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
        if session.needs_refit and not self._may_go_ahead(session):
            # Before there is input, too: the answer to it then comes soon.
            return "refit" if session.is_refit_pending else "turn"
        if session.is_spent:
            return "input"
        return "consumers" if self.blocked_until > time.monotonic() else "turn"

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
        stop = self._context.stop
        decision = at_stop(self._running.unsaved, stop.age, stop.grace)
        if decision == "nothing new":
            self._ending = f"seq {self._running.position.seq}"
        elif decision == "too late":
            self._end_without("the grace period is nearly over")
        elif self._try(self._running.send_snapshot) != "nothing":
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
        if ending is not None and self._try(self._running.finish_snapshot) != "nothing":
            is_kept = self._running.unsaved == 0
            self._store.note("stopped", ending)
        if self.stage == "waiting":
            log.warning("stopped without a snapshot", feed=self.feed, reason=self.reason)
        self._give_up()
        return is_kept

    def fail(self, error: WorkerError) -> None:
        """Park the feed for an error that another component found."""
        self._set_aside(error)

    @property
    def _running(self) -> FeedSession[Any]:
        assert self.session is not None
        return self.session

    def _try(self, step: Callable[[], object]) -> Need:
        """Do a step; return what the feed needs then. Park it if the step fails."""
        try:
            step()
            return self.need()
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
        context = self._context
        session = self.session = yield from self._opening.session(
            context, self.lease, self._committed, self._telemetry, self._opened
        )
        while not session.recover_step():
            yield
        context.redis.known.add(self.feed)
        context.replays.note(self.feed, session.unsaved)
        self._store.note("began", f"epoch {session.epoch}, seq {session.position.seq}")

    def _start_some(self) -> None:
        if next(self._steps, _NO_MORE_STEPS) is None:
            return
        # Later ones begin where the session has to read its position again.
        if self._running.recover_step():
            self.stage, self.reason, self.error, self._failed = "working", None, None, 0

    def _work(self, is_alone: bool) -> None:
        session = self._running
        if session.needs_refit and not self._may_go_ahead(session):
            # It may have been able to go ahead when it asked for this turn.
            if not session.is_refit_pending:
                self._answer(session.take_refit)
            return
        if not session.may_answer():
            if not session.is_recovering:
                self.blocked_until = time.monotonic() + CHECK_SECONDS
            return
        fair = max(_MIN_SLICE, min(FAIR_SLICE, int(SLICE_SECONDS / self._cost)))
        entries = session.next_now(SLICE_ENTRIES if is_alone else fair)
        if entries:
            self._taken = len(entries)
            self._answer(lambda: session.answer(entries))

    def _may_go_ahead(self, session: FeedSession[Any]) -> bool:
        is_blocked = self.blocked_until > time.monotonic()
        return session.may_start_early and not is_blocked and not self._context.replays.is_exceeded

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
        self._context.replays.note(self.feed, self._running.unsaved)
        self._context.observe(self.feed, outcome)

    def _keep(self) -> None:
        self._running.snapshot()
        # Where none could be kept, it is tried again after the next commit.
        self._context.replays.note(self.feed, 0)

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
        self._store.note("failed", self.reason, self._context.writer)
        self._telemetry.fails(self.reason)

    def _wait(self, error: Unavailable) -> None:
        """Wait for the node of the feed, with all that was learned."""
        self.stage, self.reason = "waiting", str(error)
        self.covered.clear()
        self._telemetry.waits(self.reason)

    def _give_up(self) -> None:
        """Forget the session, and what it holds."""
        self._context.replays.forget(self.feed)
        self.session, self._steps = None, iter(())
        self.covered.clear()
        self._opened.close()
