"""Snapshots: the policy of taking, keeping and dropping them, and their format.

The policy consists of pure functions, whose callers measure and act.

- taken: after a number of entries or on request (`is_due`); during a long replay
  (`is_due_in_replay`, `replay_pause`); of the feed with the longest replay, while the replays after
  a kill would take too long in total (`ReplayBudget`); at a stop, if there is time (`at_stop`);
- kept: the newest and the previous one, and the input since the previous one (`move_to`);
- stored: in parts (`parts_of`), a header with the feed's position, then the predictor's bytes
  (`encode`);
- used: only if hash and position are those in `st`, and feed, configuration and format match
  (`decode`);
- dropped: all older ones, and the unusable ones (`move_to`, `usable`).
"""

import heapq
import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from workers.broker.feed_reader import FeedReader
from workers.errors import InvalidStoredSnapshot
from workers.feed.keys import FeedKeys
from workers.feed.position import Position
from workers.feed.recent_ids import RecentIds, split_ids
from workers.feed.retention import keep, known_marks
from workers.feed.state import FeedState, Pointer, SnapshotMove
from workers.feed.state_fields import Mark

if TYPE_CHECKING:
    from online_svm.predictor.online_predictor import OnlinePredictor

PART_BYTES = 1 << 24
"""Largest number of bytes under one key: far below Redis's limit (512 MiB by default), and small
enough that writing a part does not delay other clients for long."""

REPLAY_SNAPSHOT_SECONDS = 0.25
"""Smallest time between two snapshots of a replay: shorter replays take none."""

REPLAY_SNAPSHOT_REST = 8.0
"""The same as a multiple of the time for the last snapshot: snapshots prolong a replay by at most
an eighth, besides waits for refits."""

STOP_SHARE = 0.8
"""Fraction of the grace period in which snapshots are taken; the rest is for closing down."""

BUDGET_CANDIDATES = 8
"""Number of feeds to try: one that is being refitted cannot take a snapshot now."""


@dataclass(frozen=True, slots=True)
class KeptSnapshots:
    """The snapshots of a feed; None stands for the start of the feed."""

    newest: Pointer | None  # usable, like `previous`
    previous: Pointer | None
    unusable: tuple[Pointer, ...] = ()  # still in the state; the next snapshot drops them
    marks: tuple[Mark, ...] = ()  # points since which all input is kept; see `feed.retention`

    @property
    def chunks(self) -> tuple[str, ...]:
        """Names of the chunks of the newest snapshot."""
        return () if self.newest is None else self.newest.chunks

    @property
    def cursor(self) -> bytes:
        """ID of the last entry before the newest snapshot."""
        return b"0-0" if self.newest is None else self.newest.cursor


def is_due(unsaved: int, every: int, is_requested: bool) -> bool:
    """Return whether to take a snapshot `unsaved` entries after the last one."""
    return is_requested or unsaved >= every


def is_due_in_replay(at: Position, saved: int, target: Position, has_rested: bool) -> bool:
    """Return whether a replay takes a snapshot: if there is progress, but not at its end."""
    return has_rested and at.seq > saved and at.cursor != target.cursor


def replay_pause(seconds: float, least: float = REPLAY_SNAPSHOT_SECONDS) -> float:
    """Return the seconds until the next snapshot of a replay; the last one took `seconds`."""
    return max(least, REPLAY_SNAPSHOT_REST * seconds)


def at_stop(unsaved: int, age: float, grace: float) -> Literal["nothing new", "too late", "take"]:
    """Return whether a feed takes a last snapshot, `age` seconds after the stop request."""
    if unsaved == 0:
        return "nothing new"
    return "too late" if age >= STOP_SHARE * grace else "take"


def parts_of(size: int) -> int:
    """Return the number of parts in which `size` bytes are stored."""
    return max(1, -(-size // PART_BYTES))


def kept_examples(window: int | None, pending: int) -> int | None:
    """Return for how many examples the input is kept: the window, and those without a label yet."""
    return None if window is None else window + pending


def usable(state: FeedState, unusable: Sequence[Pointer]) -> KeptSnapshots:
    """Return the snapshots of a state, with the unusable ones set apart."""
    pointers = (state.previous, state.snapshot)
    marks = known_marks(state.marks, [None if at is None else at.mark for at in pointers])
    if state.snapshot in unusable:
        return KeptSnapshots(state.previous, None, tuple(unusable), marks)
    previous = None if state.previous in unusable else state.previous
    return KeptSnapshots(state.snapshot, previous, tuple(unusable), marks)


def move_to(
    pointer: Pointer, kept: KeptSnapshots, keys: FeedKeys, examples: int | None, keep_input: bool
) -> SnapshotMove:
    """Return how the pointers move when a new snapshot is committed.

    The newest snapshot becomes the previous one, and the previous one is dropped. Input is trimmed
    unless a replay from the previous snapshot, or the last `examples` examples, need it.
    """
    previous = kept.newest
    kept_keys = {key for p in (pointer, previous) if p is not None for key in p.keys(keys)}
    obsolete = [p for p in (kept.previous, *kept.unusable) if p is not None]
    dropped = dict.fromkeys(key for p in obsolete for key in p.keys(keys) if key not in kept_keys)
    marks, trim = keep(
        kept.marks, pointer.mark, None if previous is None else previous.cursor, examples
    )
    return SnapshotMove(pointer, previous, tuple(dropped), b"" if keep_input else trim, marks)


def moved(kept: KeptSnapshots, move: SnapshotMove) -> KeptSnapshots:
    """Return the snapshots that are kept after a commit with this move."""
    return KeptSnapshots(move.newest, kept.newest, marks=move.marks)


class ReplayBudget:
    """A bound on the entries that all feeds together must replay if this process is killed.

    Each feed replays the entries since its newest snapshot. `is_due` bounds their number for each
    feed; this bounds the sum. Beyond it, the feed with the most entries takes a snapshot early.
    """

    def __init__(self, limit: int) -> None:
        self._most = limit
        self._lacking: dict[str, int] = {}
        self.total = 0

    @property
    def is_exceeded(self) -> bool:
        """Whether a feed should take a snapshot."""
        return self.total > self._most

    def note(self, feed: str, entries: int) -> None:
        """Record the number of entries since a feed's newest snapshot."""
        self.total += entries - self._lacking.get(feed, 0)
        self._lacking[feed] = entries

    def forget(self, feed: str) -> None:
        """Remove a feed that is no longer answered."""
        self.total -= self._lacking.pop(feed, 0)

    def largest(self) -> list[str]:
        """Return up to `BUDGET_CANDIDATES` feeds with the most entries, in order."""
        found = heapq.nlargest(BUDGET_CANDIDATES, self._lacking.items(), key=lambda item: item[1])
        return [feed for feed, entries in found if entries > 0]


SNAPSHOT = b"osvm-snapshot\n"  # first line of a snapshot
FORMAT = 1

_LENGTH = 4
_MAX_HEADER = 1 << 20
_HASH_DIGITS = 32


@dataclass(frozen=True, slots=True)
class LoadedSnapshot:
    """A snapshot that passed its checks."""

    position: Position
    body: bytes | memoryview
    chunks: tuple[bytes, ...] = ()  # of the memory; empty if the body has its rows

    @property
    def whole(self) -> bytes:
        """The body with the rows of the memory in it."""
        # Lazy import: the checks before a start read no snapshot.
        from online_svm.predictor.online_predictor import with_chunks

        ids, predictor = split_ids(self.body)
        return bytes(ids) + with_chunks(predictor, self.chunks)


Fetched = dict[tuple[Pointer, str], LoadedSnapshot]
"""Checked snapshots by pointer and hash of the feed's configuration."""


def encode(
    feed: str,
    config_hash: str,
    position: Position,
    body: bytes | memoryview,
    chunks: Sequence[str] = (),
) -> tuple[Pointer, bytes]:
    """Return the pointer to a snapshot and its bytes; `chunks` are the names of its chunks."""
    header = {
        "format": FORMAT,
        "feed": feed,
        "config_hash": config_hash,
        "cursor": position.cursor.decode(),
        "seq": position.seq,
        "n": position.n,
        "digest": position.digest.hex(),
        "chunks": list(chunks),
    }
    text = json.dumps(header, sort_keys=True).encode()
    data = b"".join((SNAPSHOT, len(text).to_bytes(_LENGTH, "big"), text, body))
    sha = sha256(data).hexdigest()
    return Pointer(position.n, sha, position.cursor, parts_of(len(data)), tuple(chunks)), data


def decode(
    data: bytes | memoryview,
    pointer: Pointer,
    feed: str,
    config_hash: str,
    chunks: tuple[bytes, ...] = (),
) -> LoadedSnapshot:
    """Check a snapshot and split it, without copying, into position and predictor.

    Raises InvalidStoredSnapshot if hash, feed, configuration, format, position or chunks do not
    match.
    """
    if sha256(data).hexdigest() != pointer.sha256:
        raise InvalidStoredSnapshot("its SHA-256 is not the one recorded: it is damaged")
    header, body = _split(memoryview(data))
    if header.get("format") != FORMAT:
        raise InvalidStoredSnapshot(
            f"it has format {header.get('format')!r}, this version reads {FORMAT}: upgrade"
        )
    if header.get("feed") != feed:
        raise InvalidStoredSnapshot(f"it belongs to feed {header.get('feed')!r}")
    if header.get("config_hash") != config_hash:
        raise InvalidStoredSnapshot("it was made under another configuration")
    position = _position(header)
    if position.cursor != pointer.cursor:
        raise InvalidStoredSnapshot("it stands elsewhere than recorded")
    named = [name.partition("-")[2] for name in pointer.chunks]
    if header.get("chunks") != list(pointer.chunks) or named != [*map(chunk_hash, chunks)]:
        raise InvalidStoredSnapshot("a chunk of its memory is damaged")
    return LoadedSnapshot(position, body, chunks)


def chunk_hash(data: bytes) -> str:
    """Return the hash of a chunk's bytes in its name."""
    return sha256(data).hexdigest()[:_HASH_DIGITS]


class SnapshotBody(NamedTuple):
    """What a snapshot holds: everything but the rows of the memory, which are in chunks."""

    data: bytes  # ids of producers, and the predictor
    chunks: tuple[str, ...]  # names of all its chunks
    new: dict[str, bytes]  # bytes of those that no kept snapshot has


def body_of(recent: RecentIds, predictor: "OnlinePredictor", kept: KeptSnapshots) -> SnapshotBody:
    """Return the body of a snapshot of a predictor.

    Of the chunks that the newest kept snapshot has, only the last may have changed since.
    """
    # Lazy import, as above.
    from online_svm.memory.rows import CHUNK_ROWS

    data = recent.prepend_to(predictor.snapshot(with_rows=False))
    known = {int(name.partition("-")[0]): name for name in kept.chunks}
    last = max(known, default=0)
    names = {i: name for i, name in known.items() if predictor.memory_first_chunk <= i < last}
    chunks = predictor.memory_chunks(last * CHUNK_ROWS)
    found = {f"{one.index}-{chunk_hash(one.data)}": one.data for one in chunks}
    held = {name for at in (kept.newest, kept.previous) if at is not None for name in at.chunks}
    new = {name: data for name, data in found.items() if name not in held}
    return SnapshotBody(data, (*(names[i] for i in sorted(names)), *found), new)


def read(store: FeedReader, pointer: Pointer, config_hash: str) -> LoadedSnapshot:
    """Read and decode a snapshot. Raises InvalidStoredSnapshot as `decode`, or if it is gone."""
    found = store.get_snapshot(pointer)
    if found is None:
        raise InvalidStoredSnapshot("it is gone")
    return decode(found[0], pointer, store.keys.feed, config_hash, found[1])


def _split(data: memoryview) -> tuple[dict[str, Any], memoryview]:
    start = len(SNAPSHOT) + _LENGTH
    if data[: len(SNAPSHOT)] != SNAPSHOT or len(data) < start:
        raise InvalidStoredSnapshot("it is not a snapshot of this program")
    length = int.from_bytes(data[len(SNAPSHOT) : start], "big")
    if length > min(_MAX_HEADER, len(data) - start):
        raise InvalidStoredSnapshot("its header is longer than it may be")
    try:
        header = json.loads(bytes(data[start : start + length]))
    except (ValueError, RecursionError) as error:
        raise InvalidStoredSnapshot(f"its header is unreadable: {error}") from error
    if not isinstance(header, dict):
        raise InvalidStoredSnapshot("its header is unreadable")
    return header, data[start + length :]


def _position(header: dict[str, Any]) -> Position:
    try:
        digest = bytes.fromhex(header["digest"])
        return Position(header["cursor"].encode(), int(header["seq"]), int(header["n"]), digest)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise InvalidStoredSnapshot(f"its header is incomplete: {error!r}") from error
