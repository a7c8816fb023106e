"""The session of a feed: answer and learn its entries, commit the answers, take snapshots.

A session has no threads, and waits neither for input nor for a refit. While Redis commits a batch,
the session answers the next one. A commit is sent only after the previous one is confirmed, so a
session is at most one batch ahead of the last confirmed commit. If a commit is refused, all later
results are dropped.

A failure ends in one of three ways: the commit is sent again (`Connection`), the position is read
again from Redis (`Session.reload`), or the session ends with an error that names the cause. Commits
are atomic, so a worker may die at any instruction.
"""

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

from online_svm.predictor.batch import Waits
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.broker.commit_script import lost
from workers.broker.large_replies import BatchSize
from workers.broker.leases import HeldLease
from workers.broker.shared_reader import StreamRead
from workers.broker.streams import Entry
from workers.config.settings import SNAPSHOT_EVERY, WorkerSettings
from workers.errors import BatchChanged, Fenced, InputLost, PositionMoved, Unavailable
from workers.feed.position import END, LAST_ID, START
from workers.feed.retention import DOWNSTREAM
from workers.feed.state import Commit
from workers.feed.state_fields import (
    DUPLICATES,
    KINDS,
    MEMORY,
    PENDING,
    PendingLabels,
    encode_kinds,
    encode_memory,
)
from workers.log import Logger
from workers.session.answer import Outcome, processing
from workers.session.flow import (
    CommitWriter,
    ConsumerBackpressure,
    InputReader,
    SentCommit,
    SnapshotRequest,
    check_entries_exist,
)
from workers.session.publisher import Publisher
from workers.session.recovery import Recovery, keep_finished
from workers.session.snapshots import KeptSnapshots, body_of, is_due, kept_examples
from workers.session.spans import BatchTraces

log = Logger("online_svm.worker")

BATCH_BYTES = 1 << 22  # approximate bytes of input that are read, and answered, at once


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Settings of a session."""

    batch: int = 256  # most entries read and committed at once
    snapshot_every: int = SNAPSHOT_EVERY  # input entries from one snapshot to the next
    keep_input: bool = False  # never trim the input


class Session:
    """Answers a feed, a step at a time, as the loop of a worker calls it.

    `observe` is called with the outcome of each committed batch.

    Attributes
    ----------
    position : Position
        The last confirmed commit. One more batch may be answered, and its commit sent.
    epoch : int
        Fencing token: the number of this writer of the feed.
    """

    epoch: int
    input: InputReader
    _predictor: OnlinePredictor
    _pending: tuple[SentCommit, Outcome | None] | None  # a commit that is sent, not confirmed
    _unsent_outcome: Outcome | None  # its commit is not sent yet
    _answering: Waits[Outcome] | None  # a batch that is partly answered
    _recovering: Generator[None, None, None] | None
    _unbroken: tuple[object, ...]  # of the connection, when ownership was last checked

    def __init__(
        self,
        recovery: Recovery,
        options: SessionOptions | None = None,
        lease: HeldLease | None = None,
        observe: Callable[[Outcome], None] | None = None,
        backpressure: ConsumerBackpressure | None = None,
        publisher: Publisher | None = None,
    ) -> None:
        self._recovery, self._options = recovery, options or SessionOptions()
        self._store, self._lease = recovery.store, lease
        self._telemetry, self._observe = recovery.telemetry, observe
        self._pace, self._refits = recovery.pace, recovery.pace.refits
        self._batch = BatchSize(self._options.batch, BATCH_BYTES)
        self._backpressure = backpressure
        self._publisher = publisher or Publisher(recovery.store, every=0)
        self._request = SnapshotRequest(recovery.store)
        self._traces = BatchTraces(recovery.store.keys.feed)
        self.position = self._answered_position = START  # confirmed; answered or being committed
        self._begin_recovery(recovery.may_create)

    @property
    def is_recovering(self) -> bool:
        """Whether `recover_step` must be called before the feed can be answered."""
        return self._recovering is not None

    @property
    def cursor(self) -> bytes:
        """ID of the last answered entry, committed or not."""
        return self._answered_position.cursor

    @property
    def needs_refit(self) -> bool:
        """Whether the next entry needs the result of a refit; see `take_refit`."""
        return self._predictor.is_waiting

    @property
    def is_refit_pending(self) -> bool:
        """Whether that refit is still being computed, or the snapshot that is due must wait.

        A feed that always has input would otherwise never take a snapshot: the next refit begins
        with the entries that follow.
        """
        pace, predictor = self._pace, self._predictor
        if self._is_overdue and self._answering is None:
            return not pace.may_snapshot(predictor)
        return pace.waits(predictor)

    @property
    def may_start_early(self) -> bool:
        """Whether `answer` may be called before the refit that its entries need is finished.

        The following refit can then be submitted already, to start without delay. A snapshot that
        is due comes first.
        """
        return self._answering is None and not self.input.is_spent and not self._is_overdue

    @property
    def is_paused(self) -> bool:
        """Whether a batch is partly answered; `take_refit` continues it."""
        return self._answering is not None

    @property
    def is_refitting(self) -> bool:
        """Whether a refit process is computing for this feed at normal priority."""
        return self._refits.is_busy

    @property
    def unsaved(self) -> int:
        """Entries since the newest snapshot, which a restart would have to replay."""
        return self.position.seq - self._snapshot_seq

    @property
    def may_snapshot(self) -> bool:
        """Whether a snapshot can be taken now without waiting for a refit."""
        is_between = not self.is_recovering and self._answering is None
        return is_between and self._pace.may_snapshot(self._predictor)

    @property
    def can_confirm(self) -> bool:
        """Whether `finish_commit` would not wait: the reply to the pending commit was read."""
        return self._pending is None or self._store.has_reply(self._pending[0].sent)

    def reads(self) -> list[StreamRead]:
        """Return the stream to wait for when the input is spent."""
        if not self.input.is_spent:
            return []
        return [StreamRead(self._store.keys.feed, self._store.keys.input, self.cursor, self.input)]

    def next_now(self, limit: int) -> list[Entry]:
        """Return up to `limit` entries to answer next, without waiting for input or a refit."""
        limit, began = min(limit, self._pace.room(self._predictor)), time.time_ns()
        found = self.input.next_now(self._answered_position.cursor, limit) if limit > 0 else []
        self._traces.read(began)
        return found

    def take_refit(self) -> None:
        """Activate the refit that the next entry needs; wait for it if necessary."""
        if not self._predictor.is_waiting:
            return
        if self._answering is not None:
            self._go_on()
            return
        self._predictor.activate_if_due()
        if self._is_snapshot_due():
            self.snapshot()
        self._publish()

    def answer(self, entries: Sequence[Entry]) -> None:
        """Answer the next entries; confirm the pending commit, and send theirs.

        Raises Unavailable if Redis does not answer. Then call `resume` before anything else.
        """
        # If there is no more input, these answers are committed before the next refit starts.
        self._refits.is_deferring = self.input.is_at_the_end
        self._answering = processing(
            self._predictor, self._recovery.limits, self._answered_position, entries, self._recent
        )
        self._go_on()

    def _go_on(self) -> None:
        """Answer the batch up to an entry that needs an unfinished refit.

        The first entry may need one: see `may_start_early`. Others rarely do, since a batch ends
        where the next refit is known to be activated; but one entry may release many waiting
        examples, and an alarm may start a new schedule of refits.
        """
        assert self._answering is not None
        began = time.perf_counter()
        try:
            next(self._answering)
            while not self.is_refit_pending:
                next(self._answering)
        except StopIteration as ended:
            self._answering, self._unsent_outcome = None, ended.value
            self._traces.decided(ended.value)
        self._telemetry.answered(time.perf_counter() - began)
        if self._answering is None:
            self._commit_answered()

    def recover_step(self) -> bool:
        """Do a step of the take-over; return whether it is complete. Raises as `Recovery.steps`."""
        if self._recovering is not None:
            try:
                next(self._recovering)
            except StopIteration:
                self._recovering = None
        return self._recovering is None

    def resume(self) -> None:
        """Continue after Redis did not answer: commit the answers, check ownership.

        Raises Unavailable if Redis still does not answer. Then call it again.
        """
        if not self.is_recovering:
            self._restart_read()  # a reply to a read by the old reader may still arrive
            self._commit_answered()
            self.check_ownership()
            self.finish_commit()

    def may_answer(self) -> bool:
        """Return whether this worker owns the feed and consumers keep up."""
        self.check_ownership()
        if self.is_recovering:
            return False
        if self._backpressure is None or self._backpressure.has_room(self._batch.count):
            return True
        self.finish_commit()
        return False

    def check_ownership(self) -> None:
        """After a lost lease or connection, check that this worker still owns the feed.

        So a suspended writer detects that it was replaced even if it has nothing to commit. After a
        lost connection, Redis may be back without its last writes. Raises StateLost if the state is
        gone; Fenced if a newer writer has taken over.
        """
        if self._lease is not None and self._lease.pop_loss():
            self._is_lost = True
        store = self._store
        if not self._is_lost and self._unbroken == store.unbroken:
            return
        self.finish_commit()
        if self.is_recovering:
            return
        self._restart_read()  # buffered entries may be from another Redis
        self._unbroken, state = store.unbroken, store.state()
        self._is_lost = False
        if state is None:
            raise lost(store.keys)
        if state.epoch > self.epoch:
            raise Fenced(
                f"feed {store.keys.feed!r}: {state.writer!r} has taken over (epoch {state.epoch}, "
                f"this writer's {self.epoch})"
            )
        if (state.epoch, state.position) == (self.epoch, self.position):
            self._check_input()
        else:  # Redis lost its last writes, or ran a commit whose reply was lost
            self.reload()

    def _check_input(self) -> None:
        """Raise InputLost if the input was deleted, renamed or recreated."""
        try:
            self._store.check_input(self.epoch)
        except InputLost:
            # The state in memory can go on without the lost input; a replay could not.
            self.snapshot()
            self._store.check_input(self.epoch)
            raise

    def idle(self, is_checked: bool = False) -> None:
        """Run periodic work while idle; `is_checked` if a commit has just checked the input.

        Raises InputLost if the input was deleted, renamed or recreated.
        """
        if not is_checked:
            self._check_input()
        self._publish()
        self._request.poll(self._commits.kept.cursor)
        if self._request.is_open and self.may_snapshot:
            self.snapshot()
            self._request.close()

    def finish_commit(self) -> bool:
        """Wait for the pending commit; then start the refits that waited for it.

        Return False if the position had to be read again.
        """
        is_done = self._confirm_pending()
        if is_done:
            self._refits.begin()
        return is_done

    def snapshot(self) -> None:
        """Commit a snapshot of the current position, unless there is one."""
        self.send_snapshot()
        self.finish_snapshot()

    def send_snapshot(self) -> None:
        """Send the commit of a snapshot; the next call must be `finish_snapshot`.

        A batch that is partly answered is answered and committed first.
        """
        while self._answering is not None:
            self._go_on()
        self.finish_commit()
        is_ahead = self.is_recovering or self._answered_position != self.position
        if is_ahead or self._commits.kept.cursor == self.position.cursor:
            return  # the predictor is ahead of the last commit, or the snapshot exists
        pointers_only = Commit(self.epoch, self.position, self.position)
        self._pending = self._send(pointers_only, with_snapshot=True), None

    def finish_snapshot(self) -> None:
        """Wait for the commit of a sent snapshot, if any."""
        if self._pending is None:
            return
        try:
            self._confirm(self._pending)
        except (PositionMoved, BatchChanged):
            log.warning("the feed moved; no snapshot was left")
            self._store.note("snapshot_not_kept", "the feed moved")

    def reload(self) -> None:
        """Drop uncommitted results and take the feed over again."""
        log.warning("reading the position again", cursor=self.position.cursor)
        self._store.note("position_read_again", f"after {self.position.cursor.decode()}")
        self._begin_recovery(may_create=False)

    def _begin_recovery(self, may_create: bool) -> None:
        self._pending = self._unsent_outcome = self._answering = None
        self._traces.clear()
        self._recovering = self._recovery_steps(may_create)

    def _recovery_steps(self, may_create: bool) -> Generator[None, None, None]:
        """Take over the feed in steps; set the attributes that depend on its position."""
        recovered = yield from self._recovery.steps(may_create, self._writer)
        self._predictor, self.position = recovered.predictor, recovered.position
        self._answered_position = self.position  # of the predictor
        self._restart_read()
        self._recent = recovered.recent
        if self._recent.is_used:
            self._store.write_answered_ids(recovered.epoch, self._recent.all())
        self._commits = self._writer(recovered.config_hash, recovered.kept, self._predictor)
        self._stored_kinds = self._predictor.changed_kinds
        self._stored_duplicates = self._recent.duplicates
        self._predictor.drain_changed_kinds()  # before the replay they were logged
        self.epoch, self._is_lost = recovered.epoch, False
        self._unbroken = self._store.unbroken
        self._snapshot_seq = recovered.position.seq - recovered.unsaved
        log.info(
            "at work", feed=self._store.keys.feed, epoch=recovered.epoch, seq=self.position.seq,
            replayed=recovered.replayed,
        )  # fmt: skip

    def _writer(
        self, config_hash: str, kept: KeptSnapshots, predictor: OnlinePredictor
    ) -> CommitWriter:
        def examples() -> int | None:
            return kept_examples(predictor.config.window, predictor.delayed_labels.counts.pending)

        options, backpressure = self._options, self._backpressure
        return CommitWriter(
            self._store, config_hash, examples, kept, options.keep_input, backpressure
        )

    def _restart_read(self) -> None:
        """Drop entries that were read but not answered, and pending reads."""
        self.input = InputReader(self._store, self._batch)

    def _commit_answered(self) -> None:
        """Confirm the pending commit, and send the next one. After Unavailable, call it again."""
        if not self._confirm_pending() or self._unsent_outcome is None:
            return
        outcome = self._unsent_outcome
        self._answered_position = outcome.after
        self._pending, self._unsent_outcome = (self._send_answers(outcome), outcome), None
        self._publish()

    def _send_answers(self, outcome: Outcome) -> SentCommit:
        """Send the commit of a batch; its end is `_answered_position`."""
        self._request.poll(self._commits.kept.cursor)
        # Sent before the commit: Redis works in order, and the read would wait for the commit.
        self.input.prefetch(outcome.after.cursor)
        commit = Commit(
            self.epoch, outcome.before, outcome.after, outcome.ids, outcome.out,
            outcome.met, outcome.dlq, alarms=outcome.alarms,
            fields=self._changed_fields(),
            answered_ids=outcome.answered_ids,
        )  # fmt: skip
        return self._send(commit, with_snapshot=self._is_snapshot_due())

    def _changed_fields(self) -> dict[str, bytes]:
        """Return the fields of the state that changed since the last commit.

        Each changed kind is logged once.
        """
        predictor, fields = self._predictor, dict[str, bytes]()
        if predictor.delayed_labels.is_delayed:
            fields[PENDING] = PendingLabels.of(predictor.delayed_labels).encode()
        before = {(kind.feature, kind.came) for kind in self._stored_kinds}
        for kind in predictor.drain_changed_kinds():
            if (kind.feature, kind.came) not in before:
                log.warning(kind.words, feed=self._store.keys.feed)
        if predictor.changed_kinds != self._stored_kinds:
            self._stored_kinds = predictor.changed_kinds
            fields[KINDS] = encode_kinds(self._stored_kinds)
        if self._recent.duplicates != self._stored_duplicates:
            self._stored_duplicates = self._recent.duplicates
            fields[DUPLICATES] = b"%d" % self._stored_duplicates
        return fields

    @property
    def _is_overdue(self) -> bool:
        unsaved = self._answered_position.seq - self._snapshot_seq
        return is_due(unsaved, self._options.snapshot_every, self._request.is_open)

    def _is_snapshot_due(self) -> bool:
        return self._is_overdue and self._pace.may_snapshot(self._predictor)

    def _send(self, commit: Commit, with_snapshot: bool) -> SentCommit:
        """Send a commit, optionally with a snapshot of the predictor at its end."""
        body = None
        if with_snapshot:
            body = body_of(self._recent, self._predictor, self._commits.kept)
            fields = {**commit.fields, MEMORY: encode_memory(self._predictor)}
            commit = replace(commit, fields=fields)
        return self._commits.send(commit, body)

    def _confirm_pending(self) -> bool:
        """Do `finish_commit`, but start no refits."""
        if self._pending is None:
            return True
        _, outcome = pending = self._pending
        try:
            self._confirm(pending)
        except PositionMoved:
            self.reload()
        except BatchChanged:
            if outcome is not None:
                self._pending = pending  # after Unavailable, the next call checks again
                check_entries_exist(self._store, outcome.before.cursor, outcome.ids)
            self.reload()
        else:
            if outcome is not None:
                if self._observe is not None:
                    self._observe(outcome)
                self._traces.committed(outcome)
            return True
        return False

    def _confirm(self, pending: tuple[SentCommit, Outcome | None]) -> None:
        """Wait for the pending commit, then update the position."""
        (sent, _), self._pending = pending, None
        try:
            is_kept = self._commits.confirm(sent)
        except Unavailable:
            self._pending = pending  # it may be confirmed later
            raise
        self._telemetry.committed(sent.commit, time.perf_counter() - sent.at)
        if sent.commit.alarms:
            self._store.note_raised([entry_id for entry_id, _ in sent.commit.alarms])
        if is_kept:
            self._snapshot_seq = sent.commit.after.seq
            self._request.close()
            self._telemetry.kept_snapshot(sent.size)
        if self.position.cursor != sent.commit.after.cursor == LAST_ID:
            log.warning(f"{self._store.keys.input}: {END}")
            self._store.note("input_ended", END)
        self.position = sent.commit.after

    def _publish(self) -> None:
        """Store finished fits, and publish the state at the last sent commit, if it is time."""
        keep_finished(self._store, self._refits)
        if not self._predictor.is_waiting:
            self._publisher.offer(self._predictor, self._answered_position, self.epoch)


def assemble(
    recovery: Recovery,
    settings: WorkerSettings,
    lease: HeldLease | None = None,
    observe: Callable[[Outcome], None] | None = None,
) -> Session:
    """Return a session with these settings; it still has to take the feed over."""
    store, backpressure = recovery.store, None
    if settings.downstream == "block":
        backpressure = ConsumerBackpressure(store, DOWNSTREAM, recovery.telemetry)
    return Session(
        recovery, SessionOptions(settings.batch, settings.snapshot_every, settings.keep_input),
        lease, observe, backpressure, Publisher(store, settings.publish_every),
    )  # fmt: skip
