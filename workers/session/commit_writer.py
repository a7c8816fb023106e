"""Send a commit, some with a snapshot of the predictor, and confirm it later."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from workers.broker.pipeline import PendingReply
from workers.broker.store import Store
from workers.errors import InvalidStoredSnapshot, WrongKeyType
from workers.feed.position import Position
from workers.feed.state import Commit
from workers.log import Logger
from workers.session import snapshots
from workers.session.flow_control import ConsumerBackpressure
from workers.session.snapshots import KeptSnapshots

log = Logger("online_svm.worker")


@dataclass(frozen=True, slots=True)
class SentCommit:
    """A commit that is not confirmed."""

    commit: Commit
    sent: PendingReply  # the call of the script
    parts: list[PendingReply] = field(default_factory=list)  # writes of the snapshot it points at
    size: int = 0  # bytes of that snapshot
    at: float = field(default_factory=time.perf_counter)


@dataclass(slots=True)
class CommitWriter:
    """Writes the commits of one worker, and knows which snapshots they keep."""

    store: Store
    config_hash: str  # of the feed; it is part of each snapshot
    examples: Callable[[], int | None]  # how many learned ones the input is kept of; None for all
    kept: KeptSnapshots  # by the confirmed commits
    keep_input: bool = False  # that neither a replay nor the window needs
    backpressure: ConsumerBackpressure | None = None  # of a consumer that still needs input

    def send(
        self, commit: Commit, body: bytes | None = None, at: Position | None = None
    ) -> SentCommit:
        """Send a commit, which points at a new snapshot with this body if one is given.

        The snapshot stands at the end of the commit, or in a replay at an earlier position. Its
        write is large, so the next batch is answered while Redis does it.
        """
        if body is None:
            return SentCommit(commit, self.store.send(commit))
        commit, parts, size = self._with_snapshot(commit, body, at or commit.after)
        return SentCommit(commit, self.store.send(commit), parts, size)

    def _with_snapshot(
        self, commit: Commit, body: bytes, at: Position
    ) -> tuple[Commit, list[PendingReply], int]:
        """Begin to write a snapshot; return the commit that points at it, its writes and size."""
        keys = self.store.keys
        pointer, data = snapshots.encode(keys.feed, self.config_hash, at, body)
        move = snapshots.move_to(pointer, self.kept, keys, self.examples(), self.keep_input)
        if self.backpressure is not None:
            move = replace(move, trim=self.backpressure.trimmable(move.trim))
        parts = self.store.put_snapshot(pointer, data)
        return replace(commit, move=move), parts, len(data)

    def confirm(self, sent: SentCommit) -> bool:
        """Wait until a commit is done; return whether it keeps a new snapshot.

        Raises Fenced, PositionMoved, BatchChanged, StateLost, OutputAhead, WrongKeyType as
        `Store.confirm`.
        """
        commit = sent.commit
        try:
            self.store.confirm(commit, sent.sent)
        except InvalidStoredSnapshot:
            if not self._is_committed_again(sent):
                self.store.commit(replace(commit, move=None))
                return False
        if commit.move is None:
            return False
        self.kept = snapshots.moved(self.kept, commit.move)
        return True

    def _is_committed_again(self, sent: SentCommit) -> bool:
        """Write a missing snapshot again, then commit again; return whether that was accepted.

        The first write was lost with a connection or refused, or Redis was away for so long that
        the unreferenced snapshot expired. If it is missing again, the next batch brings another.
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


LOOK_SECONDS = 1.0
"""Seconds between two looks, at least: a busy feed commits hundreds of times in them."""


class SnapshotRequest:
    """A backup's request for a snapshot, in the feed's slot; see `admin.backup`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: bytes | None = None  # it stays in Redis for some time
        self._looked = float("-inf")
        self.is_open = False  # whether a snapshot is wanted that was not left yet

    def look(self, newest: bytes) -> None:
        """Look for a request of more than the newest snapshot holds, up to the ID `newest`."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        try:
            found = self._store.snapshot_request()
        except WrongKeyType:  # another program wrote it
            return
        if found is not None and found not in (self._seen, newest):
            self._seen, self.is_open = found, True

    def close(self) -> None:
        """Note that a snapshot was left, or that there is nothing new."""
        self.is_open = False
