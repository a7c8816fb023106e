"""The session of a feed with its own input: answer and learn its entries, take snapshots."""

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial

from typing_extensions import override

from online_svm.predictor.batch import Waits
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.broker.large_replies import BatchSize
from workers.broker.leases import HeldLease
from workers.broker.shared_reader import StreamRead
from workers.broker.streams import Entry
from workers.config.settings import SNAPSHOT_EVERY, WorkerSettings
from workers.errors import BatchChanged, PositionMoved, Unavailable
from workers.feed.position import END, LAST_ID
from workers.feed.retention import DOWNSTREAM
from workers.feed.state import Commit
from workers.feed.state_fields import PENDING, PendingLabels
from workers.log import Logger
from workers.session.answer import Outcome, processing
from workers.session.commit_writer import CommitWriter, SentCommit, SnapshotRequest
from workers.session.feed_session import FeedSession, Observer
from workers.session.flow_control import ConsumerBackpressure, InputReader, check_entries_exist
from workers.session.publisher import Publisher
from workers.session.recovery import Recovery
from workers.session.snapshots import KeptSnapshots, is_due, kept_examples
from workers.session.spans import BatchTraces

log = Logger("online_svm.worker")

BATCH_BYTES = 1 << 22  # approximate bytes of input that are read, and answered, at once


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Settings of a session."""

    batch: int = 256  # most entries read and committed at once
    snapshot_every: int = SNAPSHOT_EVERY  # input entries from one snapshot to the next
    keep_input: bool = False  # never trim the input


class Session(FeedSession[Entry]):
    """Answers a feed with its own input, a step at a time; see `FeedSession`."""

    input: InputReader

    def __init__(
        self,
        recovery: Recovery,
        options: SessionOptions | None = None,
        lease: HeldLease | None = None,
        observe: Observer | None = None,
        backpressure: ConsumerBackpressure | None = None,
        publisher: Publisher | None = None,
    ) -> None:
        super().__init__(recovery.store, lease, recovery.telemetry, observe)
        self._recovery, self._options = recovery, options or SessionOptions()
        self._pace, self._refits = recovery.pace, recovery.pace.refits
        self._batch = BatchSize(self._options.batch, BATCH_BYTES)
        self._backpressure = backpressure
        self._publisher = publisher or Publisher(recovery.store, every=0)
        self._request = SnapshotRequest(recovery.store)
        self._answering: Waits[Outcome] | None = None  # a batch that is partly answered
        self._traces = BatchTraces(recovery.store.keys.feed)
        self._begin_recovery(recovery.may_create)

    @property
    @override
    def is_spent(self) -> bool:
        return self.input.is_spent

    @property
    @override
    def needs_refit(self) -> bool:
        return self._predictor.is_waiting

    @property
    @override
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
    @override
    def may_start_early(self) -> bool:
        """Whether `answer` may be called before the refit that its entries need is finished.

        The following refit can then be submitted already, to start without delay. A snapshot that
        is due comes first.
        """
        return self._answering is None and not self.input.is_spent and not self._is_overdue

    @property
    @override
    def is_paused(self) -> bool:
        return self._answering is not None

    @property
    @override
    def is_refitting(self) -> bool:
        return self._refits.is_busy

    @property
    @override
    def unsaved(self) -> int:
        return self.position.seq - self._snapshot_seq

    @property
    @override
    def may_snapshot(self) -> bool:
        is_between = not self.is_recovering and self._answering is None
        return is_between and self._pace.may_snapshot(self._predictor)

    @override
    def reads(self) -> list[StreamRead]:
        if not self.input.is_spent:
            return []
        return [StreamRead(self._store.keys.feed, self._store.keys.input, self.cursor, self.input)]

    @override
    def _begin_recovery(self, may_create: bool) -> None:
        super()._begin_recovery(may_create)
        self._answering = None
        self._traces.clear()

    @override
    def _recovery_steps(self, may_create: bool) -> Generator[None, None, None]:
        recovered = yield from self._recovery.steps(may_create, self._writer)
        self._predictor, self.position = recovered.predictor, recovered.position
        self._answered_position = self.position  # of the predictor
        self._restart_read()
        self._recent = recovered.recent
        self._commits = self._writer(recovered.config_hash, recovered.kept, self._predictor)
        self._note_ownership(recovered.epoch)
        self._snapshot_seq = recovered.position.seq - recovered.unsaved
        log.info(
            "at work", feed=self._store.keys.feed, epoch=recovered.epoch, seq=self.position.seq,
            replayed=recovered.replayed,
        )  # fmt: skip

    def _writer(
        self, config_hash: str, kept: KeptSnapshots, predictor: OnlinePredictor
    ) -> CommitWriter:
        return CommitWriter(
            self._store, config_hash, partial(_examples_of_input, predictor), kept,
            self._options.keep_input, self._backpressure,
        )  # fmt: skip

    @override
    def next_now(self, limit: int) -> list[Entry]:
        limit, began = min(limit, self._pace.room(self._predictor)), time.time_ns()
        found = self.input.next_now(self._answered_position.cursor, limit) if limit > 0 else []
        self._traces.read(began)
        return found

    @override
    def take_refit(self) -> None:
        if not self._predictor.is_waiting:
            return
        if self._answering is not None:
            self._go_on()
            return
        self._predictor.activate_if_due()
        if self._is_snapshot_due():
            self.snapshot()
        self._publish()

    @override
    def answer(self, entries: Sequence[Entry]) -> None:
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

    @override
    def _send_answers(self, outcome: Outcome) -> SentCommit:
        self._request.poll(self._commits.kept.cursor)
        # Sent before the commit: Redis works in order, and the read would wait for the commit.
        self.input.prefetch(outcome.after.cursor)
        commit = Commit(
            self.epoch, outcome.before, outcome.after, outcome.ids, outcome.out,
            outcome.met, outcome.dlq, alarms=outcome.alarms, fields=self._pending_labels(),
        )  # fmt: skip
        return self._send(commit, with_snapshot=self._is_snapshot_due())

    def _pending_labels(self) -> dict[str, bytes]:
        """Return the fields of the state about labels that are still missing."""
        labels = self._predictor.delayed_labels
        if not labels.is_delayed:
            return {}
        oldest, counts = labels.oldest_open, labels.counts
        since = None if oldest is None else oldest.time
        return {PENDING: PendingLabels(counts.pending, counts.unlabelled, since).encode()}

    @override
    def finish_commit(self) -> bool:
        """As `FeedSession.finish_commit`; then start the refits that waited for the commit."""
        is_done = super().finish_commit()
        if is_done:
            self._refits.begin()
        return is_done

    @override
    def _check_entries_exist(self, outcome: Outcome) -> None:
        check_entries_exist(self._store, outcome.before.cursor, outcome.ids)

    @override
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

    @override
    def finish_snapshot(self) -> None:
        if self._pending is None:
            return
        pending, self._pending = self._pending, None
        try:
            self._confirm(pending[0])
        except Unavailable:
            self._pending = pending  # it may be confirmed later
            raise
        except (PositionMoved, BatchChanged):
            log.warning("the feed moved; no snapshot was left")
            self._store.note("snapshot_not_kept", "the feed moved")

    @property
    def _is_overdue(self) -> bool:
        unsaved = self._answered_position.seq - self._snapshot_seq
        return is_due(unsaved, self._options.snapshot_every, self._request.is_open)

    def _is_snapshot_due(self) -> bool:
        return self._is_overdue and self._pace.may_snapshot(self._predictor)

    def _send(self, commit: Commit, with_snapshot: bool) -> SentCommit:
        """Send a commit, optionally with a snapshot of the predictor at its end."""
        body = self._recent.prepend_to(self._predictor.snapshot()) if with_snapshot else None
        return self._commits.send(commit, body)

    @override
    def _confirm(self, sent: SentCommit) -> None:
        is_kept = self._commits.confirm(sent)
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

    @override
    def _report_committed(self, outcome: Outcome) -> None:
        super()._report_committed(outcome)
        self._traces.committed(outcome)

    @override
    def _publish(self) -> None:
        if not self._predictor.is_waiting:
            self._publisher.offer(self._predictor, self._answered_position, self.epoch)

    @override
    def may_answer(self) -> bool:
        if not super().may_answer():
            return False
        if self._backpressure is None or self._backpressure.has_room(self._batch.count):
            return True
        self.finish_commit()
        return False

    @override
    def idle(self, is_checked: bool = False) -> None:
        super().idle(is_checked)
        self._publish()
        self._request.poll(self._commits.kept.cursor)
        if self._request.is_open and self.may_snapshot:
            self.snapshot()
            self._request.close()

    @override
    def _restart_read(self) -> None:
        self.input = InputReader(self._store, self._batch)

    @override
    def _check_input(self) -> None:
        self._store.check_input(self.epoch)


def _examples_of_input(predictor: OnlinePredictor) -> int | None:
    """Return for how many examples of the predictor the input is kept."""
    return kept_examples(predictor.config.window, predictor.delayed_labels.counts.pending)


def assemble(
    recovery: Recovery,
    settings: WorkerSettings,
    lease: HeldLease | None = None,
    observe: Observer | None = None,
) -> Session:
    """Return a session with these settings; it still has to take the feed over."""
    store, backpressure = recovery.store, None
    if settings.downstream == "block":
        backpressure = ConsumerBackpressure(store, DOWNSTREAM, recovery.telemetry)
    return Session(
        recovery, SessionOptions(settings.batch, settings.snapshot_every, settings.keep_input),
        lease, observe, backpressure, Publisher(store, settings.publish_every),
    )  # fmt: skip
