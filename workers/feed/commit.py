"""What one commit carries, and how much of it the feed keeps."""

from collections.abc import Sequence
from dataclasses import dataclass

from workers.feed.position import Position
from workers.feed.state import Mark, Pointer

HEAD_BYTES = 1024
"""Bytes of a rejected entry that `dlq` keeps."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A rejected entry, as `dlq` keeps it: `size` in bytes, `head` its first `HEAD_BYTES`."""

    id: bytes
    code: str
    reason: str
    size: int
    head: bytes


@dataclass(frozen=True, slots=True)
class Retention:
    """Entries to keep in each output stream, about; 0 keeps all."""

    out: int = 1_000_000
    met: int = 100_000
    dlq: int = 1_000_000


@dataclass(frozen=True, slots=True)
class SnapshotMove:
    """The pointers after a commit that brings a new snapshot.

    Attributes
    ----------
    newest : Pointer
    previous : Pointer or None
    dropped : tuple of str
        Keys of snapshots that nothing points at any more.
    trim : bytes
        Input before this ID is given up; empty keeps all.
    marks : tuple of Mark
        Points from which all input is still there after that.
    """

    newest: Pointer
    previous: Pointer | None
    dropped: tuple[str, ...] = ()
    trim: bytes = b""
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Commit:
    """One batch, ready to be written: answers aligned with `ids`, and what goes with them."""

    epoch: int
    before: Position
    after: Position
    ids: Sequence[bytes] = ()
    out: Sequence[bytes] = ()
    met: Sequence[tuple[bytes, bytes]] = ()
    dlq: Sequence[DeadLetter] = ()
    move: SnapshotMove | None = None
