"""Send a commit, some with a snapshot of the predictor, and confirm it later."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from workers.broker.pipeline import Sent
from workers.broker.store import Store
from workers.errors import InvalidStoredSnapshot
from workers.feed.commit import Commit
from workers.feed.state import Pointer
from workers.log import Logger
from workers.session import snapshots
from workers.session.downstream import Gate
from workers.session.snapshots import KeptSnapshots

log = Logger("online_svm.worker")


@dataclass(frozen=True, slots=True)
class SentCommit:
    """A commit that is not confirmed.

    Attributes
    ----------
    commit : Commit
    sent : Sent
        The call of the script.
    snapshot : (Pointer, list of Sent) or None
        The snapshot it points at, and the writes of its parts.
    size : int
        Bytes of that snapshot; 0 without one.
    at : float
        When it was sent, by `time.perf_counter`.
    """

    commit: Commit
    sent: Sent
    snapshot: tuple[Pointer, list[Sent]] | None
    size: int = 0
    at: float = field(default_factory=time.perf_counter)


class CommitWriter:
    """Writes the commits of one worker, and knows which snapshots they keep.

    Parameters
    ----------
    store : Store
    config_hash : str
        Of the feed; it is part of each snapshot.
    window : callable
        Returns how many learned examples the input is kept of; None for all.
    kept : KeptSnapshots
    keep_input : bool
        Keep input that neither a replay nor the window needs.
    part_bytes : int
        Bytes of a snapshot under one key, at most.
    gate : Gate
        Says of which input a consumer of the answers has no need any more.
    """

    def __init__(
        self,
        store: Store,
        config_hash: str,
        window: Callable[[], int | None],
        kept: KeptSnapshots,
        keep_input: bool,
        part_bytes: int,
        gate: Gate,
    ) -> None:
        self._store, self._config_hash, self._window = store, config_hash, window
        self._kept, self._keep_input, self._part_bytes = kept, keep_input, part_bytes
        self._gate = gate

    @property
    def newest(self) -> bytes:
        """Where the newest snapshot stands: an entry ID, that of the start without any."""
        return b"0-0" if self._kept.newest is None else self._kept.newest.cursor

    def send(self, commit: Commit, body: bytes | None = None) -> SentCommit:
        """Send a commit, which points at a new snapshot with this body if one is given."""
        if body is None:
            return SentCommit(commit, self._store.send(commit), None)
        snapshot, commit, size = self._with_snapshot(commit, body)
        return SentCommit(commit, self._store.send(commit), snapshot, size)

    def confirm(self, sent: SentCommit) -> bool:
        """Wait until a commit is done; return whether it keeps a new snapshot.

        Raises
        ------
        Fenced, PositionMoved, BatchChanged, StateLost, OutputAhead, WrongKeyType
            As `Store.confirm`.
        """
        commit, snapshot = sent.commit, sent.snapshot
        try:
            self._store.confirm(commit, sent.sent)
        except InvalidStoredSnapshot:
            assert snapshot is not None
            if not self._is_committed_again(commit, snapshot[1]):
                self._store.commit(replace(commit, move=None))
                return False
        if snapshot is None:
            return False
        assert commit.move is not None
        self._kept = KeptSnapshots(snapshot[0], self._kept.newest, marks=commit.move.marks)
        return True

    def _is_committed_again(self, commit: Commit, writing: list[Sent]) -> bool:
        """Write a missing snapshot again, then commit again; return whether that was accepted.

        The first write was lost with a connection or refused, or Redis was away for so long that
        the unreferenced snapshot expired. If it is missing again, the next batch brings another.
        """
        self._store.finish_snapshot(writing)
        try:
            self._store.commit(commit)
        except InvalidStoredSnapshot:
            log.warning("a snapshot was not kept", cursor=commit.after.cursor)
            self._store.note("snapshot_not_kept", f"at {commit.after.cursor.decode()}")
            return False
        return True

    def _with_snapshot(
        self, commit: Commit, body: bytes
    ) -> tuple[tuple[Pointer, list[Sent]], Commit, int]:
        """Begin to write a snapshot after this batch; let the commit point at it; give its size.

        The write is large, so the next batch is answered while Redis does it.
        """
        store = self._store
        pointer, data = snapshots.encode(
            store.keys.feed, self._config_hash, commit.after, body, self._part_bytes
        )
        move = snapshots.move_to(pointer, self._kept, store, self._keep_input, self._window())
        move = replace(move, trim=self._gate.trimmable(move.trim))
        sent = store.put_snapshot(pointer, data)
        return (pointer, sent), replace(commit, move=move), len(data)
