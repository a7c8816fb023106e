"""One feed of a worker: how it is opened, its state, its session, and why it is parked."""

import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from online_svm.errors import OnlineSVMError
from workers.broker.commit_script import RetainedOutputs
from workers.broker.large_replies import SnapshotReader
from workers.broker.leases import FeedLease, is_held
from workers.broker.shared_reader import EntrySink, StreamRead
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.errors import Fenced, Stopped, Unavailable, WorkerError, WrongKeyType
from workers.feed.keys import FeedKeys
from workers.feed.retention import Retention, changes
from workers.feed.state import FeedState
from workers.log import Logger
from workers.runner.feed_states import AT_WORK, TRANSITIONS, TaskEvent, TaskState
from workers.runner.redis_context import SLICE_ENTRIES, EffectiveSettings, RedisContext
from workers.session import preflight, snapshots
from workers.session.preflight import Preflight, open_store
from workers.session.snapshots import Fetched, ReplayBudget, at_stop
from workers.session.telemetry import Telemetry
from workers.stop import Stop

if TYPE_CHECKING:  # imported when a feed is taken over: the checks before it must not wait for them
    from workers.refit.refitter import PooledRefitter
    from workers.session.answer import Outcome
    from workers.session.session import Session

log = Logger("online_svm.worker")

FAIR_SLICE = 128  # most entries of one feed answered at once while other feeds have input

SLICE_SECONDS = 0.01
"""Approximate seconds of answering one feed at once while other feeds have input."""

_MIN_SLICE = 4  # smallest slice in entries: the overhead of a slice is about as large

FIRST_RETRY, LAST_RETRY = 10.0, 600.0
"""Seconds until a parked feed is tried again: the first delay, which doubles with each failure, and
the longest."""

CONSUMERS_CHECK_SECONDS = 0.5  # between two checks of a consumer group that lags

_DONE = object()  # marks the end of the steps of a start
_ASSUMED_ENTRY_SECONDS = 1e-3  # seconds per entry, before any is measured


class SnapshotFetcher:
    """Reads the snapshots of feeds that are about to be taken over, in another thread.

    A start mostly reads and hashes snapshots of a megabyte and more, and restores predictors.
    Reading and hashing release the GIL, so they overlap with restoring. `wake` is called after each
    snapshot.
    """

    def __init__(self, url: str, wake: Callable[[], None]) -> None:
        self._reader, self._wake = SnapshotReader(url), wake
        self._threads = ThreadPoolExecutor(1, "snapshots")

    def fetch(self, feed: str) -> "Future[Fetched]":
        """Start to fetch the newest snapshot of a feed; after a failure the result is empty.

        If the result is empty or outdated, the feed reads the snapshot itself.
        """
        found = self._threads.submit(self._fetched, feed)
        found.add_done_callback(lambda _found: self._wake())
        return found

    def close(self) -> None:
        """Stop fetching."""
        self._reader.close()
        # The queued fetches fail at once; then the thread disconnects.
        self._threads.submit(self._reader.disconnect)
        self._threads.shutdown(wait=False)

    def _fetched(self, feed: str) -> Fetched:
        found = self._reader.newest(FeedKeys(feed))
        if found is not None:
            pointer, config_hash, data, chunks = found
            with suppress(ValueError, WorkerError):  # the feed meets and reports the same error
                decoded = snapshots.decode(data, pointer, feed, config_hash, chunks)
                return {(pointer, config_hash): decoded}
        return {}


Refits = Callable[[WorkerSettings, Telemetry], "PooledRefitter"]
"""Returns the refitter of a feed with these settings."""


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """Resources that the feeds of a process share."""

    redis: RedisContext
    writer: str  # name of this worker, for people
    refits: Refits
    observe: "Callable[[str, Outcome], None] | None"  # called with each committed batch
    replays: ReplayBudget
    fetcher: SnapshotFetcher

    @property
    def stop(self) -> Stop:
        """The stop request of the process."""
        return self.redis.stop


class FeedOpening:
    """How one feed is checked and taken over; `settings` as given, see `effective_settings`."""

    def __init__(self, feed: str, settings: WorkerSettings, redis: RedisContext) -> None:
        self._feed, self.settings, self._redis = feed, settings, redis
        self.store: Store = open_store(
            feed, settings, redis.url, connections=(redis.commands, redis.reads)
        )

    def check(self) -> bool:
        """Raise WorkerError unless the feed can be answered; return whether it needs refits now."""
        result, _ = self._check()
        return result.is_behind and not is_held(self.store.lease_value())

    def session(
        self,
        context: WorkerContext,
        lease: FeedLease | None,
        observe: "Callable[[Outcome], None]",
        telemetry: Telemetry,
        opened: ExitStack,
    ) -> "Generator[None, None, Session]":
        """Check the feed, whose lease is held, and create its session, in steps.

        `opened` closes the resources of the session.
        """
        from workers.session.flow import Pace
        from workers.session.recovery import Recovery
        from workers.session.session import assemble

        fetched = context.fetcher.fetch(self._feed)
        result, (used, pinned) = self._check()
        for warning in result.warnings:
            log.warning(warning, feed=self._feed)
        self._apply_retention(used, result.state, context.writer)
        self.store.register()
        yield
        refits = opened.enter_context(context.refits(used, telemetry))
        while not fetched.done():
            yield
        recovery = Recovery(
            self.store, pinned, used.predictor, used.limits, Pace(refits, SLICE_ENTRIES),
            context.writer, context.stop, telemetry,
            fetched.result(), used.retention, may_create=result.state is None,
        )  # fmt: skip
        return assemble(recovery, used, lease, observe)

    def _apply_retention(self, used: WorkerSettings, state: FeedState | None, writer: str) -> None:
        """Set the retention of commits; report a change."""
        self.store.retained = RetainedOutputs(Retention.of(used))
        before = None if state is None else state.retention
        changed = "" if before is None else changes(before, used.retention)
        if changed:
            log.warning("what is kept of the feed changes", feed=self._feed, change=changed)
            self.store.note("retention", changed, writer)

    def _check(self) -> tuple[Preflight, EffectiveSettings]:
        redis = self._redis
        found = preflight.find(self.store, redis.server, redis.known)
        effective = redis.settings_cache.effective(self.settings, self._feed, found.state)
        result = preflight.check(self.store, effective.pinned, found, is_take_over=True)
        redis.check_rights(self._feed, effective.settings)
        return result, effective


FeedFactory = Callable[[str, RedisContext], FeedOpening]  # returns the opening of a feed


class FeedTask:
    """A feed that a process answers, or will answer.

    An error of the feed ends only its own work: the feed is parked and tried again.

    Each method that does a step raises nothing, and leaves the feed in its next `state`; see
    `feed_states`.

    Attributes
    ----------
    state : TaskState
        What the feed does or waits for.
    reason : str or None
        Why the feed was last parked, or waits for its node; None once it is answered again.
    error : Exception or None
        The error that parked the feed; None if Redis was unavailable.
    retry_at : float
        When the parked feed is tried again, by `time.monotonic`.
    blocked_until : float
        Next check of the consumers, while they lag, by `time.monotonic`.
    """

    def __init__(
        self, feed: str, opening: FeedOpening, context: WorkerContext, telemetry: Telemetry
    ) -> None:
        self.feed, self._opening, self._context = feed, opening, context
        self._settings, self._store, self._telemetry = opening.settings, opening.store, telemetry
        self.state = TaskState.LEASE
        self.reason: str | None = None
        self.error: Exception | None = None
        self.retry_at = self.blocked_until = 0.0
        self.lease: FeedLease | None = None
        self.session: Session | None = None
        self.covered: set[EntrySink] = set()  # of the blocked reads for this feed
        self._idle_cursor = b""  # the cursor at the last call of `idle`
        self._opened = ExitStack()
        self._steps: Iterator[None] = iter(())
        self._failures = 0
        self._stop_note: str | None = None  # detail of the event "stopped"
        self._entry_seconds = _ASSUMED_ENTRY_SECONDS  # moving average
        self._slice_entries, self._slice_seconds = 0, 0.0  # of the slice that is being answered

    @property
    def is_at_work(self) -> bool:
        """Whether the session answers, once it gets what it waits for."""
        return self.state in AT_WORK

    def follow_lease(self) -> None:
        """Follow a change of the lease, before the feed is taken over."""
        assert self.lease is not None
        if self.lease.problem is not None:
            self._fail(WrongKeyType(self.lease.problem))
        elif self.lease.is_held:
            self._move(TaskEvent.LEASED)
        elif self.lease.holder:
            self._telemetry.enter("standby")

    @property
    def is_refitting(self) -> bool:
        """Whether a refit process computes for this feed, at normal priority."""
        return self.session is not None and self.session.is_refitting

    def retry(self) -> None:
        """Leave the parked state: the lease is requested again."""
        self._move(TaskEvent.RETRIED)

    def start(self) -> None:
        """Start to take the feed over, whose lease is held; `start_step` continues."""
        self._move(TaskEvent.BEGUN)
        self._steps = self._start_steps()

    def start_step(self) -> None:
        """Do a step of taking the feed over."""
        self._do(self._start_step)

    def work(self, is_alone: bool = False) -> None:
        """Answer a slice of the input.

        At most `SLICE_ENTRIES` entries if no other feed has input; else at most `FAIR_SLICE`
        entries, or about `SLICE_SECONDS`.
        """
        self._do(lambda: self._work(is_alone))

    def look(self) -> None:
        """Find out whether what the feed waited for has come."""
        self._move(self._found())

    def resume(self) -> None:
        """Try to continue after the node was silent."""
        if self._do(self._running.resume):
            self.reason = None
            self._telemetry.waits(None)

    def finish_commit(self) -> None:
        """Wait for the last sent commit."""
        self._do(self._running.finish_commit)

    @property
    def can_confirm(self) -> bool:
        """Whether `finish_commit` would not wait."""
        return self.session is None or self.session.can_confirm

    def check_ownership(self) -> None:
        """After a lost lease or connection, check that this process still owns the feed."""
        self._do(self._running.check_ownership)

    def idle(self) -> None:
        """Run periodic work while idle. A commit since the last call has checked the input."""
        session = self._running
        is_checked, self._idle_cursor = session.cursor != self._idle_cursor, session.cursor
        self._do(lambda: session.idle(is_checked))

    @property
    def may_snapshot(self) -> bool:
        """Whether the feed is being worked on, and its session can take a snapshot now."""
        return self.is_at_work and self._running.may_snapshot

    def take_snapshot(self) -> None:
        """Take a snapshot early, to shorten the replay after a kill."""
        self._do(self._take_snapshot)

    @property
    def wait_replicas(self) -> int:
        """Number of replicas that must acknowledge its commits."""
        return self._settings.wait_replicas

    def reads(self) -> list[StreamRead]:
        """Return the streams that the feed waits for."""
        return self._running.reads()

    def waits_for(self, read: StreamRead) -> bool:
        """Return whether the feed still waits for this stream, with the same reader."""
        return self.is_at_work and any(one.input is read.input for one in self.reads())

    @property
    def stop_order(self) -> tuple[bool, int]:
        """Sort key at a graceful stop: snapshots of the longest replays first.

        Feeds that wait for a refit come last: it is computed meanwhile.
        """
        if not self.is_at_work:
            return True, 0
        return not self.may_snapshot, -self._running.unsaved

    def stop(self) -> None:
        """Take a snapshot, if there are new entries and enough time, and close the session."""
        self.send_stop_snapshot()
        self.finish_stop()

    def send_stop_snapshot(self) -> None:
        """Do the first half of `stop`; the next call must be `finish_stop`."""
        if not self.is_at_work:
            return  # only of a predictor that has learned nothing but committed examples
        self._telemetry.enter("stopping")
        stop = self._context.stop
        decision = at_stop(self._running.unsaved, stop.age, stop.grace)
        if decision == "nothing new":
            self._stop_note = f"seq {self._running.position.seq}"
        elif decision == "too late":
            self._note_no_snapshot("the grace period is nearly over")
        elif self._do(self._running.send_snapshot):
            self._stop_note = f"seq {self._running.position.seq}"
        elif self.state is TaskState.STOPPED:
            self._note_no_snapshot("a refit, or Redis, was awaited in vain")

    def _note_no_snapshot(self, reason: str) -> None:
        log.warning("stopped without a snapshot", feed=self.feed, reason=reason)
        self._stop_note = f"without a snapshot: {reason}"

    def finish_stop(self) -> bool:
        """Wait for the snapshot and close the session; return whether a restart needs no replay."""
        note, is_kept = self._stop_note, False
        if note is not None and self._do(self._running.finish_snapshot):
            is_kept = self._running.unsaved == 0
            self._store.note("stopped", note)
        if self.state is TaskState.SILENT:
            log.warning("stopped without a snapshot", feed=self.feed, reason=self.reason)
        self._close_session()
        self._move(TaskEvent.CLOSED)
        return is_kept

    @property
    def _running(self) -> "Session":
        assert self.session is not None
        return self.session

    def _move(self, event: TaskEvent) -> None:
        self.state = TRANSITIONS[self.state][event]

    def _do(self, step: Callable[[], object]) -> bool:
        """Do a step, then move to the state to which it leads; return whether it succeeded."""
        try:
            step()
            self._move(self._found())
            return True
        except Stopped:
            self._move(TaskEvent.STOPPED)
        except (WorkerError, OnlineSVMError) as error:
            self._fail(error)
        except Exception as error:
            log.exception("a fault of the program", feed=self.feed)
            self._fail(error)
        return False

    def _found(self) -> TaskEvent:
        """Return what the session can do now."""
        session = self.session
        if session is None or session.is_recovering:
            return TaskEvent.MUST_RECOVER
        if session.needs_refit and not self._may_start_early(session):
            # Even without input, so that the next entry is answered at once.
            return TaskEvent.NEEDS_REFIT if session.is_refit_pending else TaskEvent.HAS_WORK
        if session.input.is_spent:
            return TaskEvent.IS_SPENT
        return TaskEvent.IS_BLOCKED if self.blocked_until > time.monotonic() else TaskEvent.HAS_WORK

    def _fail(self, error: Exception) -> None:
        """Wait for the node of the feed, or park the feed."""
        session = self.session
        can_continue = session is not None and not session.is_recovering
        is_silence = isinstance(error, Unavailable) and can_continue
        self._move(TaskEvent.SILENCE if is_silence else TaskEvent.FAILED)
        if self.state is TaskState.SILENT:
            self.reason = str(error)
            self.covered.clear()
            self._telemetry.waits(self.reason)
        elif self.state is TaskState.PARKED:
            self._park(error)

    def _park(self, error: Exception) -> None:
        """Close the session, and set the time of the next try."""
        self.reason = f"{type(error).__name__}: {error}"
        self._close_session()
        if isinstance(error, Fenced | Unavailable):
            # Another process has the feed, or Redis does not answer: request the lease again.
            delay = self._settings.lease
        else:
            delay = min(FIRST_RETRY * 2.0**self._failures, LAST_RETRY)
            self._failures += 1
        self.error = None if isinstance(error, Unavailable) else error
        self.retry_at = time.monotonic() + delay
        self._store.note("failed", self.reason, self._context.writer)
        self._telemetry.fails(self.reason)

    def _start_steps(self) -> Iterator[None]:
        """Check the feed and take it over, in steps."""
        context = self._context
        session = self.session = yield from self._opening.session(
            context, self.lease, self._committed, self._telemetry, self._opened
        )
        while not session.recover_step():
            yield
        context.redis.known.add(self.feed)
        context.replays.note(self.feed, session.unsaved)
        self._store.note("began", f"epoch {session.epoch}, seq {session.position.seq}")

    def _start_step(self) -> None:
        if next(self._steps, _DONE) is None:
            return
        # Only a session that reads its position again still has a step to do here.
        if self._running.recover_step():
            self.reason, self.error, self._failures = None, None, 0

    def _work(self, is_alone: bool) -> None:
        session = self._running
        if session.needs_refit and not self._may_start_early(session):
            # `is_refit_pending` if it could start early when this turn was requested.
            if not session.is_refit_pending:
                self._answer(session.take_refit)
            return
        if not session.may_answer():
            if not session.is_recovering:
                self.blocked_until = time.monotonic() + CONSUMERS_CHECK_SECONDS
            return
        fair = max(_MIN_SLICE, min(FAIR_SLICE, int(SLICE_SECONDS / self._entry_seconds)))
        entries = session.next_now(SLICE_ENTRIES if is_alone else fair)
        if entries:
            self._slice_entries = len(entries)
            self._answer(lambda: session.answer(entries))

    def _may_start_early(self, session: "Session") -> bool:
        is_blocked = self.blocked_until > time.monotonic()
        return session.may_start_early and not is_blocked and not self._context.replays.is_exceeded

    def _answer(self, step: Callable[[], None]) -> None:
        """Do a step of answering a slice; after its last step, update the time per entry."""
        began = time.thread_time()  # processor time of this thread only
        step()
        self._slice_seconds += time.thread_time() - began
        if self._running.is_paused or not self._slice_entries:
            return
        self._entry_seconds += (self._slice_seconds / self._slice_entries - self._entry_seconds) / 2
        self._slice_entries, self._slice_seconds = 0, 0.0

    def _committed(self, outcome: "Outcome") -> None:
        self._context.replays.note(self.feed, self._running.unsaved)
        if self._context.observe is not None:
            self._context.observe(self.feed, outcome)

    def _take_snapshot(self) -> None:
        self._running.snapshot()
        # 0 even if no snapshot could be taken: it is tried again after the next commit.
        self._context.replays.note(self.feed, 0)

    def _close_session(self) -> None:
        self._context.replays.forget(self.feed)
        self.session, self._steps = None, iter(())
        self.covered.clear()
        self._opened.close()
