"""The loop of a combination: read the sources, join, answer, commit."""

from collections.abc import Callable, Sequence

import structlog

from online_svm.errors import InvalidSnapshot
from online_svm.predictor.combiner import Combiner, CombinerConfig
from workers.broker.lease import Lease
from workers.combine.answers import Answering, Outcome
from workers.combine.join import Join, Mark
from workers.combine.sources import Source
from workers.combine.store import TargetStore, decode_joined, encode_joined
from workers.errors import Fenced, PositionMoved, StateLost, Stopped
from workers.feed.commit import Commit
from workers.feed.position import Position
from workers.feed.state import Agreement
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

    Attributes
    ----------
    position : Position
        What this writer knows to be committed; the cursor is that of the first source.
    """

    position: Position
    _epoch: int
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
        lease: Lease | None = None,
    ) -> None:
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
                if self.turn():
                    continue
            except Stopped:
                return
            if once:
                return
            self._stop.wait(PAUSE)

    def turn(self) -> bool:
        """Read and answer one batch; return whether there was anything to read or to answer."""
        if self._lease is not None and self._lease.pop_loss():
            self._check_ownership()
        was_read = [self._read(feed) for feed in range(len(self._sources))]
        rows = list(self._join.decided(self._batch))
        if rows:
            self._commit(self._answering.process(self.position, rows))
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
        commit = Commit(
            self._epoch, outcome.before, outcome.after, outcome.ids, outcome.out, dlq=outcome.dlq
        )
        joined = encode_joined(self._join.marks(), outcome.letters)
        try:
            self._target.commit_joined(commit, joined, self._answering.combiner.snapshot())
        except PositionMoved:
            log.warning("reading the position again", cursor=self.position.cursor)
            self._take_over(begins=False)
            return
        self.position = outcome.after
        if self._observe is not None:
            self._observe(outcome)

    def _check_ownership(self) -> None:
        """See whether the feed is still this writer's, although there may be nothing to commit."""
        keys, state = self._target.keys, self._target.state()
        if state is None:
            raise StateLost(
                f"{keys.state} is gone: Redis was flushed or lost its data; restore it from a "
                f"backup, or: online-svm reset {keys.feed}"
            )
        if state.epoch > self._epoch:
            raise Fenced(f"feed {keys.feed!r}: {state.writer!r} has taken over")
        if state.epoch < self._epoch or state.position != self.position:
            self._take_over(begins=False)

    def _take_over(self, begins: bool) -> None:
        """Become the only writer, and continue from what is stored."""
        state = self._target.fence(self._writer, self._agreement if begins else None)
        self._epoch, self.position = state.epoch, state.position
        marks, letters, combiner = self._stored()
        for source, mark in zip(self._sources, marks, strict=True):
            source.check(mark)
        self._join = Join(marks, self._window)
        feeds = [source.feed for source in self._sources]
        self._answering = Answering(combiner, feeds, self._window, letters)
        log.info("at work", epoch=self._epoch, seq=self.position.seq)

    def _stored(self) -> tuple[list[Mark], int, Combiner]:
        combiner = Combiner(self._config)
        joined, snapshot = self._target.joined()
        if joined is None or snapshot is None:
            if self.position.seq:
                raise StateLost(
                    f"{self._target.keys.state} does not say where its sources stand: restore it "
                    f"from a backup, or: online-svm reset {self._target.keys.feed}"
                )
            return [Mark() for _ in self._sources], 0, combiner
        try:
            combiner.restore(snapshot)
        except InvalidSnapshot as error:
            raise StateLost(
                f"{self._target.keys.state}: {error}; restore it from a backup, or: "
                f"online-svm reset {self._target.keys.feed}"
            ) from error
        marks, letters = decode_joined(joined)
        if len(marks) != len(self._sources):
            raise StateLost(
                f"{self._target.keys.state} says where {len(marks)} sources stand, not "
                f"{len(self._sources)}: restore it from a backup, or: online-svm reset "
                f"{self._target.keys.feed}"
            )
        return marks, letters, combiner
