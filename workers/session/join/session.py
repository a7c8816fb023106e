"""A combination at work: a session whose input is a join of other feeds' answers.

Each commit holds all that the next one needs: where the sources are read on, and the combiner. So
nothing is ever replayed, and there are no snapshots.
"""

import time
from collections.abc import Callable, Generator, Sequence

from typing_extensions import override

from online_svm.errors import InvalidSnapshot
from online_svm.predictor.combiner import Combiner, CombinerConfig
from workers.broker.lease import HeldLease
from workers.broker.store import Store
from workers.errors import StateLost
from workers.feed.commit import Commit
from workers.feed.state import Agreement
from workers.log import Logger
from workers.session.answer import Outcome
from workers.session.commit_writer import SentCommit
from workers.session.feed_session import Awaited, FeedSession, Observer
from workers.session.join.answers import Answering
from workers.session.join.input import JoinInput
from workers.session.join.marks import SourceMark, decode_joined, encode_joined
from workers.session.join.rows import JoinedRow
from workers.session.join.sources import Source
from workers.session.ownership import Ownership
from workers.session.telemetry import Telemetry

log = Logger("online_svm.combine")


class JoinedSession(FeedSession[JoinedRow]):
    """Combines the answers of several feeds into one, a step at a time; see `FeedSession`.

    Parameters
    ----------
    store : Store
        Of the written feed, with `reads_input` off.
    sources : sequence of Source
    config : CombinerConfig
    join_window : int
        Places that the answers to one id may lie apart.
    agreement : Agreement
        What the written feed is bound to.
    writer : str
    batch : int
        Answers decided and committed at once, at most.
    begins : bool
        The feed may be created; else its state must be there.
    observe, lease, telemetry
        As for `FeedSession`.
    at_the_end : callable
        Called whenever all that the sources have is answered and committed.

    Attributes
    ----------
    input : JoinInput
        The rows to answer next.
    """

    input: JoinInput
    _answering: Answering

    def __init__(
        self,
        store: Store,
        sources: Sequence[Source],
        config: CombinerConfig,
        join_window: int,
        agreement: Agreement,
        writer: str,
        batch: int = 256,
        begins: bool = True,
        observe: Observer | None = None,
        lease: HeldLease | None = None,
        telemetry: Telemetry | None = None,
        at_the_end: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(store, lease, telemetry, observe)
        self._sources, self._config, self._window = list(sources), config, join_window
        self._agreement, self._writer, self._batch = agreement, writer, batch
        self._at_the_end = at_the_end
        self._fields: dict[str, bytes] = {}  # of the commit that is to be sent
        self._begin_recovery(begins)

    @property
    @override
    def is_spent(self) -> bool:
        return self.input.is_spent

    @property
    def waiting(self) -> int:
        """Answers of the first source that wait for the others."""
        return 0 if self.is_recovering else self.input.waiting

    @override
    def awaited(self) -> list[Awaited]:
        return self.input.awaited()

    @override
    def next_now(self, most: int) -> list[JoinedRow]:
        rows = self.input.next_now(min(most, self._batch))
        if not rows:
            self._look_for_the_end()
        return rows

    @override
    def answer(self, entries: Sequence[JoinedRow]) -> None:
        began = time.perf_counter()
        outcome = self._answering.process(self._reached, entries)
        self._fields = {
            "joined": encode_joined(self.input.marks(), self._answering.letters),
            "combiner": self._answering.combiner.snapshot(),
        }
        self._answered = outcome
        self._telemetry.answered(time.perf_counter() - began)
        self._commit_answered()

    @override
    def finish_commit(self) -> bool:
        is_done = super().finish_commit()
        self._look_for_the_end()
        return is_done

    def _look_for_the_end(self) -> None:
        # Not before the last commit is confirmed: its refusal would be noticed by nobody.
        if not self.is_recovering and self._pending is None and self.input.is_spent:
            self._at_the_end()

    @override
    def _taking_over(self, begins: bool) -> Generator[None, None, None]:
        state = self._store.fence(self._writer, self._agreement if begins else None)
        self._telemetry.fenced(state.position.cursor)
        self._ownership = Ownership(self._store, state.epoch, self._lease)
        self.position = self._reached = state.position
        marks, letters, combiner = self._stored()
        for source, mark in zip(self._sources, marks, strict=True):
            yield
            source.check(mark)
        self.input = JoinInput(self._sources, marks, self._window, self._batch)
        feeds = [source.feed for source in self._sources]
        self._answering = Answering(combiner, feeds, self._window, letters)
        log.info("at work", feed=self._store.keys.feed, epoch=state.epoch, seq=self.position.seq)
        self._telemetry.enter("answering")

    @override
    def _read_anew(self) -> None:
        self.input.read_anew()

    @override
    def _send_answers(self, outcome: Outcome) -> SentCommit:
        commit = Commit(
            self._ownership.epoch, outcome.before, outcome.after, outcome.ids, outcome.out,
            dlq=outcome.dlq, fields=self._fields,
        )  # fmt: skip
        return SentCommit(commit, self._store.send(commit), None)

    @override
    def _confirm(self, sent: SentCommit) -> None:
        self._store.confirm(sent.commit, sent.sent)
        self._telemetry.committed(sent.commit, time.perf_counter() - sent.at)
        self.position = sent.commit.after

    def _stored(self) -> tuple[list[SourceMark], int, Combiner]:
        """Return what the last commit stored: the sources' places, dead letters, the combiner."""
        combiner, keys = Combiner(self._config), self._store.keys
        joined, snapshot = self._store.call("HMGET", keys.state, "joined", "combiner")
        if joined is None or snapshot is None:
            if self.position.seq:
                raise self._damaged("does not say where its sources stand")
            return [SourceMark() for _ in self._sources], 0, combiner
        try:
            combiner.restore(snapshot)
        except InvalidSnapshot as error:
            raise self._damaged(f"holds a combiner that cannot be used: {error}") from error
        marks, letters = decode_joined(joined)
        if len(marks) != len(self._sources):
            raise self._damaged(f"says where {len(marks)} sources stand, not {len(self._sources)}")
        return marks, letters, combiner

    def _damaged(self, what: str) -> StateLost:
        keys = self._store.keys
        return StateLost(
            f"{keys.state} {what}: restore it from a backup, or: online-svm reset {keys.feed}"
        )
