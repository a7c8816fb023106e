"""The session of a combination, whose input is a join of other feeds' answers.

Each commit stores the combiner and the positions in the sources. So there is no replay, and there
are no snapshots.
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
from workers.session.join.answers import RowAnswerer
from workers.session.join.rows import JoinedRow, SourceMark, decode_joined, encode_joined
from workers.session.join.sources import JoinInput, Source
from workers.session.telemetry import Telemetry

log = Logger("online_svm.combine")


@dataclass(frozen=True, slots=True)
class JoinSetup:
    """Parameters of a combination."""

    store: Store  # of the written feed, without `reads_input`
    sources: Sequence[Source]
    config: CombinerConfig
    join_window: int  # largest difference of the seqs of answers to one id
    pinned: PinnedConfig  # configuration of the written feed
    writer: str  # name of this worker, for people
    batch: int = 256  # most answers joined and committed at once
    may_create: bool = True  # whether to create the written feed if it has no state
    telemetry: Telemetry = field(default_factory=Telemetry)
    on_end: Callable[[], None] | None = None  # called when all existing input is committed


class JoinedSession(FeedSession[JoinedRow]):
    """Combines the answers of several feeds, a step at a time; see `FeedSession`."""

    input: JoinInput
    _answerer: RowAnswerer

    def __init__(
        self, setup: JoinSetup, lease: HeldLease | None = None, observe: Observer | None = None
    ) -> None:
        super().__init__(setup.store, lease, setup.telemetry, observe)
        self._setup = setup
        self._fields: dict[str, bytes] = {}  # further fields of the next commit
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
    def next_now(self, limit: int) -> list[JoinedRow]:
        rows = self.input.next_now(min(limit, self._setup.batch))
        if not rows:
            self._check_end()
        return rows

    @override
    def answer(self, entries: Sequence[JoinedRow]) -> None:
        began = time.perf_counter()
        outcome = self._answerer.process(self._answered_position, entries)
        self._fields = {
            "joined": encode_joined(self.input.marks(), self._answerer.letters),
            "combiner": self._answerer.combiner.snapshot(),
        }
        self._unsent_outcome = outcome
        self._telemetry.answered(time.perf_counter() - began)
        self._commit_answered()

    @override
    def finish_commit(self) -> bool:
        is_done = super().finish_commit()
        self._check_end()
        return is_done

    def _check_end(self) -> None:
        # Not before the last commit is confirmed: it may be refused.
        on_end = self._setup.on_end
        is_done = not self.is_recovering and self._pending is None
        if on_end is not None and is_done and self.input.is_spent:
            on_end()

    @override
    def _recovery_steps(self, may_create: bool) -> Generator[None, None, None]:
        state = self._store.fence(self._setup.writer, self._setup.pinned if may_create else None)
        self._telemetry.fenced(state.position.cursor)
        self._note_ownership(state.epoch)
        self.position = self._answered_position = state.position
        marks, letters, combiner = self._stored()
        for source, mark in zip(self._setup.sources, marks, strict=True):
            yield
            source.check(mark)
        setup, feeds = self._setup, [source.feed for source in self._setup.sources]
        self.input = JoinInput(setup.sources, marks, setup.join_window, setup.batch)
        self._answerer = RowAnswerer(combiner, feeds, setup.join_window, letters)
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
        """Return the marks, dead letters and combiner that the last commit stored."""
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

    def _damaged(self, problem: str) -> StateLost:
        keys = self._store.keys
        return StateLost(
            f"{keys.state} {problem}: restore it from a backup, or: online-svm reset {keys.feed}"
        )
