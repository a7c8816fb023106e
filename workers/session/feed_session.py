"""The part of a session that does not depend on the kind of input.

A session answers entries and commits the answers; it has no threads, and waits neither for input
nor for a refit. While Redis commits a batch, the session answers the next one. A commit is sent
only after the previous one is confirmed, so a session is at most one batch ahead of the last
confirmed commit. If a commit is refused, all later results are dropped.

A failure ends in one of three ways: the commit is sent again (`Connection`), the position is read
again from Redis (`FeedSession.reload`), or the session ends with an error that names the cause.
Commits are atomic, so a worker may die at any instruction.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import Generic, TypeVar

from workers.broker.commit_script import lost
from workers.broker.leases import HeldLease
from workers.broker.shared_reader import StreamRead
from workers.broker.store import Store
from workers.errors import BatchChanged, Fenced, PositionMoved, Unavailable
from workers.feed.position import START
from workers.log import Logger
from workers.session.answer import Outcome
from workers.session.commit_writer import SentCommit
from workers.session.telemetry import Telemetry

log = Logger("online_svm.worker")

Observer = Callable[[Outcome], None]

Item = TypeVar("Item")  # what is answered: an entry of the input, or a row of a join


class FeedSession(ABC, Generic[Item]):
    """The session of a feed, as the loop of a worker uses it.

    Attributes
    ----------
    position : Position
        The last confirmed commit. One more batch may be answered, and its commit sent.
    epoch : int
        Fencing token: the number of this writer of the feed.
    """

    epoch: int

    def __init__(
        self,
        store: Store,
        lease: HeldLease | None,
        telemetry: Telemetry,
        observe: Observer | None,  # called with the outcome of each committed batch
    ) -> None:
        self._store, self._lease = store, lease
        self._telemetry, self._observe = telemetry, observe
        self.position = self._answered_position = START  # confirmed; answered or being committed
        self._pending: tuple[SentCommit, Outcome | None] | None = None
        self._unsent_outcome: Outcome | None = None  # its commit is not sent yet
        self._recovering: Generator[None, None, None] | None = None

    @property
    def is_recovering(self) -> bool:
        """Whether `recover_step` must be called before the feed can be answered."""
        return self._recovering is not None

    @property
    def cursor(self) -> bytes:
        """ID of the last answered entry, committed or not."""
        return self._answered_position.cursor

    @property
    @abstractmethod
    def is_spent(self) -> bool:
        """Whether all input that has arrived is answered."""

    @property
    def needs_refit(self) -> bool:
        """Whether the next entry needs the result of a refit; see `take_refit`."""
        return False

    @property
    def is_refit_pending(self) -> bool:
        """Whether that refit is still being computed."""
        return False

    @property
    def may_start_early(self) -> bool:
        """Whether `answer` may be called before the refit that its entries need is finished."""
        return False

    @property
    def is_paused(self) -> bool:
        """Whether a batch is partly answered; `take_refit` continues it."""
        return False

    @property
    def is_refitting(self) -> bool:
        """Whether a refit process is computing for this feed at normal priority."""
        return False

    @property
    def unsaved(self) -> int:
        """Entries since the newest snapshot, which a restart would have to replay."""
        return 0

    @property
    def may_snapshot(self) -> bool:
        """Whether a snapshot can be taken now without waiting for a refit."""
        return False

    @property
    def can_confirm(self) -> bool:
        """Whether `finish_commit` would not wait: the reply to the pending commit was read."""
        return self._pending is None or self._store.has_reply(self._pending[0].sent)

    @abstractmethod
    def reads(self) -> list[StreamRead]:
        """Return the streams to wait for when the session is spent."""

    @abstractmethod
    def next_now(self, limit: int) -> list[Item]:
        """Return up to `limit` entries to answer next, without waiting for input or a refit."""

    @abstractmethod
    def answer(self, entries: Sequence[Item]) -> None:
        """Answer the next entries; confirm the pending commit, and send theirs.

        Raises Unavailable if Redis does not answer. Then call `resume` before anything else.
        """

    def take_refit(self) -> None:
        """Activate the refit that the next entry needs; wait for it if necessary."""

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
        return not self.is_recovering

    def check_ownership(self) -> None:
        """After a lost lease or connection, check that this worker still owns the feed.

        So a suspended writer detects that it was replaced even if it has nothing to commit. After a
        lost connection, Redis may be back without its last writes. Raises StateLost if the state is
        gone; Fenced if a newer writer has taken over.
        """
        if self._lease is not None and self._lease.pop_loss():
            self._is_lost = True
        if not self._is_lost and self._unbroken == self._store.unbroken:
            return
        self.finish_commit()
        if self.is_recovering:
            return
        self._restart_read()  # buffered entries may be from another Redis
        if self._is_position_unchanged():
            self._check_input()
        else:
            self.reload()

    def idle(self, is_checked: bool = False) -> None:
        """Run periodic work while idle; `is_checked` if a commit has just checked the input.

        Raises InputLost if the input was deleted, renamed or recreated.
        """
        if not is_checked:
            self._check_input()

    def finish_commit(self) -> bool:
        """Wait for the pending commit; return False if the position had to be read again."""
        return self._confirm_pending()

    def snapshot(self) -> None:
        """Commit a snapshot of the current position, unless there is one."""
        self.send_snapshot()
        self.finish_snapshot()

    def send_snapshot(self) -> None:
        """Send the commit of a snapshot; the next call must be `finish_snapshot`."""
        self.finish_commit()

    def finish_snapshot(self) -> None:
        """Wait for the commit of a sent snapshot, if any."""

    def reload(self) -> None:
        """Drop uncommitted results and take the feed over again."""
        log.warning("reading the position again", cursor=self.position.cursor)
        self._store.note("position_read_again", f"after {self.position.cursor.decode()}")
        self._begin_recovery(may_create=False)

    def _begin_recovery(self, may_create: bool) -> None:
        self._pending, self._unsent_outcome = None, None
        self._recovering = self._recovery_steps(may_create)

    @abstractmethod
    def _recovery_steps(self, may_create: bool) -> Generator[None, None, None]:
        """Take over the feed in steps; set the attributes that depend on its position."""

    def _note_ownership(self, epoch: int) -> None:
        """Record that this writer has taken the feed over."""
        self.epoch, self._is_lost = epoch, False
        self._unbroken = self._store.unbroken  # when ownership was last checked

    def _is_position_unchanged(self) -> bool:
        """Return whether epoch and position in Redis are those of this session.

        They are not if Redis lost its last writes, or ran a commit whose reply was lost.
        """
        self._unbroken = self._store.unbroken
        keys, state = self._store.keys, self._store.state()
        self._is_lost = False
        if state is None:
            raise lost(keys)
        if state.epoch > self.epoch:
            raise Fenced(
                f"feed {keys.feed!r}: {state.writer!r} has taken over (epoch {state.epoch}, this "
                f"writer's {self.epoch})"
            )
        return (state.epoch, state.position) == (self.epoch, self.position)

    @abstractmethod
    def _restart_read(self) -> None:
        """Drop entries that were read but not answered, and pending reads."""

    @abstractmethod
    def _send_answers(self, outcome: Outcome) -> SentCommit:
        """Send the commit of a batch; its end is `_answered_position`."""

    def _check_input(self) -> None:
        """Raise InputLost if the input was deleted, renamed or recreated."""

    def _publish(self) -> None:
        """Publish the state at the last sent commit, if it is time."""

    def _check_entries_exist(self, outcome: Outcome) -> None:
        """Raise InputLost if answered entries are gone."""

    def _commit_answered(self) -> None:
        """Confirm the pending commit, and send the next one. After Unavailable, call it again."""
        if not self._confirm_pending() or self._unsent_outcome is None:
            return
        outcome = self._unsent_outcome
        self._answered_position = outcome.after
        self._pending, self._unsent_outcome = (self._send_answers(outcome), outcome), None
        self._publish()

    def _confirm_pending(self) -> bool:
        """As `finish_commit`, but start no refits."""
        if self._pending is None:
            return True
        pending, self._pending = self._pending, None
        sent, outcome = pending
        try:
            self._confirm(sent)
        except Unavailable:
            self._pending = pending  # it may be confirmed later
            raise
        except PositionMoved:
            self.reload()
        except BatchChanged:
            if outcome is not None:
                self._pending = pending  # after Unavailable, the next call checks again
                self._check_entries_exist(outcome)
            self.reload()
        else:
            if outcome is not None:
                self._report_committed(outcome)
            return True
        return False

    def _report_committed(self, outcome: Outcome) -> None:
        if self._observe is not None:
            self._observe(outcome)

    @abstractmethod
    def _confirm(self, sent: SentCommit) -> None:
        """Wait for a commit, then update the position."""
