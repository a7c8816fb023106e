"""Send commits, some with a snapshot of the predictor, and confirm them later."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from workers.broker.pipeline import PendingReply
from workers.broker.store import SentPart, Store
from workers.errors import InvalidStoredSnapshot, WrongKeyType
from workers.feed.position import Position
from workers.feed.state import Commit
from workers.log import Logger
from workers.session import snapshots
from workers.session.flow_control import ConsumerBackpressure
from workers.session.snapshots import KeptSnapshots, SnapshotBody

log = Logger("online_svm.worker")


@dataclass(frozen=True, slots=True)
class SentCommit:
    """A sent commit that is not confirmed yet."""

    commit: Commit
    sent: PendingReply  # the call of the script
    parts: list[SentPart] = field(default_factory=list)  # the writes of its snapshot
    size: int = 0  # bytes of its snapshot
    at: float = field(default_factory=time.perf_counter)


@dataclass(slots=True)
class CommitWriter:
    """Writes the commits of one feed, and tracks which snapshots are kept."""

    store: Store
    config_hash: str  # of the feed; part of each snapshot
    examples: Callable[[], int | None]  # number of last examples whose input is kept; None: all
    kept: KeptSnapshots  # as of the last confirmed commit
    keep_input: bool = False  # never trim the input
    backpressure: ConsumerBackpressure | None = None  # limits how far the input is trimmed

    def send(
        self, commit: Commit, body: SnapshotBody | None = None, at: Position | None = None
    ) -> SentCommit:
        """Send a commit; with a `body`, write a new snapshot and let the commit point to it.

        The snapshot's position is `at`, by default the end of the commit. The write is large: the
        next batch is answered while Redis performs it.
        """
        if body is None:
            return SentCommit(commit, self.store.send(commit))
        commit, parts, size = self._with_snapshot(commit, body, at or commit.after)
        return SentCommit(commit, self.store.send(commit), parts, size)

    def _with_snapshot(
        self, commit: Commit, body: SnapshotBody, at: Position
    ) -> tuple[Commit, list[SentPart], int]:
        """Send a snapshot; return the commit that points to it, its writes and its size."""
        keys = self.store.keys
        pointer, data = snapshots.encode(keys.feed, self.config_hash, at, body.data, body.chunks)
        move = snapshots.move_to(pointer, self.kept, keys, self.examples(), self.keep_input)
        if self.backpressure is not None:
            move = replace(move, trim=self.backpressure.trimmable(move.trim))
        parts = self.store.put_snapshot(pointer, data, body.new)
        return replace(commit, move=move), parts, len(data) + sum(map(len, body.new.values()))

    def confirm(self, sent: SentCommit) -> bool:
        """Wait for a commit; return whether it has a new snapshot. Raises as `Store.confirm`."""
        commit = sent.commit
        try:
            self.store.confirm(commit, sent.sent)
        except InvalidStoredSnapshot:
            if not self._commit_again(sent):
                self.store.commit(replace(commit, move=None))
                return False
        if commit.move is None:
            return False
        self.kept = snapshots.moved(self.kept, commit.move)
        return True

    def _commit_again(self, sent: SentCommit) -> bool:
        """Write a missing snapshot again, then commit again; return whether that succeeded.

        The first write was lost or refused, or the snapshot expired while Redis was unreachable. If
        it is missing again, the next commit brings another snapshot.
        """
        self.store.finish_snapshot(sent.parts)
        try:
            self.store.commit(sent.commit)
        except InvalidStoredSnapshot:
            cursor = sent.commit.after.cursor
            log.warning("a snapshot was not kept", cursor=cursor)
            self.store.note("snapshot_not_kept", f"at {cursor.decode()}")
            return False
        return True


POLL_SECONDS = 1.0
"""Smallest time between two polls; a busy feed commits hundreds of times in a second."""


class SnapshotRequest:
    """A backup's request for a snapshot; see `recording.backup`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: bytes | None = None  # the last request, which stays in Redis for some time
        self._polled_at = float("-inf")
        self.is_open = False  # whether a snapshot was requested and not taken yet

    def poll(self, newest: bytes) -> None:
        """Check for a request that the newest snapshot, at the ID `newest`, does not satisfy."""
        now = time.monotonic()
        if now - self._polled_at < POLL_SECONDS:
            return
        self._polled_at = now
        try:
            found = self._store.snapshot_request()
        except WrongKeyType:  # another program wrote it
            return
        if found is not None and found not in (self._seen, newest):
            self._seen, self.is_open = found, True

    def close(self) -> None:
        """Mark the request as done."""
        self.is_open = False
