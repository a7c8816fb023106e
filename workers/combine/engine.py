"""The loop of a combination: read the sources, join, answer, commit."""

import time
from collections.abc import Callable, Sequence

import structlog

from online_svm.errors import InvalidSnapshot
from online_svm.predictor.combiner import Combiner, CombinerConfig
from workers.broker.lease import HeldLease
from workers.combine.answers import Answering, Outcome
from workers.combine.join import Join, Mark
from workers.combine.sources import Source
from workers.combine.store import TargetStore, decode_joined, encode_joined
from workers.errors import PositionMoved, StateLost, Stopped
from workers.feed.commit import Commit
from workers.feed.position import Position
from workers.feed.state import Agreement
from workers.session.ownership import Ownership
from workers.session.telemetry import Telemetry
from workers.stop import Stop

log = structlog.get_logger("online_svm.combine")

Observer = Callable[[Outcome], None]

PAUSE = 0.2
"""Seconds before sources that had nothing new are read again."""


class CombineEngine:
    """Combines the answers of several feeds into one.

    Parameters
    ----------
    target : TargetStore
    sources : sequence of Source
    config : CombinerConfig
    join_window : int
        See `join`.
    agreement : Agreement
        What the written feed is bound to.
    writer : str
    stop : Stop
    batch : int
        Answers decided and committed at once, at most.
    begins : bool
        The feed may be created; else its state must be there.
    observe : callable, optional
        Called with the outcome of each committed batch.
    lease : Lease or None
        What tells other writers that this one lives.
    telemetry : Telemetry, optional
        Is told what the engine does.
    on_turn : callable
        Called before each batch.

    Attributes
    ----------
    position : Position
        What this writer knows to be committed; the cursor is that of the first source.
    """

    position: Position
    _ownership: Ownership
    _join: Join
    _answering: Answering

    def __init__(
        self,
        target: TargetStore,
        sources: Sequence[Source],
        config: CombinerConfig,
        join_window: int,
        agreement: Agreement,
        writer: str,
        stop: Stop,
        batch: int = 256,
        begins: bool = True,
        observe: Observer | None = None,
        lease: HeldLease | None = None,
        telemetry: Telemetry | None = None,
        on_turn: Callable[[], object] = lambda: None,
    ) -> None:
        self._telemetry, self._on_turn = telemetry or Telemetry(), on_turn
        self._target, self._sources, self._config = target, list(sources), config
        self._window, self._agreement, self._writer = join_window, agreement, writer
        self._stop, self._batch, self._observe = stop, batch, observe
        self._lease = lease
        self._take_over(begins)

    @property
    def waiting(self) -> int:
        """Answers of the first source that wait for the others."""
        return self._join.waiting

    def run(self, once: bool = False) -> None:
        """Combine until a stop is requested; with `once` until the sources have nothing new.

        Raises
        ------
        Fenced
            If a newer writer has taken over.
        StateLost
            If what is stored, or left of the sources, cannot be continued from.
        """
        while not self._stop.requested:
            try:
                if self.advance():
                    continue
            except Stopped:
                return
            if once:
                return
            self._stop.wait(PAUSE)

    def advance(self) -> bool:
        """Read and answer one batch; return whether there was anything to read or to answer."""
        self._on_turn()
        if self._ownership.is_in_doubt() and not self._ownership.is_confirmed(self.position):
            self._reload()
        was_read = [self._read(feed) for feed in range(len(self._sources))]
        rows = list(self._join.decided(self._batch))
        if rows:
            began = time.perf_counter()
            outcome = self._answering.process(self.position, rows)
            self._telemetry.answered(time.perf_counter() - began)
            self._commit(outcome)
        return bool(rows) or any(was_read)

    def _read(self, feed: int) -> bool:
        """Read more of a source if there is room; return whether there was anything."""
        join = self._join
        if not join.has_room(feed, self._batch):
            return False
        place = join.next_place(feed)
        answers = self._sources[feed].read(join.cursor(feed), place, self._batch)
        join.add(feed, answers)
        return bool(answers)

    def _commit(self, outcome: Outcome) -> None:
        fields = {
            "joined": encode_joined(self._join.marks(), outcome.letters),
            "combiner": self._answering.combiner.snapshot(),
        }
        commit = Commit(
            self._ownership.epoch, outcome.before, outcome.after, outcome.ids, outcome.out,
            dlq=outcome.dlq, fields=fields,
        )  # fmt: skip
        sent = time.perf_counter()
        try:
            self._target.commit(commit)
        except PositionMoved:
            self._reload()
            return
        self._telemetry.committed(commit, time.perf_counter() - sent)
        self.position = outcome.after
        if self._observe is not None:
            self._observe(outcome)

    def _reload(self) -> None:
        """Drop what is not committed, and continue from what is stored."""
        log.warning("reading the position again", cursor=self.position.cursor)
        self._take_over(begins=False)

    def _take_over(self, begins: bool) -> None:
        """Become the only writer, and continue from what is stored."""
        state = self._target.fence(self._writer, self._agreement if begins else None)
        self._ownership = Ownership(self._target, state.epoch, self._lease)
        self.position = state.position
        marks, letters, combiner = self._stored()
        for source, mark in zip(self._sources, marks, strict=True):
            source.check(mark)
        self._join = Join(marks, self._window)
        feeds = [source.feed for source in self._sources]
        self._answering = Answering(combiner, feeds, self._window, letters)
        log.info("at work", epoch=state.epoch, seq=self.position.seq)
        self._telemetry.enter("answering")

    def _stored(self) -> tuple[list[Mark], int, Combiner]:
        combiner = Combiner(self._config)
        joined, snapshot = self._target.joined()
        if joined is None or snapshot is None:
            if self.position.seq:
                raise self._damaged("does not say where its sources stand")
            return [Mark() for _ in self._sources], 0, combiner
        try:
            combiner.restore(snapshot)
        except InvalidSnapshot as error:
            raise self._damaged(f"holds a combiner that cannot be used: {error}") from error
        marks, letters = decode_joined(joined)
        if len(marks) != len(self._sources):
            raise self._damaged(f"says where {len(marks)} sources stand, not {len(self._sources)}")
        return marks, letters, combiner

    def _damaged(self, what: str) -> StateLost:
        keys = self._target.keys
        return StateLost(
            f"{keys.state} {what}: restore it from a backup, or: online-svm reset {keys.feed}"
        )
