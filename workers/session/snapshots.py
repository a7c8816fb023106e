"""The snapshot format: a header with the feed's position, then the predictor's bytes.

A snapshot is used only if its hash is the one in `st`, it is of this feed, configuration and
format, and its position is the one in `st`.
"""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from online_svm.storage.saved_model import SNAPSHOT
from workers.broker.store import Store
from workers.errors import InvalidStoredSnapshot
from workers.feed.commit import SnapshotMove
from workers.feed.input_retention import keep
from workers.feed.position import Position
from workers.feed.state import Pointer
from workers.feed.state_fields import Mark

FORMAT = 1

PART_BYTES = 1 << 24
"""Largest number of bytes under one key: far below the limit of Redis for a value (512 MiB by
default), and small enough that writing a part does not delay other clients for long."""

_LENGTH = 4
_MAX_HEADER = 1 << 16


@dataclass(frozen=True, slots=True)
class LoadedSnapshot:
    """A snapshot that was read and passed its checks."""

    position: Position
    body: bytes | memoryview


@dataclass(frozen=True, slots=True)
class KeptSnapshots:
    """The snapshots a worker relies on.

    Attributes
    ----------
    newest, previous : Pointer or None
        Known to be usable; None is the start of the feed.
    unusable : tuple of Pointer
        Still named in `st`; the next snapshot drops them.
    marks : tuple of Mark
        Points since which all input is kept; see `input_retention`.
    """

    newest: Pointer | None
    previous: Pointer | None
    unusable: tuple[Pointer, ...] = ()
    marks: tuple[Mark, ...] = ()


def encode(
    feed: str,
    config_hash: str,
    position: Position,
    body: bytes | memoryview,
    part_bytes: int = PART_BYTES,
) -> tuple[Pointer, bytes]:
    """Return the pointer to a snapshot and its bytes; parts have at most `part_bytes`.

    Examples
    --------
    >>> pointer, data = encode("f", "c0ffee", Position(b"9-1", 3, 2, bytes(32)), b"learned")
    >>> bytes(decode(data, pointer, "f", "c0ffee").body)
    b'learned'
    """
    header = {
        "format": FORMAT,
        "feed": feed,
        "config_hash": config_hash,
        "cursor": position.cursor.decode(),
        "seq": position.seq,
        "n": position.n,
        "digest": position.digest.hex(),
    }
    text = json.dumps(header, sort_keys=True).encode()
    data = b"".join((SNAPSHOT, len(text).to_bytes(_LENGTH, "big"), text, body))
    parts = parts_of(len(data), part_bytes)
    return Pointer(position.n, sha256(data).hexdigest(), position.cursor, parts), data


def parts_of(size: int, part_bytes: int = PART_BYTES) -> int:
    """Return the number of parts in which `size` bytes are stored."""
    return max(1, -(-size // part_bytes))


def decode(
    data: bytes | memoryview, pointer: Pointer, feed: str, config_hash: str
) -> LoadedSnapshot:
    """Return the position and the predictor's bytes of a snapshot, which are not copied.

    Raises
    ------
    InvalidStoredSnapshot
        If the bytes have another hash, or are of another feed, configuration or format.
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
    return LoadedSnapshot(position, body)


def read(store: Store, pointer: Pointer, config_hash: str) -> LoadedSnapshot:
    """Fetch and decode the snapshot that `pointer` names.

    Raises
    ------
    InvalidStoredSnapshot
        As `decode`, or if it is gone.
    """
    data = store.get_snapshot(pointer)
    if data is None:
        raise InvalidStoredSnapshot("it is gone")
    return decode(data, pointer, store.keys.feed, config_hash)


def move_to(
    pointer: Pointer, kept: KeptSnapshots, store: Store, keep_input: bool, window: int | None
) -> SnapshotMove:
    """Return how the pointers move when a new snapshot is committed.

    The newest snapshot becomes the previous one, and the one before is dropped. Input is trimmed
    that neither a replay from the previous snapshot nor the window needs.
    """
    keys = store.keys
    previous = kept.newest
    staying = {key for p in (pointer, previous) if p is not None for key in p.keys(keys)}
    leaving = [p for p in (kept.previous, *kept.unusable) if p is not None]
    dropped = dict.fromkeys(key for p in leaving for key in p.keys(keys))
    marks, trim = keep(
        kept.marks, pointer.mark, None if previous is None else previous.cursor, window
    )
    going = tuple(key for key in dropped if key not in staying)
    return SnapshotMove(pointer, previous, going, b"" if keep_input else trim, marks)


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
