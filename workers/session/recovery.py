"""Recovery: bring a predictor to the committed position of the feed.

1. Take over the feed, so that no earlier worker can commit.
2. Load the newest good snapshot.
3. Answer the input since then again, without publishing.
4. Compare the digest with the committed one.
"""

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from online_svm.predictor.batch_result import Waits
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.errors import InvalidStoredSnapshot, SnapshotsLost, Stopped
from workers.feed.agreement import check_config, check_environment
from workers.feed.input_retention import known_marks
from workers.feed.position import Position
from workers.feed.recent_ids import RecentIds
from workers.feed.state import Agreement, FeedState, Pointer
from workers.log import Logger
from workers.session.answer import Outcome
from workers.session.pace import OwnPace, Pace
from workers.session.replay import Fetched, Replay, check_same, none_fetched, restored
from workers.session.snapshots import KeptSnapshots
from workers.session.telemetry import Telemetry
from workers.stop import Stop

log = Logger("online_svm.worker")


@dataclass(frozen=True, slots=True)
class Recovered:
    """A feed that this worker has taken over.

    Attributes
    ----------
    epoch : int
    predictor : OnlinePredictor
        At `position`.
    position : Position
    kept : KeptSnapshots
    replayed : int
        Entries that were answered again.
    recent : RecentIds
        At `position`, as the predictor.
    config_hash : str
        Hash of the stored configuration, which the feed's snapshots carry.
    """

    epoch: int
    predictor: OnlinePredictor
    position: Position
    kept: KeptSnapshots
    replayed: int
    recent: RecentIds
    config_hash: str


@dataclass(frozen=True, slots=True)
class Recovery:
    """Takes over a feed, at the start and whenever the session has to read its position again.

    Attributes
    ----------
    store : Store
    ours : Agreement
    limits : Limits
    new_predictor : callable
        Returns a predictor that has learned nothing.
    writer : str
        Name of this worker, for people.
    stop : Stop
    accept_environment : bool
        Go on in another environment if a replay from the older snapshot gives the same bytes.
    telemetry : Telemetry
    pace : Pace
        How many entries are answered again at once.
    fetched : Fetched
    """

    store: Store
    ours: Agreement
    limits: Limits
    new_predictor: Callable[[], OnlinePredictor]
    writer: str
    stop: Stop
    accept_environment: bool = False
    telemetry: Telemetry = field(default_factory=Telemetry)
    pace: Pace = field(default_factory=OwnPace)
    fetched: Fetched = none_fetched

    def __call__(self, begins: bool = False) -> Recovered:
        """Take over the feed; with `begins` it may be created. See `steps`."""
        steps = self.steps(begins)
        while True:
            try:
                next(steps)
            except StopIteration as ended:
                recovered: Recovered = ended.value
                return recovered

    def steps(self, begins: bool = False) -> Generator[None, None, Recovered]:
        """Do the same in steps, between which other feeds may be answered.

        Raises
        ------
        StateLost
            If the state, the input or all snapshots are gone.
        ReplayMismatch
            If recomputing gives other bytes.
        Stopped
            If a stop is requested during the replay.
        """
        began = time.perf_counter()
        self.telemetry.enter("replaying")
        state = self.store.fence(self.writer, self.ours if begins else None)
        self.telemetry.fenced(state.position.cursor)
        changed = self._check_agreement(state)
        replay, kept = self._load(state, from_older=changed)
        start = replay.position
        yield from self._answer_again(replay, state.position)
        check_same(self.store.keys.feed, replay.position, state.position)
        if changed:
            self.store.adopt_environment(state.epoch, self.ours.environment)
        replayed = replay.position.seq - start.seq
        self.telemetry.replayed(time.perf_counter() - began)
        self.telemetry.enter("answering")
        return Recovered(
            state.epoch, replay.predictor, replay.position, kept, replayed, replay.recent,
            state.agreement.config_hash,
        )  # fmt: skip

    def _check_agreement(self, state: FeedState) -> bool:
        """Return whether the environment changed and the change is accepted."""
        feed = self.store.keys.feed
        check_config(feed, state.agreement, self.ours)
        if not self.accept_environment:
            check_environment(feed, state.agreement, self.ours)
        return state.agreement.environment != self.ours.environment

    def _load(self, state: FeedState, from_older: bool) -> tuple[Replay, KeptSnapshots]:
        """Return where the replay starts: at the newest good snapshot.

        After a change of environment the older one is tried first, so that more is compared.
        """
        candidates = [state.snapshot, state.previous]
        unusable: list[Pointer] = []
        problems: list[str] = []

        def told(pointer: Pointer, error: InvalidStoredSnapshot) -> None:
            log.warning("a snapshot cannot be used", cursor=pointer.cursor, problem=str(error))
            self.store.note("snapshot_unusable", f"at {pointer.cursor.decode()}: {error}")
            unusable.append(pointer)
            problems.append(f"{self.store.keys.snapshot(pointer.n, pointer.sha256)}: {error}.")

        tried = reversed(candidates) if from_older else candidates
        replay = restored(self.store, state, tried, self._begin, self.fetched, told)
        if replay is not None:
            return replay, _kept_snapshots(state, unusable)
        raise SnapshotsLost(
            f"feed {self.store.keys.feed!r}: no kept snapshot can be used. {' '.join(problems)} "
            f"Restore one from a backup, or: online-svm reset {self.store.keys.feed}"
        )

    def _begin(self) -> Replay:
        return Replay(self.new_predictor(), self.limits)

    def _answer_again(self, replay: Replay, target: Position) -> Generator[None, None, None]:
        """Answer everything up to the committed position again, without publishing."""
        if replay.position.cursor == target.cursor:
            return
        begin = replay.position.seq
        total = target.seq - begin
        self.telemetry.replaying(0, total)
        for page in replay.input(self.store, target.cursor):
            left = page
            while left:
                self._check_stop()
                room = self.pace.room(replay.predictor)
                part, left = left[:room], left[room:] if room is not None else []
                if part:
                    yield from self._answered(replay.answering(part), replay.predictor)
                    self.telemetry.replaying(replay.position.seq - begin, total)
                yield

    def _answered(
        self, answering: Waits[Outcome], predictor: OnlinePredictor
    ) -> Generator[None, None, None]:
        """Answer entries; where one needs a refit, go on once it is finished."""
        for _ in answering:
            while self.pace.waits(predictor):
                self._check_stop()
                yield

    def _check_stop(self) -> None:
        if self.stop.requested:
            raise Stopped("stopped during the replay")


def _kept_snapshots(state: FeedState, unusable: list[Pointer]) -> KeptSnapshots:
    """Return the snapshots that can still be used."""
    pointers = (state.previous, state.snapshot)
    marks = known_marks(state.marks, [None if at is None else at.mark for at in pointers])
    if state.snapshot in unusable:
        return KeptSnapshots(state.previous, None, tuple(unusable), marks)
    previous = None if state.previous in unusable else state.previous
    return KeptSnapshots(state.snapshot, previous, tuple(unusable), marks)
