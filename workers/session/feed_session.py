"""One feed at work: what a session does whatever its input is.

A session answers entries, and commits what it answered; it waits neither for input nor for a
refit, and knows no thread. While Redis commits a batch, the session answers the next one. So it is
at most one batch ahead of what is known to be committed: a commit is sent only when the one before
it is confirmed. If that one was refused, everything computed after it is dropped.

A failure ends in one of three ways: the commit is sent again (`Connection`), the position is read
again from Redis (`FeedSession.reload`), or the feed is given up with an error that says why. Redis
shows a batch whole or not at all, so a worker may die at any instruction.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from workers.broker.batch_size import Entry
from workers.broker.lease import HeldLease
from workers.broker.store import Store
from workers.errors import BatchChanged, PositionMoved, Unavailable
from workers.feed.position import START
from workers.log import Logger
from workers.session.answer import Outcome
from workers.session.commit_writer import SentCommit
from workers.session.ownership import Ownership
from workers.session.telemetry import Telemetry

log = Logger("online_svm.worker")

Observer = Callable[[Outcome], None]

Item = TypeVar("Item")
"""What is answered: an entry of the input, or a row of a join."""


class Arriving(Protocol):
    """Takes what arrives on a stream."""

    @property
    def count(self) -> int:
        """Entries that a read should request."""

    def hand_in(self, entries: Sequence[Entry], may_be_more: bool) -> None:
        """Take the entries after all that were read; or, without any, that there may be some."""


class Awaited(NamedTuple):
    """A stream whose next entries a session waits for.

    Attributes
    ----------
    key : str
    cursor : bytes
        ID after which entries are new.
    input : Arriving
        Where they go. A session that begins to read anew has another one.
    """

    key: str
    cursor: bytes
    input: Arriving


class FeedSession(ABC, Generic[Item]):
    """What the loop of a worker asks of a feed, and the commits of it.

    Parameters
    ----------
    store : Store
    lease : HeldLease or None
        Tells other workers that this one is alive.
    telemetry : Telemetry, optional
        Is told what the session does.
    observe : callable, optional
        Called with the outcome of each committed batch.

    Attributes
    ----------
    position : Position
        What this worker knows to be committed. It may have answered and sent one more batch.
    """

    _ownership: Ownership

    def __init__(
        self,
        store: Store,
        lease: HeldLease | None,
        telemetry: Telemetry | None,
        observe: Observer | None,
    ) -> None:
        self._store, self._lease = store, lease
        self._telemetry, self._observe = telemetry or Telemetry(), observe or _ignore
        self.position = self._reached = START
        self._pending: tuple[SentCommit, Outcome | None] | None = None
        self._answered: Outcome | None = None  # its commit was not sent yet
        self._recovering: Generator[None, None, None] | None = None

    @property
    def is_recovering(self) -> bool:
        """Whether `recover_some` has something to do before the feed can be answered."""
        return self._recovering is not None

    @property
    def epoch(self) -> int:
        """Number of this writer of the feed."""
        return self._ownership.epoch

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
    def awaited(self) -> list[Awaited]:
        """Return the streams to wait for where the session is spent."""

    @abstractmethod
    def next_now(self, most: int) -> list[Item]:
        """Return up to `most` entries to answer next, without a wait for input or for a refit.

        None are returned where nothing more is there: see `is_spent`.
        """

    @abstractmethod
    def answer(self, entries: Sequence[Item]) -> None:
        """Answer the next entries; confirm the pending commit, send theirs and leave it pending.

        Raises
        ------
        Unavailable
            If Redis does not answer. Then call `resume` before anything else.
        """

    def take_refit(self) -> None:
        """Let a refit that the next entry needs take effect; wait for it if it is not finished."""

    def recover_some(self) -> bool:
        """Do a step of taking over the feed; return whether that is finished.

        Raises
        ------
        StateLost, ReplayMismatch, Stopped
            As `Recovery.steps`.
        """
        if self._recovering is not None:
            try:
                next(self._recovering)
            except StopIteration:
                self._recovering = None
        return self._recovering is None

    def resume(self) -> None:
        """Go on where Redis did not answer: send what was answered, and see whose the feed is.

        Raises
        ------
        Unavailable
            If it still does not answer. Then call it again.
        """
        if not self.is_recovering:
            self._read_anew()  # a read for the old one may be on its way
            self._commit_answered()
            self.check_ownership()
            self.finish_commit()

    def may_answer(self) -> bool:
        """Return whether the next batch may be answered: the feed is ours, its gate is open."""
        self.check_ownership()
        return not self.is_recovering

    def check_ownership(self) -> None:
        """After a lost lease or connection, check that this worker still owns the feed."""
        if not self._ownership.is_in_doubt():
            return
        self.finish_commit()
        if self.is_recovering:
            return
        self._read_anew()  # entries read before may be from another Redis
        if self._ownership.is_confirmed(self.position):
            self._check_input()
        else:
            self.reload()

    def idle(self, is_checked: bool = False) -> None:
        """Do what is due while no input comes.

        Parameters
        ----------
        is_checked : bool
            Whether the input was checked a moment ago, as each commit does.

        Raises
        ------
        InputLost
            If the input is no longer the stream that this feed answers.
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
        self._begin_recovery(begins=False)

    def _begin_recovery(self, begins: bool) -> None:
        self._pending, self._answered = None, None
        self._recovering = self._taking_over(begins)

    @abstractmethod
    def _taking_over(self, begins: bool) -> Generator[None, None, None]:
        """Take over the feed in steps: set what depends on its position."""

    @abstractmethod
    def _read_anew(self) -> None:
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
        """Confirm the pending commit; send that of what was answered since, and leave it pending.

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
            if outcome is not None:
                self._observe(outcome)
            return True
        return False

    @abstractmethod
    def _confirm(self, sent: SentCommit) -> None:
        """Wait until a commit is done, then update the position."""


def _ignore(_outcome: Outcome) -> None:
    """Observe nothing."""
