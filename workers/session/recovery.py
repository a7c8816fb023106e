"""Recovery: bring a predictor to the committed position of the feed.

1. Take over the feed, so that no earlier worker can commit.
2. Load the newest good snapshot.
3. Answer the input since then again, without publishing. A long replay leaves snapshots: a worker
   that is killed sooner than its replay ends would otherwise begin at the same place each time.
4. Compare the digest with the committed one.
"""

import math
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from heapq import merge

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.broker.store import Store
from workers.broker.streams import Entry
from workers.config.retention_settings import RetentionSettings
from workers.config.settings import Limits
from workers.errors import InvalidStoredSnapshot, PositionMoved, SnapshotsLost, Stopped
from workers.feed.pinned_config import check_config
from workers.feed.position import ALARMS, MET, OUT, Digest, Position, chain, parse_id
from workers.feed.recent_ids import RecentIds
from workers.feed.state import Commit, FeedState, PinnedConfig, Pointer
from workers.log import Logger
from workers.session.commit_writer import CommitWriter
from workers.session.flow_control import Pace
from workers.session.replay import Replay, check_same, restored
from workers.session.snapshots import Fetched, KeptSnapshots, is_due_in_replay, replay_pause, usable
from workers.session.telemetry import Telemetry
from workers.stop import Stop

log = Logger("online_svm.worker")

_ENTRIES_A_STEP = 256
"""Stored entries that are followed at once: a few milliseconds, for which other feeds wait."""

_KINDS = (OUT, MET, ALARMS)
"""Of the streams of the chain, in the order of `FeedKeys.outputs`, and of the chain at one ID."""

Writing = Callable[[str, KeptSnapshots, OnlinePredictor], CommitWriter]
"""Returns what writes snapshots of a predictor; gets the hash of the feed's configuration."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """A feed that this worker has taken over."""

    epoch: int
    predictor: OnlinePredictor  # at `position`
    position: Position
    kept: KeptSnapshots
    replayed: int  # entries that were answered again
    unsaved: int  # of these, those that came after the newest snapshot
    recent: RecentIds  # at `position`, as the predictor
    config_hash: str  # hash of the stored configuration, which the feed's snapshots carry


@dataclass(frozen=True, slots=True)
class Recovery:
    """Takes over a feed, at the start and whenever the session has to read its position again."""

    store: Store
    ours: PinnedConfig
    config: PredictorConfig
    limits: Limits
    pace: Pace  # how many entries are answered again at once, and who computes the refits
    writer: str  # name of this worker, for people
    stop: Stop
    telemetry: Telemetry = field(default_factory=Telemetry)
    fetched: Fetched = field(default_factory=dict)  # used once: it is as large as a snapshot
    retention: RetentionSettings | None = None  # what is kept of the feed; later workers keep it
    may_create: bool = False  # the feed, if it has no state when it is taken over first

    def steps(
        self, may_create: bool = False, writing: Writing | None = None
    ) -> Generator[None, None, Recovered]:
        """Take over the feed in steps, between which other feeds may be answered.

        Raises StateLost if the state, the input or all snapshots are gone. Raises ReplayMismatch if
        recomputing gives other bytes. Raises Stopped if a stop is requested during the replay.
        Without `writing`, a long replay leaves no snapshots.
        """
        began = time.perf_counter()
        self.telemetry.enter("replaying")
        state = self.store.fence(self.writer, self.ours if may_create else None, self.retention)
        self.telemetry.fenced(state.position.cursor)
        check_config(self.store.keys.feed, state.pinned, self.ours)
        replay, kept = self._load(state)
        saved = start = replay.position.seq
        on_the_way = None
        if writing is not None:
            commits = writing(state.pinned.config_hash, kept, replay.predictor)
            on_the_way = ReplaySnapshots(state, commits, start, self.telemetry)
        yield from self._answer_again(replay, state.position, on_the_way)
        check_same(self.store.keys.feed, replay.position, state.position)
        self.telemetry.replayed(time.perf_counter() - began)
        self.telemetry.enter("answering")
        if on_the_way is not None:
            saved, kept = on_the_way.saved, on_the_way.kept
        return Recovered(
            state.epoch, replay.predictor, replay.position, kept, replay.position.seq - start,
            replay.position.seq - saved, replay.recent, state.pinned.config_hash,
        )  # fmt: skip

    def _load(self, state: FeedState) -> tuple[Replay, KeptSnapshots]:
        """Return where the replay starts: at the newest good snapshot."""
        candidates = [state.snapshot, state.previous]
        unusable: list[Pointer] = []
        problems: list[str] = []

        def reject(pointer: Pointer, error: InvalidStoredSnapshot) -> None:
            log.warning("a snapshot cannot be used", cursor=pointer.cursor, problem=str(error))
            self.store.note("snapshot_unusable", f"at {pointer.cursor.decode()}: {error}")
            unusable.append(pointer)
            problems.append(f"{self.store.keys.snapshot(pointer.n, pointer.sha256)}: {error}.")

        replay = restored(self.store, state, candidates, self._begin, self.fetched, reject)
        self.fetched.clear()
        if replay is not None:
            return replay, usable(state, unusable)
        raise SnapshotsLost(
            f"feed {self.store.keys.feed!r}: no kept snapshot can be used. {' '.join(problems)} "
            f"Restore one from a backup, or: online-svm reset {self.store.keys.feed}"
        )

    def _begin(self) -> Replay:
        self.pace.refits.reset(None)
        return Replay(OnlinePredictor(self.config, self.pace.refits), self.limits)

    def _answer_again(
        self, replay: Replay, target: Position, on_the_way: "ReplaySnapshots | None"
    ) -> Generator[None, None, None]:
        """Answer everything up to the committed position again, without publishing."""
        if replay.position.cursor == target.cursor:
            return
        predictor, begin = replay.predictor, replay.position.seq
        total = target.seq - begin
        self.telemetry.replaying(0, total)
        for left in replay.input(self.store, target.cursor):
            while left:
                self._check_stop()
                room = self.pace.room(predictor)
                part, left = left[:room], left[room:]
                if part:
                    for _ in replay.answering(part):
                        yield from self._while(lambda: self.pace.waits(predictor))
                    self.telemetry.replaying(replay.position.seq - begin, total)
                if on_the_way is not None and on_the_way.is_due(replay):
                    yield from self._while(lambda: not self.pace.may_snapshot(predictor))
                    yield from on_the_way.leaving(replay)
                yield

    def _while(self, has_to_wait: Callable[[], bool]) -> Generator[None, None, None]:
        """Let others go on while a refit is awaited."""
        while has_to_wait():
            self._check_stop()
            yield

    def _check_stop(self) -> None:
        if self.stop.requested:
            raise Stopped("stopped during the replay")


class ReplaySnapshots:
    """Leaves snapshots of one replay, from which the next start goes on.

    They are like any other: fenced, two are kept, and input is trimmed up to the older one at most.
    Each is proven first. So a replay that gives other bytes takes the place of no good snapshot.
    """

    def __init__(
        self, state: FeedState, commits: CommitWriter, seq: int, telemetry: Telemetry
    ) -> None:
        self._state, self._commits = state, commits
        self._chain = StoredChain(commits.store, state.position)
        self._telemetry = telemetry
        self.saved = seq  # entries that were answered at the newest snapshot, or where it begins
        self._due = time.monotonic() + replay_pause(0.0)

    @property
    def kept(self) -> KeptSnapshots:
        """The snapshots that a worker can rely on."""
        return self._commits.kept

    def is_due(self, replay: Replay) -> bool:
        """Return whether a snapshot should be left now; at the end of the replay none is."""
        has_rested = time.monotonic() >= self._due
        return is_due_in_replay(replay.position, self.saved, self._state.position, has_rested)

    def leaving(self, replay: Replay) -> Generator[None, None, None]:
        """Leave a snapshot in steps, if its bytes are proven.

        Raises Fenced if a newer worker owns the feed.
        """
        began = time.monotonic()
        if (yield from self._chain.proving(replay.position)):
            began = time.monotonic()  # the first one that is proven proves the others
            self._write(replay)
        now = time.monotonic()
        self._due = max(self._due, now + replay_pause(now - began))

    def _write(self, replay: Replay) -> None:
        committed = self._state.position
        pointers_only = Commit(self._state.epoch, committed, committed)
        body = replay.recent.prepend_to(replay.predictor.snapshot())
        sent = self._commits.send(pointers_only, body, replay.position)
        try:
            is_kept = self._commits.confirm(sent)
        except PositionMoved:
            self._due = math.inf  # what follows the replay finds that, and reads the position again
            return
        if is_kept:
            self.saved = replay.position.seq
            self._telemetry.kept_snapshot(sent.size)


class StoredChain:
    """Proves where a replay stands, before it has reached the committed position.

    The committed digest ends a chain through all answers, reports and alarms. If the chain goes
    from the digest of a replay, through what is stored after it, to the committed digest, then the
    replay gave the bytes that were committed.
    """

    def __init__(self, store: Store, committed: Position) -> None:
        self._store, self._committed = store, committed
        self._digests: dict[bytes, Digest] = {}  # after each entry, once the chain was followed

    def proving(self, at: Position) -> Generator[None, None, bool]:
        """Return, in steps, whether the chain goes from a position to the committed one.

        It does not where an answer after the position was trimmed, or is not the committed one.
        """
        if at.cursor not in self._digests:
            found = yield from self._following(at)
            if found[self._committed.cursor] == self._committed.digest:
                self._digests = found
        return self._digests.get(at.cursor) == at.digest

    def _following(self, at: Position) -> Generator[None, None, dict[bytes, Digest]]:
        """Return the digests after the entries that are stored after a position."""
        digest, found = at.digest, {self._committed.cursor: b"", at.cursor: at.digest}
        streams = [self._entries(place, at.cursor) for place in range(len(_KINDS))]
        placed = merge(*streams, key=lambda one: one[:2])
        for number, (_, place, entry) in enumerate(placed, 1):
            digest = chain(digest, [(_KINDS[place], entry[0], entry[1][1])])
            found[entry[0]] = digest
            if number % _ENTRIES_A_STEP == 0:
                yield
        return found

    def _entries(self, place: int, after: bytes) -> Iterator[tuple[tuple[int, int], int, Entry]]:
        stream = self._store.keys.outputs[place]
        for page in self._store.pages(stream, after, self._committed.cursor, _ENTRIES_A_STEP):
            for entry in page:
                yield parse_id(entry[0]), place, entry
