"""One feed at work: the part of a session that does not depend on the kind of input.

A session answers entries, and commits what it answered; it waits neither for input nor for a
refit, and knows no thread. While Redis commits a batch, the session answers the next one. So it is
at most one batch ahead of what is known to be committed: a commit is sent only when the one before
it is confirmed. If that one was refused, everything computed after it is dropped.

A failure ends in one of three ways: the commit is sent again (`Connection`), the position is read
again from Redis (`FeedSession.reload`), or the feed is given up with an error that names the cause.
Redis shows a batch whole or not at all, so a worker may die at any instruction.
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

Item = TypeVar("Item")
"""What is answered: an entry of the input, or a row of a join."""


class FeedSession(ABC, Generic[Item]):
    """What the loop of a worker asks of a feed, and the commits of it.

    Attributes
    ----------
    position : Position
        What this worker knows to be committed. It may have answered and sent one more batch.
    epoch : int
        Number of this writer of the feed.
    """

    epoch: int

    def __init__(
        self,
        store: Store,
        lease: HeldLease | None,  # shows other workers that this one is alive
        telemetry: Telemetry,
        observe: Observer | None,  # gets the outcome of each committed batch
    ) -> None:
        self._store, self._lease = store, lease
        self._telemetry, self._observe = telemetry, observe
        self.position = self._reached = START
        self._pending: tuple[SentCommit, Outcome | None] | None = None
        self._answered: Outcome | None = None  # its commit was not sent yet
        self._recovering: Generator[None, None, None] | None = None

    @property
    def is_recovering(self) -> bool:
        """Whether `recover_some` has something to do before the feed can be answered."""
        return self._recovering is not None

    @property
    def cursor(self) -> bytes:
        """ID of the last entry that was answered, committed or not."""
        return self._reached.cursor

    @property
    @abstractmethod
    def is_spent(self) -> bool:
        """Whether there is nothing to answer before something arrives."""

    @property
    def has_to_take_refit(self) -> bool:
        """Whether the next entry needs the result of a refit: see `take_refit`."""
        return False

    @property
    def waits_for_refit(self) -> bool:
        """Whether the next entry can be answered only once a refit is finished."""
        return False

    @property
    def may_go_ahead(self) -> bool:
        """Whether entries are here that may begin to be answered before the refit they need."""
        return False

    @property
    def is_paused(self) -> bool:
        """Whether entries are partly answered: `take_refit` goes on."""
        return False

    @property
    def is_refitting(self) -> bool:
        """Whether a refit is being computed elsewhere now, at normal priority."""
        return False

    @property
    def unsaved(self) -> int:
        """Entries that were answered since the newest snapshot: a kill costs as long a replay."""
        return 0

    @property
    def may_snapshot(self) -> bool:
        """Whether a snapshot may be left now, without a wait for a refit."""
        return False

    @property
    def may_confirm(self) -> bool:
        """Whether `finish_commit` need not wait: the reply to the pending commit was read."""
        return self._pending is None or self._store.has_reply(self._pending[0].sent)

    @abstractmethod
    def reads(self) -> list[StreamRead]:
        """Return the streams to wait for where the session is spent."""

    @abstractmethod
    def next_now(self, most: int) -> list[Item]:
        """Return up to `most` entries to answer next, without a wait for input or for a refit.

        None are returned where nothing more is there: see `is_spent`.
        """

    @abstractmethod
    def answer(self, entries: Sequence[Item]) -> None:
        """Answer the next entries; confirm the pending commit, send theirs and leave it pending.

        Raises Unavailable if Redis does not answer. Then call `resume` before anything else.
        """

    def take_refit(self) -> None:
        """Let a refit that the next entry needs take effect; wait for it if it is not finished."""

    def recover_some(self) -> bool:
        """Do a step of taking over the feed; return whether that is finished.

        Raises StateLost, ReplayMismatch, Stopped as `Recovery.steps`.
        """
        if self._recovering is not None:
            try:
                next(self._recovering)
            except StopIteration:
                self._recovering = None
        return self._recovering is None

    def resume(self) -> None:
        """Go on where Redis did not answer: send what was answered, and see whose the feed is.

        Raises Unavailable if it still does not answer. Then call it again.
        """
        if not self.is_recovering:
            self._restart_read()  # a read for the old one may be on its way
            self._commit_answered()
            self.check_ownership()
            self.finish_commit()

    def may_answer(self) -> bool:
        """Return whether the next batch may be answered: ours, and consumers keep up."""
        self.check_ownership()
        return not self.is_recovering

    def check_ownership(self) -> None:
        """After a lost lease or connection, check that this worker still owns the feed.

        A writer that was suspended learns here that another replaced it, though there may be
        nothing to commit. After a lost connection Redis may have come back without its last writes.

        Raises StateLost if the state is gone. Raises Fenced if a newer writer has taken over.
        """
        if self._lease is not None and self._lease.pop_loss():
            self._is_lost = True
        if not self._is_lost and self._unbroken == self._store.unbroken:
            return
        self.finish_commit()
        if self.is_recovering:
            return
        self._restart_read()  # entries read before may be from another Redis
        if self._stands_where_it_was_left():
            self._check_input()
        else:
            self.reload()

    def idle(self, is_checked: bool = False) -> None:
        """Run periodic work while idle; `is_checked` says that a commit has just checked the input.

        Raises InputLost if the input is no longer the stream that this feed answers.
        """
        if not is_checked:
            self._check_input()

    def finish_commit(self) -> bool:
        """Wait for the pending commit; return False if the position had to be read again."""
        return self._confirm_pending()

    def snapshot(self) -> None:
        """Commit a snapshot of the present position, unless there is one already."""
        self.send_snapshot()
        self.finish_snapshot()

    def send_snapshot(self) -> None:
        """Begin what `snapshot` does: `finish_snapshot` is the next call, before any other."""
        self.finish_commit()

    def finish_snapshot(self) -> None:
        """Wait until the snapshot that was sent is committed, if one was."""

    def reload(self) -> None:
        """Drop uncommitted results and continue from what is stored."""
        log.warning("reading the position again", cursor=self.position.cursor)
        self._store.note("position_read_again", f"after {self.position.cursor.decode()}")
        self._begin_recovery(may_create=False)

    def _begin_recovery(self, may_create: bool) -> None:
        self._pending, self._answered = None, None
        self._recovering = self._taking_over(may_create)

    @abstractmethod
    def _taking_over(self, may_create: bool) -> Generator[None, None, None]:
        """Take over the feed in steps: set what depends on its position."""

    def _own(self, epoch: int) -> None:
        """Note that this writer has taken the feed over."""
        self.epoch, self._is_lost = epoch, False
        self._unbroken = self._store.unbroken  # connections, when ownership was confirmed last

    def _stands_where_it_was_left(self) -> bool:
        """Return False if Redis lost the last writes, or did a commit whose reply was lost."""
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
        """Forget what was read and not answered."""

    @abstractmethod
    def _send_answers(self, outcome: Outcome) -> SentCommit:
        """Send the commit of what was answered; the position that it reaches is `_reached`."""

    def _check_input(self) -> None:
        """Raise InputLost if the input is no longer what this feed answers."""

    def _publish(self) -> None:
        """Publish the state at the last commit that was sent, where that is due."""

    def _check_held(self, outcome: Outcome) -> None:
        """Raise InputLost if entries that were answered are gone."""

    def _commit_answered(self) -> None:
        """Confirm the pending commit; send the next one and leave it pending.

        Where Redis does not answer, it can be called again.
        """
        if not self._confirm_pending() or self._answered is None:
            return
        outcome = self._answered
        self._reached = outcome.after
        self._pending, self._answered = (self._send_answers(outcome), outcome), None
        self._publish()

    def _confirm_pending(self) -> bool:
        """Wait for the pending commit, as `finish_commit`, without beginning refits."""
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
                self._pending = pending  # where Redis does not answer, this is found again
                self._check_held(outcome)
            self.reload()
        else:
            if outcome is not None and self._observe is not None:
                self._observe(outcome)
            return True
        return False

    @abstractmethod
    def _confirm(self, sent: SentCommit) -> None:
        """Wait until a commit is done, then update the position."""
