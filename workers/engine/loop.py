"""The worker's loop: read after the cursor, answer, commit; now and then a snapshot.

While Redis commits a batch the next one, read already, is answered. That runs one batch ahead of
what is known to be committed, and no more: the next commit is sent when the last one is confirmed,
and if that was refused, whatever was computed on top of it is dropped.

Everything that may go wrong ends in one of three ways: the commit is tried again (`Connection`),
the position is read again from what is stored (`Engine.reload`), or the worker stops with an error
that says why. A batch is visible in Redis whole or not at all, so it may end at any instruction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import structlog

from workers.broker.batch_size import BatchSize
from workers.broker.lease import Lease
from workers.broker.pipeline import Sent
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.engine import snapshots
from workers.engine.answer import Outcome, process
from workers.engine.downstream import Gate, OpenGate
from workers.engine.read_ahead import InputReader
from workers.engine.recovery import Recovery
from workers.engine.snapshots import KeptSnapshots
from workers.errors import (
    BatchChanged,
    Fenced,
    InputLost,
    InvalidStoredSnapshot,
    PositionMoved,
    StateLost,
    Stopped,
)
from workers.feed.commit import Commit
from workers.feed.position import END, LAST_ID, parse_id
from workers.feed.state import Pointer
from workers.stop import Stop

log = structlog.get_logger("online_svm.worker")

_NO_SNAPSHOT = "stopped without a snapshot: the next start replays from the last one"

Observer = Callable[[Outcome], None]


@dataclass(frozen=True, slots=True)
class _PendingCommit:
    """A commit that is not confirmed.

    Attributes
    ----------
    commit : Commit
    sent : Sent
        Its call.
    snapshot : (Pointer, list of Sent) or None
        What it points at, and how its parts are written.
    outcome : Outcome or None
        None where it only moves pointers.
    """

    commit: Commit
    sent: Sent
    snapshot: tuple[Pointer, list[Sent]] | None
    outcome: Outcome | None


class Engine:
    """Answers a feed until a stop is requested.

    Parameters
    ----------
    store : Store
    recovery : Recovery
    limits : Limits
    stop : Stop
    batch : int
        Entries read and committed at once, at most.
    snapshot_every : int
        Input entries between two snapshots, at least.
    keep_input : bool
        Do not trim the input when neither a replay nor the window needs it.
    lease : Lease or None
        What tells other workers that this one lives.
    observe : callable, optional
        Called with the outcome of each committed batch.
    begins : bool
        The feed may be created; else its state must be there.
    batch_bytes : int
        Bytes of input answered and committed at once, about.
    gate : Gate, optional
        Holds the feed back while a consumer of its answers is behind.
    part_bytes : int
        Bytes of a snapshot under one key, at most.

    Attributes
    ----------
    position : Position
        What this worker knows to be committed. It has answered, and sent, one batch more at most.
    """

    def __init__(
        self,
        store: Store,
        recovery: Recovery,
        limits: Limits,
        stop: Stop,
        batch: int = 256,
        snapshot_every: int = 10_000,
        keep_input: bool = False,
        lease: Lease | None = None,
        observe: Observer | None = None,
        begins: bool = True,
        batch_bytes: int = 1 << 26,
        gate: Gate | None = None,
        part_bytes: int = snapshots.PART_BYTES,
    ) -> None:
        self._store, self._recovery, self._limits, self._stop = store, recovery, limits, stop
        self._batch = BatchSize(batch, batch_bytes)
        self._gate = gate or OpenGate()
        self._part_bytes = part_bytes
        self._snapshot_every, self._keep_input = snapshot_every, keep_input
        self._lease = lease
        self._observe = observe or _ignore
        self._pending: _PendingCommit | None = None
        self._reads_ahead = True
        self._take_over(begins)

    def _take_over(self, begins: bool) -> None:
        recovered = self._recovery(begins)
        self._predictor, self.position = recovered.predictor, recovered.position
        self._reached = self.position  # where the predictor stands
        self._pending = None
        self._input = self._new_input()
        self._recent, self._config_hash = recovered.recent, recovered.config_hash
        self._epoch, self._kept = recovered.epoch, recovered.kept
        self._snapshot_seq = recovered.position.seq - recovered.replayed
        self._failures = self._store.failures
        log.info("at work", epoch=self._epoch, seq=self.position.seq, replayed=recovered.replayed)

    def run(self) -> None:
        """Answer until a stop is requested, then leave a snapshot.

        Raises
        ------
        Fenced
            If a newer worker has taken over.
        StateLost, ReplayMismatch
            If what is stored cannot be continued from.
        """
        while not self._stop.requested:
            try:
                self.advance()
            except Stopped:
                # What was learned since is not committed, so no snapshot of it may be left.
                log.warning(_NO_SNAPSHOT)
                return
        try:
            self.snapshot()
        except Stopped:
            log.warning(_NO_SNAPSHOT)

    def turn(self) -> None:
        """Answer and commit what one read brings; return after a while if there is nothing.

        Nothing is left under way, and nothing is read ahead.
        """
        self._reads_ahead, self._input.reads_ahead = False, False
        self.advance()
        before = None
        while self._input.holds_more and self._reached != before:  # else the gate is closed
            before = self._reached
            self.advance()
        self.finish_commit()
        self._reads_ahead = True
        self._input = self._new_input()

    def advance(self) -> None:
        """Answer one batch and leave its commit under way; return after a while if there is none.

        The commit before it is confirmed; before a wait for new input, that is all it does.
        """
        if not self._may_go_on():
            return
        # Whoever waits for an answer before the next question asks that soon: this worker is then
        # awake, unless a refit needs the processor.
        is_eager = not self._predictor.is_refitting
        if self._pending is not None and self._input.may_wait:
            if is_eager:
                self._store.spin()
            self.finish_commit()
            return
        entries = self._input.next_batch(self._reached.cursor, self._before_waiting(), is_eager)
        if not entries:
            return
        # With nothing more to answer, these answers go out before a refit begins.
        self._predictor.is_patient = self._input.is_at_the_end
        outcome = process(self._predictor, self._limits, self._reached, entries, self._recent)
        if not self._confirm_pending():
            return
        # Before the commit is sent, or the reply would come after the commit is done.
        self._input.prefetch(outcome.after.cursor)
        self._reached = outcome.after
        commit = Commit(
            self._epoch, outcome.before, outcome.after, outcome.ids, outcome.out, outcome.met,
            outcome.dlq,
        )  # fmt: skip
        due = outcome.after.seq - self._snapshot_seq >= self._snapshot_every
        self._pending = self._sent(commit, due, outcome)

    def finish_commit(self) -> bool:
        """Wait for the commit under way; return False where the feed had to be read again.

        The answers are out then, and refits that waited for that begin.
        """
        is_done = self._confirm_pending()
        if is_done:
            self._predictor.begin_refits()
        return is_done

    def _confirm_pending(self) -> bool:
        """Do what `finish_commit` does, but for the refits."""
        pending, self._pending = self._pending, None
        if pending is None:
            return True
        try:
            self._confirm(pending)
        except PositionMoved:
            self.reload()
        except BatchChanged:
            self._check_input(pending.commit.before.cursor, pending.commit.ids)
            self.reload()
        else:
            if pending.outcome is not None:
                self._observe(pending.outcome)
            return True
        return False

    def snapshot(self) -> None:
        """Commit a snapshot of the present position, unless the newest one is it."""
        self.finish_commit()
        if self._reached != self.position or self._newest_cursor() == self.position.cursor:
            return  # more was learned than is known to be committed, or nothing
        pointers_only = Commit(self._epoch, self.position, self.position)
        try:
            self._confirm(self._sent(pointers_only, moves=True))
        except (PositionMoved, BatchChanged):
            log.warning("the feed moved; no snapshot was left")

    def _new_input(self) -> InputReader:
        return InputReader(self._store, self._batch, self._reads_ahead)

    def reload(self) -> None:
        """Drop what was computed and continue from what is stored."""
        log.warning("reading the position again", cursor=self.position.cursor)
        self._take_over(begins=False)

    def _before_waiting(self) -> int | None:
        """Return how many entries to commit before the next one may wait for a refit.

        Committing them is then done while the refit goes on.
        """
        waits_at = self._predictor.waits_at
        before = 0 if waits_at is None else waits_at - 1 - self._predictor.n
        return before if before > 0 else None

    def _sent(self, commit: Commit, moves: bool, outcome: Outcome | None = None) -> _PendingCommit:
        """Begin a commit, with a snapshot if it moves."""
        if not moves:
            return _PendingCommit(commit, self._store.send(commit), None, outcome)
        snapshot, commit = self._with_snapshot(commit)
        return _PendingCommit(commit, self._store.send(commit), snapshot, outcome)

    def _confirm(self, pending: _PendingCommit) -> None:
        """Wait until a commit is done; the position follows."""
        commit, snapshot = pending.commit, pending.snapshot
        try:
            self._store.confirm(commit, pending.sent)
        except InvalidStoredSnapshot:
            assert snapshot is not None
            if not self._is_committed_again(commit, snapshot[1]):
                snapshot = None
                self._store.commit(replace(commit, move=None))
        if self.position.cursor != commit.after.cursor == LAST_ID:
            log.warning(f"{self._store.keys.input}: {END}")
        self.position = commit.after
        if snapshot is not None:
            assert commit.move is not None
            self._kept = KeptSnapshots(snapshot[0], self._kept.newest, marks=commit.move.marks)
            self._snapshot_seq = commit.after.seq

    def _is_committed_again(self, commit: Commit, writing: list[Sent]) -> bool:
        """Commit once more after its snapshot was not there, when that is written.

        Its write was lost with a connection, or refused for a while; or Redis was away for so long
        that it expired, unreferenced. If it is gone again, the next batch brings another.
        """
        self._store.finish_snapshot(writing)
        try:
            self._store.commit(commit)
        except InvalidStoredSnapshot:
            log.warning("a snapshot was not kept", cursor=commit.after.cursor)
            return False
        return True

    def _with_snapshot(self, commit: Commit) -> tuple[tuple[Pointer, list[Sent]], Commit]:
        """Begin to write a snapshot of the predictor, which stands after this batch; point at it.

        Redis takes its time to write as much; the next batch is answered meanwhile.
        """
        store = self._store
        body = self._recent.prepend_to(self._predictor.snapshot())
        pointer, data = snapshots.encode(
            store.keys.feed, self._config_hash, commit.after, body, self._part_bytes
        )
        window = self._predictor.config.window
        move = snapshots.move_to(pointer, self._kept, store, self._keep_input, window)
        sent = store.put_snapshot(pointer, data)
        return (pointer, sent), replace(commit, move=move)

    def _newest_cursor(self) -> bytes:
        return b"0-0" if self._kept.newest is None else self._kept.newest.cursor

    def _may_go_on(self) -> bool:
        """Return whether the next batch may be answered: the feed is ours, the gate is open."""
        self._check_ownership()
        if self._gate.is_open(self._batch.count):
            return True
        self.finish_commit()
        return False

    def _check_ownership(self) -> None:
        """After a lost lease or connection see whether the feed is still this worker's.

        A worker that was suspended learns here that it was replaced, and one whose Redis came
        back without its last writes that it must read again, even if no input arrives.
        """
        lost = self._lease is not None and self._lease.pop_loss()
        if not lost and self._failures == self._store.failures:
            return
        self.finish_commit()
        self._input = self._new_input()  # what was read may be of another Redis
        self._failures = self._store.failures
        state = self._store.state()
        if state is None:
            raise StateLost(
                f"{self._store.keys.state} is gone: Redis was flushed or lost its data; restore "
                f"it from a backup, or: online-svm reset {self._store.keys.feed}"
            )
        if state.epoch > self._epoch:
            raise Fenced(
                f"feed {self._store.keys.feed!r}: {state.writer!r} has taken over (epoch "
                f"{state.epoch}, this worker's {self._epoch})"
            )
        if state.epoch < self._epoch or state.position != self.position:
            self.reload()

    def _check_input(self, after: bytes, held: Sequence[bytes]) -> None:
        """Raise InputLost if an entry that was read is gone; more entries than that are fine."""
        pages = self._store.pages(self._store.keys.input, after, held[-1])
        present = {entry[0] for page in pages for entry in page}
        gone = sorted((i for i in held if i not in present), key=parse_id)
        if gone:
            raise InputLost(
                f"input lost: {len(gone)} of the {len(held)} entries that were read, from "
                f"{gone[0].decode()} on, were trimmed or deleted before their answers were "
                f"committed. Restore them under their IDs, or: online-svm reset "
                f"{self._store.keys.feed}"
            )


def _ignore(_outcome: Outcome) -> None:
    """Observe nothing."""
