"""The contents of one commit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workers.feed.position import Position
from workers.feed.state import Pointer
from workers.feed.state_fields import Mark

HEAD_BYTES = 1024
"""Bytes of a rejected entry that are kept in `dlq`."""


@dataclass(frozen=True, slots=True)
class RejectedEntry:
    """A rejected entry, as kept in `dlq`: `size` in bytes, `head` its first `HEAD_BYTES`."""

    id: bytes
    code: str
    reason: str
    size: int
    head: bytes


@dataclass(frozen=True, slots=True)
class SnapshotMove:
    """How a commit with a new snapshot moves the pointers.

    Attributes
    ----------
    newest : Pointer
    previous : Pointer or None
    dropped : tuple of str
        Keys of snapshots that are no longer referenced.
    trim : bytes
        Trim input before this ID; empty trims nothing.
    marks : tuple of Mark
        Points since which all input is kept, after that.
    """

    newest: Pointer
    previous: Pointer | None
    dropped: tuple[str, ...] = ()
    trim: bytes = b""
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Commit:
    """One batch to write.

    Attributes
    ----------
    epoch : int
        Of the writer.
    before, after : Position
    ids, out : sequence of bytes
        Entry IDs of the answers, and their payloads.
    met : sequence of (bytes, bytes)
        ID and payload of each report.
    dlq : sequence of RejectedEntry
    move : SnapshotMove or None
    fields : mapping of str to bytes
        Further fields of the state that change with the batch.
    alarms : sequence of (bytes, bytes)
        ID and payload of each entry of `alarms`.
    """

    epoch: int
    before: Position
    after: Position
    ids: Sequence[bytes] = ()
    out: Sequence[bytes] = ()
    met: Sequence[tuple[bytes, bytes]] = ()
    dlq: Sequence[RejectedEntry] = ()
    move: SnapshotMove | None = None
    fields: Mapping[str, bytes] = field(default_factory=dict)
    alarms: Sequence[tuple[bytes, bytes]] = ()
