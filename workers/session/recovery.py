"""Recovery: bring a predictor to the committed position of the feed.

1. Take over the feed, so that no earlier worker can commit.
2. Load the newest usable snapshot.
3. Replay the input since then, without committing answers. A long replay takes snapshots, so that a
   worker that is killed during its replay does not start over.
4. Compare the digest with the committed one.

A fit of the memory's trees takes effect long after it was submitted, and a snapshot does not wait
for it. So finished fits are kept in Redis: a worker that is killed again and again would otherwise
never finish one.
"""

import math
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit.memory_trees import KINDS
from workers.broker.store import Store
from workers.broker.streams import pairs_of
from workers.config.retention_settings import RetentionSettings
from workers.config.settings import Limits
from workers.errors import (
    InvalidStoredSnapshot,
    PositionMoved,
    ReadCut,
    StateLost,
    Stopped,
    WrongKeyType,
    without_snapshots,
)
from workers.feed.pinned_config import check_config
from workers.feed.position import Digest, Position
from workers.feed.recent_ids import RecentIds
from workers.feed.state import Commit, FeedState, PinnedConfig, Pointer, StoredFit
from workers.log import Logger
from workers.refit.refitter import NO_FITS, PooledRefitter
from workers.session.flow import CommitWriter, Pace
from workers.session.replay import Replay, check_same, links, restored
from workers.session.snapshots import (
    REPLAY_SNAPSHOT_SECONDS,
    Fetched,
    KeptSnapshots,
    body_of,
    is_due_in_replay,
    replay_pause,
    usable,
)
from workers.session.telemetry import Telemetry
from workers.stop import Stop

log = Logger("online_svm.worker")

_ENTRIES_PER_STEP = 256
"""Stored entries hashed in one step: a few milliseconds, for which other feeds wait."""

CommitWriterFactory = Callable[[str, KeptSnapshots, OnlinePredictor], CommitWriter]
"""Returns the writer of a predictor's snapshots; gets the hash of the feed's configuration."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """A feed that this worker has taken over."""

    epoch: int
    predictor: OnlinePredictor  # at `position`
    position: Position
    kept: KeptSnapshots
    replayed: int  # number of replayed entries
    unsaved: int  # number of replayed entries after the newest snapshot
    recent: RecentIds  # at `position`
    config_hash: str  # of the stored configuration; part of each snapshot


@dataclass(frozen=True, slots=True)
class Recovery:
    """Takes over a feed, at the start and whenever the session must read its position again."""

    store: Store
    pinned: PinnedConfig
    config: PredictorConfig
    limits: Limits
    pace: Pace
    writer: str  # name of this worker, for people
    stop: Stop
    telemetry: Telemetry = field(default_factory=Telemetry)
    fetched: Fetched = field(default_factory=dict)  # emptied after use, to free the memory
    retention: RetentionSettings | None = None  # stored for later workers
    may_create: bool = False  # whether the first take-over may create the feed
    replay_snapshot_seconds: float = REPLAY_SNAPSHOT_SECONDS  # least time between two of a replay

    def steps(
        self, may_create: bool = False, commit_writer: CommitWriterFactory | None = None
    ) -> Generator[None, None, Recovered]:
        """Take over the feed in steps, between which other feeds may be answered.

        Without `commit_writer`, a long replay takes no snapshots. Raises StateLost if the state,
        the input or all snapshots are gone; ReplayMismatch if the replay computes other bytes;
        Stopped if a stop is requested during the replay.
        """
        began = time.perf_counter()
        self.telemetry.enter("replaying")
        state = self.store.fence(self.writer, self.pinned if may_create else None, self.retention)
        self.telemetry.fenced(state.position.cursor)
        check_config(self.store.keys.feed, state.pinned, self.pinned)
        if self.config.has_memory:
            self.pace.refits.known_fits = kept_fits(self.store)
        replay, kept = self._load(state)
        saved = start = replay.position.seq
        replay_snapshots = None
        if commit_writer is not None:
            commits = commit_writer(state.pinned.config_hash, kept, replay.predictor)
            least = self.replay_snapshot_seconds
            replay_snapshots = ReplaySnapshots(state, commits, start, self.telemetry, least)
        yield from self._replay(replay, state.position, replay_snapshots)
        self.pace.refits.known_fits = NO_FITS
        check_same(self.store.keys.feed, replay.position, state.position)
        self.telemetry.replayed(time.perf_counter() - began)
        self.telemetry.enter("answering")
        if replay_snapshots is not None:
            saved, kept = replay_snapshots.saved, replay_snapshots.kept
        return Recovered(
            state.epoch, replay.predictor, replay.position, kept, replay.position.seq - start,
            replay.position.seq - saved, replay.recent, state.pinned.config_hash,
        )  # fmt: skip

    def _load(self, state: FeedState) -> tuple[Replay, KeptSnapshots]:
        """Return the replay at the newest usable snapshot, and the kept snapshots."""
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
        raise without_snapshots(self.store.keys.feed, " ".join(problems))

    def _begin(self) -> Replay:
        self.pace.refits.reset(None)
        return Replay(OnlinePredictor(self.config, self.pace.refits), self.limits)

    def _replay(
        self, replay: Replay, target: Position, replay_snapshots: "ReplaySnapshots | None"
    ) -> Generator[None, None, None]:
        """Replay the input up to the committed position."""
        if replay.position.cursor == target.cursor:
            return
        predictor, begin = replay.predictor, replay.position.seq
        total = target.seq - begin
        self.telemetry.replaying(0, total)
        for left in replay.input(self.store, target.cursor):
            while left:
                self._check_stop()
                keep_finished(self.store, self.pace.refits)
                room = self.pace.room(predictor)
                part, left = left[:room], left[room:]
                if part:
                    for _ in replay.answering(part):
                        yield from self._wait_while(lambda: self.pace.waits(predictor))
                    self.telemetry.replaying(replay.position.seq - begin, total)
                if replay_snapshots is not None and replay_snapshots.is_due(replay):
                    yield from self._wait_while(lambda: not self.pace.may_snapshot(predictor))
                    yield from replay_snapshots.taking_snapshot(replay)
                yield

    def _wait_while(self, has_to_wait: Callable[[], bool]) -> Generator[None, None, None]:
        """Yield while a refit must be waited for."""
        while has_to_wait():
            self._check_stop()
            keep_finished(self.store, self.pace.refits)
            yield

    def _check_stop(self) -> None:
        if self.stop.requested:
            raise Stopped("stopped during the replay")


class ReplaySnapshots:
    """Takes snapshots during a replay, from which the next start continues.

    They are treated like any other snapshot. Each is verified first, so that the snapshot of a
    replay with other bytes never replaces a good one.
    """

    def __init__(
        self,
        state: FeedState,
        commits: CommitWriter,
        seq: int,
        telemetry: Telemetry,
        least_seconds: float,
    ) -> None:
        self._state, self._commits = state, commits
        self._chain = StoredChain(commits.store, state.position)
        self._telemetry = telemetry
        self.saved = seq  # position of the newest snapshot, at first the start of the replay
        self._least_seconds = least_seconds
        self._due = time.monotonic() + replay_pause(0.0, least_seconds)

    @property
    def kept(self) -> KeptSnapshots:
        """The kept snapshots."""
        return self._commits.kept

    def is_due(self, replay: Replay) -> bool:
        """Return whether to take a snapshot now."""
        has_rested = time.monotonic() >= self._due
        return is_due_in_replay(replay.position, self.saved, self._state.position, has_rested)

    def taking_snapshot(self, replay: Replay) -> Generator[None, None, None]:
        """Take a snapshot, in steps, if its position is verified. Raises Fenced."""
        began = time.monotonic()
        if (yield from self._chain.verifying(replay.position)):
            began = time.monotonic()  # excludes the verification, which later snapshots reuse
            self._write(replay)
        now = time.monotonic()
        self._due = max(self._due, now + replay_pause(now - began, self._least_seconds))

    def _write(self, replay: Replay) -> None:
        committed = self._state.position
        pointers_only = Commit(self._state.epoch, committed, committed)
        body = body_of(replay.recent, replay.predictor, self._commits.kept)
        sent = self._commits.send(pointers_only, body, replay.position)
        try:
            is_kept = self._commits.confirm(sent)
        except PositionMoved:
            self._due = math.inf  # the next commit raises it again, and the session recovers
            return
        if is_kept:
            self.saved = replay.position.seq
            self._telemetry.kept_snapshot(sent.size)


class StoredChain:
    """Verifies the digest of a replay before it has reached the committed position.

    Digests form a hash chain through all answers, reports and alarms. If the chain from the digest
    of a replay through the entries stored after it ends at the committed digest, then the replay
    computed the committed bytes.
    """

    def __init__(self, store: Store, committed: Position) -> None:
        self._store, self._committed = store, committed
        self._digests: dict[bytes, Digest] = {}  # after each entry, once the chain is verified

    def verifying(self, at: Position) -> Generator[None, None, bool]:
        """Return, in steps, whether the chain leads from a position to the committed one.

        It does not if an answer after the position was trimmed or differs from the committed one.
        """
        if at.cursor not in self._digests:
            found = yield from self._hashing(at)
            if found[self._committed.cursor] == self._committed.digest:
                self._digests = found
        return self._digests.get(at.cursor) == at.digest

    def _hashing(self, at: Position) -> Generator[None, None, dict[bytes, Digest]]:
        """Return the digest after each entry that is stored after a position."""
        store, end = self._store, self._committed.cursor
        found = {end: b"", at.cursor: at.digest}
        streams = [
            store.each(stream, at.cursor, end, _ENTRIES_PER_STEP)
            for stream in store.keys.outputs[:-1]
        ]
        with suppress(StateLost):  # another program wrote an entry: the chain ends at no digest
            for number, link in enumerate(links(at.digest, streams), 1):
                found[link.id] = link.digest or b""
                if number % _ENTRIES_PER_STEP == 0:
                    yield
            return found
        return found | {end: b""}


def keep_finished(store: Store, refits: PooledRefitter) -> None:
    """Store the fits that were finished since the last call; wait for no reply."""
    for fit in refits.pop_finished():
        store.put_fit(fit)


def kept_fits(store: Store) -> dict[bytes, bytes]:
    """Return the trees of all stored fits by the SHA-256 of their tasks; skip damaged entries."""
    found = dict[bytes, bytes]()
    for kind in KINDS:
        with suppress(WrongKeyType, ReadCut):
            for _, fields in store.fits(kind):
                fit = StoredFit.parse(kind, pairs_of(fields))
                if fit is not None:
                    found[fit.task] = fit.trees
    return found
