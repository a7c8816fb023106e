"""Recovery: bring a predictor to the committed position of the feed.

1. Take over the feed, so that no earlier worker can commit.
2. Load the newest good snapshot.
3. Answer the input since then again, without publishing.
4. Compare the digest with the committed one.
"""

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

import structlog

from online_svm.errors import InvalidSnapshot
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.waits import Waits
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.engine.pace import OwnPace, Pace
from workers.engine.telemetry import Telemetry
from workers.errors import (
    InputLost,
    InvalidStoredSnapshot,
    ReplayMismatch,
    SnapshotsLost,
    StateLost,
    Stopped,
)
from workers.feed.agreement import check_config, check_environment
from workers.feed.kept_input import known_marks
from workers.feed.position import START, Position
from workers.feed.recent_ids import RecentIds
from workers.feed.state import Agreement, FeedState, Pointer
from workers.session import snapshots
from workers.session.answer import Outcome, processing
from workers.session.snapshots import KeptSnapshots, LoadedSnapshot
from workers.stop import Stop

log = structlog.get_logger("online_svm.worker")

Fetched = Callable[[Pointer, str], LoadedSnapshot | None]
"""Returns the snapshot that a pointer names, of a configuration with this hash, if it was read
and checked before."""


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


def none_fetched(_pointer: Pointer, _config_hash: str) -> LoadedSnapshot | None:
    """Know of no snapshot that was read before."""
    return None


@dataclass(frozen=True, slots=True)
class Recovery:
    """Takes over a feed, at the start and whenever the engine has to read its position again.

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
        start, predictor, recent, kept = self._load(state, from_older=changed)
        position = yield from self._replay(predictor, recent, start, state.position)
        check_same(self.store.keys.feed, position, state.position)
        if changed:
            self.store.adopt_environment(state.epoch, self.ours.environment)
        replayed = position.seq - start.seq
        self.telemetry.replayed(time.perf_counter() - began)
        self.telemetry.enter("answering")
        config_hash = state.agreement.config_hash
        return Recovered(state.epoch, predictor, position, kept, replayed, recent, config_hash)

    def _check_agreement(self, state: FeedState) -> bool:
        """Return whether the environment changed and the change is accepted."""
        feed = self.store.keys.feed
        check_config(feed, state.agreement, self.ours)
        if not self.accept_environment:
            check_environment(feed, state.agreement, self.ours)
        return state.agreement.environment != self.ours.environment

    def _load(
        self, state: FeedState, from_older: bool
    ) -> tuple[Position, OnlinePredictor, RecentIds, KeptSnapshots]:
        """Return where the replay starts: at the newest good snapshot.

        After a change of environment the older one is tried first, so that more is compared.
        """
        candidates = [state.snapshot, state.previous]
        unusable: list[Pointer] = []
        problems: list[str] = []
        for pointer in reversed(candidates) if from_older else candidates:
            try:
                restored = self._restored(pointer, state)
            except InvalidStoredSnapshot as error:
                assert pointer is not None
                log.warning("a snapshot cannot be used", cursor=pointer.cursor, problem=str(error))
                self.store.note("snapshot_unusable", f"at {pointer.cursor.decode()}: {error}")
                unusable.append(pointer)
                problems.append(f"{self.store.keys.snapshot(pointer.n, pointer.sha256)}: {error}.")
                continue
            return *restored, _kept_snapshots(state, unusable)
        raise SnapshotsLost(
            f"feed {self.store.keys.feed!r}: no kept snapshot can be used. {' '.join(problems)} "
            f"Restore one from a backup, or: online-svm reset {self.store.keys.feed}"
        )

    def _restored(
        self, pointer: Pointer | None, state: FeedState
    ) -> tuple[Position, OnlinePredictor, RecentIds]:
        predictor, recent = self.new_predictor(), RecentIds(self.limits.dedupe_window)
        if pointer is None:
            return START, predictor, recent
        config_hash = state.agreement.config_hash
        stored = self.fetched(pointer, config_hash)
        if stored is None:
            stored = snapshots.read(self.store, pointer, config_hash)
        try:
            predictor.restore(recent.restore_from(stored.body))
        except InvalidSnapshot as error:
            raise InvalidStoredSnapshot(str(error)) from error
        return stored.position, predictor, recent

    def _replay(
        self,
        predictor: OnlinePredictor,
        recent: RecentIds,
        position: Position,
        target: Position,
    ) -> Generator[None, None, Position]:
        """Answer everything in (position, target] again, without publishing."""
        if position.cursor == target.cursor:
            return position
        store, begin = self.store, position.seq
        total = target.seq - begin
        self.telemetry.replaying(0, total)
        for page in store.pages(store.keys.input, position.cursor, target.cursor):
            left = page
            while left:
                self._check_stop()
                room = self.pace.room(predictor)
                part, left = left[:room], left[room:] if room is not None else []
                if part:
                    answering = processing(predictor, self.limits, position, part, recent)
                    position = (yield from self._answered(answering, predictor)).after
                    self.telemetry.replaying(position.seq - begin, total)
                yield
        return position

    def _answered(
        self, answering: Waits[Outcome], predictor: OnlinePredictor
    ) -> Generator[None, None, Outcome]:
        """Answer entries; where one needs a refit, go on once it is finished."""
        while True:
            try:
                next(answering)
            except StopIteration as ended:
                outcome: Outcome = ended.value
                return outcome
            while self.pace.room(predictor) == 0:
                self._check_stop()
                yield

    def _check_stop(self) -> None:
        if self.stop.requested:
            raise Stopped("stopped during the replay")


def check_same(feed: str, computed: Position, committed: Position) -> None:
    """Raise unless a replay ended at the committed position.

    Raises
    ------
    InputLost
        If it read fewer or other entries than were answered.
    ReplayMismatch
        If it read the same number of entries, and the bytes differ.
    StateLost
        If the bytes are equal but the number of learned examples is not.
    """
    if (computed.cursor, computed.seq) != (committed.cursor, committed.seq):
        raise InputLost(
            f"feed {feed!r}: {committed.seq} input entries were answered up to "
            f"{committed.cursor.decode()}, but a replay reaches {computed.seq} at "
            f"{computed.cursor.decode()}: input was trimmed, deleted or added. Restore it from a "
            f"backup, or: online-svm reset {feed}"
        )
    if computed.digest != committed.digest:
        raise ReplayMismatch(
            f"feed {feed!r}: answering the input again gives other bytes than were committed "
            f"(digest {computed.digest.hex()[:16]}, committed {committed.digest.hex()[:16]}): the "
            "installation or the stored data changed. online-svm verify shows the first difference"
        )
    if computed.n != committed.n:
        raise StateLost(
            f"feed {feed!r}: its state is damaged: field 'n' is {committed.n}, but a replay that "
            f"gives the same answers learns {computed.n}; restore it from a backup, or: "
            f"online-svm reset {feed}"
        )


def _kept_snapshots(state: FeedState, unusable: list[Pointer]) -> KeptSnapshots:
    """Return the snapshots that can still be used."""
    pointers = (state.previous, state.snapshot)
    marks = known_marks(state.marks, [None if at is None else at.mark for at in pointers])
    if state.snapshot in unusable:
        return KeptSnapshots(state.previous, None, tuple(unusable), marks)
    previous = None if state.previous in unusable else state.previous
    return KeptSnapshots(state.snapshot, previous, tuple(unusable), marks)
