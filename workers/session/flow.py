"""What flows between a session and Redis: entries read ahead, commits confirmed later.

The session waits for neither. No bound changes an answer. With the policy `trim`, answers beyond
the retention are trimmed, read or not. With `block`, answers, and their input, reports and alarms,
are trimmed only after the consumer group acknowledged the answers. If the retention is reached and
the oldest answer is not acknowledged, the worker reads no input: the input stays in `in`, and
nothing is lost.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from online_svm.predictor.online_predictor import OnlinePredictor
from workers.broker.large_replies import BatchSize
from workers.broker.pipeline import PendingReply
from workers.broker.store import SentPart, Store
from workers.broker.streams import Entry
from workers.errors import InputLost, InvalidStoredSnapshot, ReadTooLarge, WrongKeyType
from workers.feed.position import LAST_ID, Position, format_id, next_id, parse_id
from workers.feed.state import Commit
from workers.log import Logger
from workers.refit.refitter import PooledRefitter
from workers.session import snapshots
from workers.session.snapshots import KeptSnapshots, SnapshotBody
from workers.session.telemetry import Telemetry

log = Logger("online_svm.worker")

# Indices of `FeedKeys.outputs`.
_OUT, _REPORTS_AND_ALARMS = 0, (1, 2)

POLL_SECONDS = 1.0
"""Smallest time between two polls for a request; a busy feed commits hundreds of times a second."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Bounds the entries answered at once, in addition to the batch."""

    refits: PooledRefitter
    slice: int  # most entries answered at once, while other feeds wait

    def room(self, predictor: OnlinePredictor) -> int:
        """Return how many entries may be answered now."""
        return min(self.slice, predictor.until_wait)

    def waits(self, predictor: OnlinePredictor) -> bool:
        """Return whether the next answer must wait for a fit that is still being computed."""
        if predictor.is_waiting_for_refit and not self.refits.is_ready:
            return True
        return predictor.is_waiting_for_trees

    def may_snapshot(self, predictor: OnlinePredictor) -> bool:
        """Return whether a snapshot need not wait for a refit or the learner's state.

        `has_state` also requests the state, so that it arrives right after the refit's result.
        """
        has_state = self.refits.has_state
        return has_state and (self.refits.is_ready or not predictor.is_refitting)


class InputReader:
    """Reads entries ahead, in batches that start small. After a failure, create a new one."""

    def __init__(self, store: Store, size: BatchSize) -> None:
        self._store, self._size = store, size
        size.start_small()
        self._buffer: list[Entry] = []
        self._prefetched: PendingReply | None = None
        self._may_be_more = False

    @property
    def is_at_the_end(self) -> bool:
        """Whether the last read reached the end of the stream, and all its entries are taken."""
        return not self._buffer and not self._may_be_more

    @property
    def is_spent(self) -> bool:
        """Whether `next_now` returns nothing before `put` is called."""
        return not self._buffer and self._prefetched is None and not self._may_be_more

    @property
    def count(self) -> int:
        """Number of entries in a read, and in a batch."""
        return self._size.count

    def put(self, entries: Sequence[Entry], may_be_more: bool) -> None:
        """Append entries to the buffer; `may_be_more` if the stream may have more."""
        self._buffer += entries
        self._may_be_more = may_be_more

    def next_now(self, cursor: bytes, limit: int) -> list[Entry]:
        """Return the entries after a cursor: at most a batch, or `limit`; do not wait for input."""
        if self._prefetched is not None or (not self._buffer and self._may_be_more):
            self._buffer += self._read(cursor)
        first = self._buffer[: self._size.count]
        count = self._size.first_of(first) if first else 0
        count = min(count, limit)
        entries, self._buffer = self._buffer[:count], self._buffer[count:]
        return entries

    def prefetch(self, cursor: bytes) -> None:
        """Request the entries after the buffered ones, or after the cursor if none are buffered.

        Request nothing if a whole batch is buffered, or the last read reached the end of the
        stream. A partial batch is answered together with the entries that follow.
        """
        if self._may_be_more and len(self._buffer) < self._size.count:
            last = self._buffer[-1][0] if self._buffer else cursor
            self._prefetched = self._store.send_read(last, self._size.count, self._size.reply_limit)

    def _read(self, cursor: bytes) -> list[Entry]:
        """Return the prefetched entries, or read some now; read fewer if they are large."""
        sent, self._prefetched = self._prefetched, None
        last = self._buffer[-1][0] if self._buffer else cursor
        size = self._size
        while True:
            count = size.count
            if sent is None:
                sent = self._store.send_read(last, count, size.reply_limit)
            try:
                entries = self._store.receive_read(sent)
            except ReadTooLarge as error:
                sent = None
                self._store.check_entry_is_deliverable(error, self._store.keys.input, last, count)
                size.halve(error)
                continue
            self._may_be_more = len(entries) >= count
            return entries


def check_entries_exist(store: Store, after: bytes, held: Sequence[bytes]) -> None:
    """Raise InputLost unless the stream still has the entries `held`, which follow an ID."""
    present = {entry[0] for entry in store.each(store.keys.input, after, held[-1])}
    gone = sorted((i for i in held if i not in present), key=parse_id)
    if gone:
        raise InputLost(
            f"input lost: {len(gone)} of the {len(held)} entries that were read, from "
            f"{gone[0].decode()} on, were trimmed or deleted before their answers were "
            f"committed. Restore them under their IDs, or: online-svm reset "
            f"{store.keys.feed}"
        )


class ConsumerBackpressure:
    """Blocks a feed with the policy `block` while the consumer group of its answers lags.

    `out` exceeds the retention by at most one batch of entries, or two batches of bytes. The
    store's retention must have `is_held`, so that commits trim no answers, reports and alarms.
    Without a consumer group nothing counts as acknowledged.
    """

    def __init__(self, store: Store, group: str, telemetry: Telemetry | None = None) -> None:
        self._store, self._group = store, group
        self._telemetry = telemetry or Telemetry()
        self._had_room = True

    def has_room(self, batch: int) -> bool:
        """Trim acknowledged answers; return whether `batch` more may be written."""
        has_room = self._has_room_for_bytes() and self._has_room_for_entries(batch)
        if has_room != self._had_room:
            self._report(has_room)
        return has_room

    def trimmable(self, upto: bytes) -> bytes:
        """Return `upto`, or the first unacknowledged ID if that is smaller."""
        if not upto or not self._store.has_stream(self._store.keys.out):
            return b""  # no consumer has read any answer
        limit = self._acknowledged()
        if limit >= parse_id(upto):
            return upto
        return format_id(limit) if limit > (0, 0) else b""

    def _has_room_for_bytes(self) -> bool:
        retained = self._store.retained
        bound = retained.retention.bytes.out
        if not bound or retained.kept.streams[_OUT].kept < bound:
            return True
        limit = self._acknowledged()
        if trimmed := self._trim_bytes(_OUT, limit):
            self._trim_reports_and_alarms(trimmed, limit)
        return retained.kept.streams[_OUT].kept < bound

    def _has_room_for_entries(self, batch: int) -> bool:
        retain = self._store.retained.retention.entries[_OUT]
        if not retain:
            return True
        kept = self._store.length(self._store.keys.out)
        if kept < retain:
            return True
        limit = self._acknowledged()
        trimmed = self._trim_entries(self._store.keys.out, kept - retain + batch, limit)
        if trimmed:
            self._trim_reports_and_alarms(trimmed, limit)
        return kept - trimmed < retain

    def _trim_reports_and_alarms(self, answers: int, limit: tuple[int, int]) -> None:
        """Trim reports and alarms to the retention, after so many answers were trimmed."""
        for index in _REPORTS_AND_ALARMS:
            stream = self._store.keys.outputs[index]
            retain = self._store.retained.retention.entries[index]
            excess = self._store.length(stream) - retain if retain else 0
            if excess > 0:
                self._trim_entries(stream, min(excess, 2 * answers), limit)
            self._trim_bytes(index, limit)

    def _trim_bytes(self, index: int, limit: tuple[int, int]) -> int:
        """Trim an output stream to below its bound of bytes, but only entries before `limit`."""
        retained = self._store.retained
        kept, bound = retained.kept.streams[index], retained.retention.bytes[index]
        left = kept.room_from(bound, lambda entry_id: parse_id(entry_id) < limit)
        if left.marks == kept.marks:
            return 0
        retained.note_trimmed(index, left)
        return self._trim_upto(self._store.keys.outputs[index], left.marks[0].cursor)

    def _trim_entries(self, stream: str, count: int, limit: tuple[int, int]) -> int:
        """Trim up to `count` of the oldest entries, but only entries before `limit`."""
        oldest = self._store.entries(stream, count=count)
        trimmable = [entry[0] for entry in oldest if parse_id(entry[0]) < limit]
        return self._trim_upto(stream, trimmable[-1]) if trimmable else 0

    def _trim_upto(self, stream: str, last: bytes) -> int:
        """Trim the entries up to `last`; return their number."""
        # XTRIM excludes its bound. No ID follows the largest possible one; that entry stays.
        return self._store.trim_before(stream, next_id(last) or LAST_ID)

    def _acknowledged(self) -> tuple[int, int]:
        """Return the ID before which every answer is acknowledged."""
        group = self._store.group(self._store.keys.out, self._group)
        info = group.info()
        if info is None:
            return 0, 0
        if not info.pending:
            time, count = parse_id(info.last_delivered)
            return time, count + 1  # used in comparisons only; it need not be a valid ID
        oldest = group.oldest_pending()
        return parse_id(oldest) if oldest else (0, 0)

    def _report(self, has_room: bool) -> None:
        self._had_room = has_room
        group = self._group
        self._telemetry.waits(None if has_room else f"waits for the consumer group {group!r}")
        if has_room:
            log.info("the consumer group acknowledges again; going on", group=self._group)
        else:
            log.warning(
                "waiting for the consumer group: its oldest answer that is not acknowledged is "
                "also the oldest that is kept",
                group=self._group,
                retain_out=self._store.retained.retention.entries[_OUT],
                retain_bytes=self._store.retained.retention.bytes.out,
            )


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
