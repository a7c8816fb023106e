"""A feed with input of its own: answer its entries, learn them, and leave snapshots."""

import time
from collections.abc import Generator, Sequence

from typing_extensions import override

from online_svm.predictor.batch_result import Waits
from workers.broker.batch_size import BatchSize, Entry
from workers.broker.lease import HeldLease
from workers.broker.store import Store
from workers.config.settings import SNAPSHOT_EVERY, Limits
from workers.errors import BatchChanged, PositionMoved, Unavailable
from workers.feed.commit import Commit
from workers.feed.position import END, LAST_ID
from workers.feed.state_fields import PENDING, PendingLabels
from workers.log import Logger
from workers.refit.pooled_refitter import PooledRefitter
from workers.session.answer import Outcome, processing
from workers.session.commit_writer import CommitWriter, SentCommit
from workers.session.downstream import Gate, OpenGate
from workers.session.feed_session import Awaited, FeedSession, Observer
from workers.session.ownership import Ownership
from workers.session.publisher import Publisher
from workers.session.read_ahead import InputReader, check_held
from workers.session.recovery import Recovery
from workers.session.snapshot_request import SnapshotRequest
from workers.session.snapshots import PART_BYTES
from workers.session.telemetry import Telemetry

log = Logger("online_svm.worker")

BATCH_BYTES = 1 << 22
"""Bytes of input of one feed that are answered at once, about; it also bounds what is read."""


class Session(FeedSession[Entry]):
    """Answers a feed, a step at a time; see `FeedSession`.

    Parameters
    ----------
    store : Store
    recovery : Recovery
    limits : Limits
    batch : int
        Entries read and committed at once, at most.
    snapshot_every : int
        Input entries between two snapshots, at least.
    keep_input : bool
        Keep input that neither a replay nor the window needs.
    lease : HeldLease or None
        Tells other workers that this one is alive.
    observe : callable, optional
        Called with the outcome of each committed batch.
    begins : bool
        Whether the feed may be created. If not, its state must exist.
    batch_bytes : int
        Approximate bytes of input answered and committed at once.
    gate : Gate, optional
        Stops the feed while a consumer of its answers is behind.
    part_bytes : int
        Bytes of a snapshot under one key, at most.
    refits : PooledRefitter, optional
        The refits of the predictors that `recovery` makes, if they are computed elsewhere.
    telemetry : Telemetry, optional
        Is told what the session does.
    publisher : Publisher, optional
        Publishes states for scorers.
    in_steps : bool
        Whether the feed is taken over by `recover_some`, step by step; else at once.

    Attributes
    ----------
    input : InputReader
        The entries to answer next.
    """

    def __init__(
        self,
        store: Store,
        recovery: Recovery,
        limits: Limits,
        batch: int = 256,
        snapshot_every: int = SNAPSHOT_EVERY,
        keep_input: bool = False,
        lease: HeldLease | None = None,
        observe: Observer | None = None,
        begins: bool = True,
        batch_bytes: int = BATCH_BYTES,
        gate: Gate | None = None,
        part_bytes: int = PART_BYTES,
        refits: PooledRefitter | None = None,
        telemetry: Telemetry | None = None,
        publisher: Publisher | None = None,
        in_steps: bool = False,
    ) -> None:
        super().__init__(store, lease, telemetry, observe)
        self._in_steps, self._recovery, self._limits = in_steps, recovery, limits
        self._batch = BatchSize(batch, batch_bytes)
        self._gate = gate or OpenGate()
        self._publisher = publisher or Publisher(store, every=0)
        self._refits = refits
        self._snapshot_every = snapshot_every
        self._keep_input, self._part_bytes = keep_input, part_bytes
        self._wanted = SnapshotRequest(store)
        self._answering: Waits[Outcome] | None = None  # it is paused, for a refit
        self._begin_recovery(begins)

    @property
    @override
    def is_spent(self) -> bool:
        return self.input.is_spent

    @property
    @override
    def has_to_take_refit(self) -> bool:
        return self._predictor.is_waiting

    @property
    @override
    def waits_for_refit(self) -> bool:
        """Whether the next entry can be answered only once a refit is finished.

        Where a snapshot is due, that waits for what it needs, too. Else a feed that always has
        input would leave none: the next refit begins with the entries that follow.
        """
        pace, predictor = self._recovery.pace, self._predictor
        if self._is_overdue and self._answering is None:
            return not pace.may_snapshot(predictor)
        return pace.waits(predictor)

    @property
    @override
    def may_go_ahead(self) -> bool:
        """Whether entries are here that may begin to be answered before the refit they need.

        The refit after it can then be submitted, and begins as soon as it is finished. Where a
        snapshot is due, that comes first.
        """
        return self._answering is None and not self.input.is_spent and not self._is_overdue

    @property
    @override
    def is_paused(self) -> bool:
        return self._answering is not None

    @property
    @override
    def is_refitting(self) -> bool:
        return self._refits is not None and self._refits.is_busy

    @property
    @override
    def unsaved(self) -> int:
        return self.position.seq - self._snapshot_seq

    @property
    @override
    def may_snapshot(self) -> bool:
        is_between = not self.is_recovering and self._answering is None
        return is_between and self._recovery.pace.may_snapshot(self._predictor)

    @override
    def awaited(self) -> list[Awaited]:
        if not self.input.is_spent:
            return []
        return [Awaited(self._store.keys.input, self.cursor, self.input)]

    @override
    def _begin_recovery(self, begins: bool) -> None:
        super()._begin_recovery(begins)
        self._answering = None
        if not self._in_steps:
            while not self.recover_some():
                pass

    @override
    def _taking_over(self, begins: bool) -> Generator[None, None, None]:
        recovered = yield from self._recovery.steps(begins)
        self._predictor, self.position = recovered.predictor, recovered.position
        self._reached = self.position  # of the predictor
        self._read_anew()
        self._recent = recovered.recent
        self._commits = CommitWriter(
            self._store, recovered.config_hash, self._kept_examples, recovered.kept,
            self._keep_input, self._part_bytes, self._gate,
        )  # fmt: skip
        self._ownership = Ownership(self._store, recovered.epoch, self._lease)
        self._snapshot_seq = recovered.position.seq - recovered.replayed
        log.info(
            "at work",
            feed=self._store.keys.feed,
            epoch=recovered.epoch,
            seq=self.position.seq,
            replayed=recovered.replayed,
        )

    def _kept_examples(self) -> int | None:
        """Return how many examples the input is kept of: those of the window, and those waiting."""
        window, late = self._predictor.config.window, self._predictor.late
        return window if window is None or late is None else window + late.counts.pending

    @override
    def next_now(self, most: int) -> list[Entry]:
        room = self._recovery.pace.room(self._predictor)
        limit = most if room is None else min(most, room)
        return self.input.next_now(self._reached.cursor, limit) if limit > 0 else []

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
        # If no more input is known, these answers are committed before a refit begins.
        if self._refits is not None:
            self._refits.is_patient = self.input.is_at_the_end
        self._answering = processing(
            self._predictor, self._limits, self._reached, entries, self._recent
        )
        self._go_on()

    def _go_on(self) -> None:
        """Answer the entries under way, up to where one needs a refit that is not finished.

        The first one may: see `may_go_ahead`. Few others do: a batch ends where the next refit is
        known to take effect. But an entry may let many waiting examples be learned at once, and an
        alarm may begin a new schedule of refits.
        """
        assert self._answering is not None
        began = time.perf_counter()
        try:
            next(self._answering)
            while not self.waits_for_refit:
                next(self._answering)
        except StopIteration as ended:
            self._answering, self._answered = None, ended.value
        self._telemetry.answered(time.perf_counter() - began)
        if self._answering is None:
            self._commit_answered()

    @override
    def _send_answers(self, outcome: Outcome) -> SentCommit:
        self._wanted.look(self._commits.newest)
        # Redis works in order: a read that is sent after the commit would wait for it.
        self.input.prefetch(outcome.after.cursor)
        commit = Commit(
            self._ownership.epoch, outcome.before, outcome.after, outcome.ids, outcome.out,
            outcome.met, outcome.dlq, alarms=outcome.alarms, fields=self._pending_labels(),
        )  # fmt: skip
        return self._send(commit, with_snapshot=self._is_snapshot_due())

    def _pending_labels(self) -> dict[str, bytes]:
        """Return what the state says of labels that are still to come: no part of the digest."""
        late = self._predictor.late
        if late is None:
            return {}
        oldest, counts = late.oldest_open, late.counts
        since = None if oldest is None else oldest.time
        return {PENDING: PendingLabels(counts.pending, counts.unlabelled, since).encode()}

    @override
    def finish_commit(self) -> bool:
        """Wait for the pending commit; return False if the position had to be read again.

        After the commit, refits that waited for it begin.
        """
        is_done = super().finish_commit()
        if is_done and self._refits is not None:
            self._refits.begin()
        return is_done

    @override
    def _check_held(self, outcome: Outcome) -> None:
        check_held(self._store, outcome.before.cursor, outcome.ids)

    @override
    def send_snapshot(self) -> None:
        """Begin what `snapshot` does: `finish_snapshot` is the next call, before any other.

        Entries that wait for a refit in their midst are answered and committed first.
        """
        while self._answering is not None:
            self._go_on()
        self.finish_commit()
        is_ahead = self.is_recovering or self._reached != self.position
        if is_ahead or self._commits.newest == self.position.cursor:
            return  # the predictor is ahead of the commit, or there is nothing new
        pointers_only = Commit(self._ownership.epoch, self.position, self.position)
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
        unsaved = self._reached.seq - self._snapshot_seq
        return self._wanted.is_open or unsaved >= self._snapshot_every

    def _is_snapshot_due(self) -> bool:
        return self._is_overdue and self._recovery.pace.may_snapshot(self._predictor)

    def _send(self, commit: Commit, with_snapshot: bool) -> SentCommit:
        """Send a commit; with a snapshot of the predictor, which stands at its end."""
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
            self._wanted.close()
            self._telemetry.kept_snapshot(sent.size)
        if self.position.cursor != sent.commit.after.cursor == LAST_ID:
            log.warning(f"{self._store.keys.input}: {END}")
            self._store.note("input_ended", END)
        self.position = sent.commit.after

    @override
    def _publish(self) -> None:
        if not self._predictor.is_waiting:
            self._publisher.offer(self._predictor, self._reached, self._ownership.epoch)

    @override
    def may_answer(self) -> bool:
        if not super().may_answer():
            return False
        if self._gate.is_open(self._batch.count):
            return True
        self.finish_commit()
        return False

    @override
    def idle(self, is_checked: bool = False) -> None:
        super().idle(is_checked)
        self._publish()
        self._wanted.look(self._commits.newest)
        if self._wanted.is_open and self.may_snapshot:
            self.snapshot()
            self._wanted.close()

    @override
    def _read_anew(self) -> None:
        self.input = InputReader(self._store, self._batch)

    @override
    def _check_input(self) -> None:
        self._store.check_input(self._ownership.epoch)
