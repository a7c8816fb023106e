"""A combination at work: a session whose input is a join of other feeds' answers.

Each commit holds all that the next one needs: where the sources are read on, and the combiner. So
nothing is ever replayed, and there are no snapshots.
"""

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from typing_extensions import override

from online_svm.errors import InvalidSnapshot
from online_svm.predictor.combiner import Combiner, CombinerConfig
from workers.broker.leases import HeldLease
from workers.broker.shared_reader import StreamRead
from workers.broker.store import Store
from workers.errors import StateLost
from workers.feed.state import Commit, PinnedConfig
from workers.log import Logger
from workers.session.answer import Outcome
from workers.session.commit_writer import SentCommit
from workers.session.feed_session import FeedSession, Observer
from workers.session.join.answers import Answering
from workers.session.join.rows import JoinedRow, SourceMark, decode_joined, encode_joined
from workers.session.join.sources import JoinInput, Source
from workers.session.telemetry import Telemetry

log = Logger("online_svm.combine")


@dataclass(frozen=True, slots=True)
class JoinSetup:
    """What is combined into which feed, and how."""

    store: Store  # of the written feed, with `reads_input` off
    sources: Sequence[Source]
    config: CombinerConfig
    join_window: int  # places that the answers to one id may lie apart
    pinned: PinnedConfig  # what the written feed is bound to
    writer: str  # name of this worker, for people
    batch: int = 256  # answers decided and committed at once, at most
    may_create: bool = True  # the written feed; else its state must be there
    telemetry: Telemetry = field(default_factory=Telemetry)
    at_the_end: Callable[[], None] | None = None  # called when all there is is committed


class JoinedSession(FeedSession[JoinedRow]):
    """Combines the answers of several feeds into one, a step at a time; see `FeedSession`."""

    input: JoinInput
    _answering: Answering

    def __init__(
        self, setup: JoinSetup, lease: HeldLease | None = None, observe: Observer | None = None
    ) -> None:
        super().__init__(setup.store, lease, setup.telemetry, observe)
        self._setup = setup
        self._fields: dict[str, bytes] = {}  # of the commit that is to be sent
        self._begin_recovery(setup.may_create)

    @property
    @override
    def is_spent(self) -> bool:
        return self.input.is_spent

    @property
    def waiting(self) -> int:
        """Answers of the first source that wait for the others."""
        return 0 if self.is_recovering else self.input.waiting

    @override
    def reads(self) -> list[StreamRead]:
        return self.input.reads(self._store.keys.feed)

    @override
    def next_now(self, most: int) -> list[JoinedRow]:
        rows = self.input.next_now(min(most, self._setup.batch))
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
        # Not before the last commit is confirmed: otherwise its refusal would go unnoticed.
        at_the_end = self._setup.at_the_end
        is_done = not self.is_recovering and self._pending is None
        if at_the_end is not None and is_done and self.input.is_spent:
            at_the_end()

    @override
    def _taking_over(self, may_create: bool) -> Generator[None, None, None]:
        state = self._store.fence(self._setup.writer, self._setup.pinned if may_create else None)
        self._telemetry.fenced(state.position.cursor)
        self._own(state.epoch)
        self.position = self._reached = state.position
        marks, letters, combiner = self._stored()
        for source, mark in zip(self._setup.sources, marks, strict=True):
            yield
            source.check(mark)
        setup, feeds = self._setup, [source.feed for source in self._setup.sources]
        self.input = JoinInput(setup.sources, marks, setup.join_window, setup.batch)
        self._answering = Answering(combiner, feeds, setup.join_window, letters)
        log.info("at work", feed=self._store.keys.feed, epoch=state.epoch, seq=self.position.seq)
        self._telemetry.enter("answering")

    @override
    def _restart_read(self) -> None:
        self.input.restart_read()

    @override
    def _send_answers(self, outcome: Outcome) -> SentCommit:
        commit = Commit(
            self.epoch, outcome.before, outcome.after, outcome.ids, outcome.out,
            dlq=outcome.dlq, fields=self._fields,
        )  # fmt: skip
        return SentCommit(commit, self._store.send(commit))

    @override
    def _confirm(self, sent: SentCommit) -> None:
        self._store.confirm(sent.commit, sent.sent)
        self._telemetry.committed(sent.commit, time.perf_counter() - sent.at)
        self.position = sent.commit.after

    def _stored(self) -> tuple[list[SourceMark], int, Combiner]:
        """Return what the last commit stored: the sources' places, dead letters, the combiner."""
        combiner = Combiner(self._setup.config)
        joined, snapshot = self._store.state_fields("joined", "combiner")
        if joined is None or snapshot is None:
            if self.position.seq:
                raise self._damaged("does not say where its sources stand")
            return [SourceMark() for _ in self._setup.sources], 0, combiner
        try:
            combiner.restore(snapshot)
        except InvalidSnapshot as error:
            raise self._damaged(f"holds a combiner that cannot be used: {error}") from error
        marks, letters = decode_joined(joined)
        count = len(self._setup.sources)
        if len(marks) != count:
            raise self._damaged(f"says where {len(marks)} sources stand, not {count}")
        return marks, letters, combiner

    def _damaged(self, what: str) -> StateLost:
        keys = self._store.keys
        return StateLost(
            f"{keys.state} {what}: restore it from a backup, or: online-svm reset {keys.feed}"
        )
