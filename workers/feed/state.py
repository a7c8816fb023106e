"""Types of the stored state of a feed: the hash `st`, a commit, the newest published state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Self

from workers.config.retention_settings import RetentionSettings
from workers.errors import BadConfiguration, InvalidPublication
from workers.feed.keys import FeedKeys
from workers.feed.position import Position
from workers.feed.retention import KeptBytes, parse_retention
from workers.feed.state_fields import (
    FieldReader,
    Mark,
    added,
    count,
    digest,
    entry_id,
    gone,
    json_object,
    parse_marks,
    run_id,
    text,
)

RETENTION = "retention"
"""Name of the field with what is kept; a feed of an earlier version has none."""

FORMAT = 2
"""Version of everything this program stores in Redis.

0.1.0 wrote 1, and asks for an upgrade where it finds 2. A feed of 1 keeps its number, and with it
`environment`, the libraries that computed it: they bind nothing, and are not read.
"""

_READ = (1, FORMAT)
"""Formats that are read."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """The key of a snapshot, its hash, and the cursor to replay from.

    Examples
    --------
    >>> pointer = Pointer(2000, "ab" * 32, b"17-3")
    >>> Pointer.parse(pointer.encode()) == pointer
    True
    >>> Pointer(2000, "ab", b"17-3", parts=4).encode()
    b'2000:ab:17-3:4'
    """

    n: int
    sha256: str
    cursor: bytes
    parts: int = 1  # number of keys it is stored under; Redis bounds the size of a value

    def encode(self) -> bytes:
        """Return the text stored in `st`."""
        text = b"%d:%b:%b" % (self.n, self.sha256.encode(), self.cursor)
        return text if self.parts == 1 else b"%b:%d" % (text, self.parts)

    def keys(self, names: FeedKeys) -> list[str]:
        """Return the keys of its parts, in order."""
        return names.snapshot_parts(self.n, self.sha256, self.parts)

    @property
    def mark(self) -> Mark:
        """The position of the snapshot."""
        return Mark(self.n, self.cursor)

    @classmethod
    def parse(cls, value: bytes) -> Self:
        """Return the pointer that `encode` wrote. Raises ValueError for any other text."""
        fields = value.split(b":")
        parts = count(fields[3]) if len(fields) == 4 else 1
        if len(fields) not in (3, 4) or (len(fields) == 4 and parts < 2):
            raise ValueError("not number:SHA-256:ID, nor that with a number of parts")
        return cls(count(fields[0]), digest(fields[1]).hex(), entry_id(fields[2]), parts)


@dataclass(frozen=True, slots=True)
class PinnedConfig:
    """The configuration that must not change while a feed exists."""

    config: str  # the predictor's configuration as canonical JSON
    config_hash: str  # its SHA-256


@dataclass(frozen=True, slots=True)
class FeedState:
    """The hash `st` of one feed.

    Attributes
    ----------
    snapshot, previous : Pointer or None
        The newest and the older kept snapshot. None is the start of the feed; all input since
        then is kept.
    """

    epoch: int  # grows by one with each writer. Only the writer with this epoch may commit
    writer: str  # name of the last writer, shown to people
    position: Position  # committed
    snapshot: Pointer | None
    previous: Pointer | None
    pinned: PinnedConfig
    # Points since which all input is kept, the oldest first; empty if none are known
    marks: tuple[Mark, ...] = ()
    kept: KeptBytes = field(default_factory=KeptBytes)  # byte counts of the output streams
    # Retention of the last worker; None before one stored it
    retention: RetentionSettings | None = None

    @property
    def snapshots(self) -> tuple[Pointer, ...]:
        """The kept snapshots, the newest first."""
        return tuple(p for p in (self.snapshot, self.previous) if p is not None)

    @classmethod
    def parse(cls, fields: dict[bytes, bytes], key: str) -> Self:
        """Return the state from the fields of the hash.

        Raises StateLost if a field is missing or unreadable; BadConfiguration if a newer version of
        this program wrote it.
        """
        read = FieldReader(fields, key)
        stored = read("format", count)
        if stored not in _READ:
            raise BadConfiguration(
                f"{key} has format {stored}, this version knows {FORMAT}: upgrade online-svm"
            )
        # Checked here, used by the scripts; a feed may lack them.
        read("gone", gone, b"- 0-0")
        read("added", added, b"0 0")
        read("run_id", run_id, b"0")
        return cls(
            epoch=read("epoch", count),
            writer=read("writer", text, b""),
            position=_position(read),
            snapshot=read("snapshot", _pointer),
            previous=read("previous", _pointer),
            pinned=PinnedConfig(read("config", json_object), read("config_hash", text)),
            marks=read("marks", parse_marks, b""),
            kept=KeptBytes.read(read),
            retention=read(RETENTION, parse_retention, b""),
        )


def initial_fields(pinned: PinnedConfig) -> list[bytes | str | int]:
    """Return names and values of the hash of a new feed, except epoch and writer."""
    start = Position()
    fields: dict[str, bytes | str | int] = {
        "format": FORMAT,
        "cursor": start.cursor,
        "seq": start.seq,
        "n": start.n,
        "digest": start.digest.hex(),
        "snapshot": "",
        "previous": "",
        "config": pinned.config,
        "config_hash": pinned.config_hash,
    }
    return [part for pair in fields.items() for part in pair]


def _position(read: FieldReader) -> Position:
    cursor, seq = read("cursor", entry_id), read("seq", count)
    n, answered = read("n", count), read("digest", digest)
    if n > seq:
        raise read.damaged(f"field 'n' is {n}, more than the {seq} entries of 'seq'")
    return Position(cursor, seq, n, answered)


def _pointer(value: bytes) -> Pointer | None:
    return Pointer.parse(value) if value else None


HEAD_BYTES = 1024
"""Bytes of a rejected entry that are kept in `dlq`."""


@dataclass(frozen=True, slots=True)
class RejectedEntry:
    """A rejected entry, as kept in `dlq`: `size` in bytes, `head` its first `HEAD_BYTES`.

    Why it was rejected stands in the field `name`: under semantics 4 `reason`, then `about`.
    """

    id: bytes
    code: str
    name: str
    why: str
    size: int
    head: bytes

    @property
    def fields(self) -> list[bytes]:
        """Names and values of its entry in `dlq`."""
        why = (self.name.encode(), self.why.encode())
        return [b"code", self.code.encode(), *why, b"size", b"%d" % self.size, b"head", self.head]


@dataclass(frozen=True, slots=True)
class SnapshotMove:
    """How a commit with a new snapshot moves the pointers."""

    newest: Pointer
    previous: Pointer | None
    dropped: tuple[str, ...] = ()  # keys of snapshots that are no longer referenced
    trim: bytes = b""  # trim input before this ID; empty trims nothing
    marks: tuple[Mark, ...] = ()  # points since which all input is kept, after that


@dataclass(frozen=True, slots=True)
class Commit:
    """One batch to write."""

    epoch: int  # of the writer
    before: Position
    after: Position
    ids: Sequence[bytes] = ()  # of the answers: the IDs of their entries
    out: Sequence[bytes] = ()  # their payloads
    met: Sequence[tuple[bytes, bytes]] = ()  # ID and payload of each report
    dlq: Sequence[RejectedEntry] = ()
    move: SnapshotMove | None = None
    # Further fields of the state that change with the batch
    fields: Mapping[str, bytes] = field(default_factory=dict)
    alarms: Sequence[tuple[bytes, bytes]] = ()  # ID and payload of each entry of `alarms`


_MAX_PARTS = 1 << 16


@dataclass(frozen=True, slots=True)
class Publication:
    """A published state: its position, and how its bytes are found and checked."""

    n: int  # examples learned
    seq: int  # input entries answered
    cursor: bytes  # ID of the last of these entries
    sha256: str  # of its bytes
    size: int  # bytes
    parts: int  # keys they are stored under
    config_hash: str = ""  # of the feed; the script that publishes adds it
    at: int = 0  # milliseconds since 1970 by the clock of Redis; the script adds it

    @classmethod
    def of(cls, position: Position, data: bytes, part_bytes: int) -> Self:
        """Return the publication of these bytes, in parts of limited size."""
        parts = max(1, -(-len(data) // part_bytes))
        name = sha256(data).hexdigest()
        return cls(position.n, position.seq, position.cursor, name, len(data), parts)

    @property
    def name(self) -> str:
        """Its n and the first digits of its checksum, as answers name it."""
        return f"{self.n}-{self.sha256[:8]}"

    def keys(self, names: FeedKeys) -> list[str]:
        """Return the keys of its parts, in order."""
        return names.published_parts(self.n, self.sha256, self.parts)

    def fields(self) -> list[bytes | str | int]:
        """Return names and values of the fields that a worker gives; the script adds the others."""
        return [
            "n", self.n, "seq", self.seq, "cursor", self.cursor, "sha256", self.sha256,
            "size", self.size, "parts", self.parts,
        ]  # fmt: skip

    @staticmethod
    def shown(fields: Mapping[bytes, bytes]) -> str:
        """Return the name that unchecked fields give, for a person."""
        n, sha = (
            fields.get(name, b"?")[:20].decode(errors="replace") for name in (b"n", b"sha256")
        )
        return f"{n}-{sha[:8]}"

    @classmethod
    def parse(cls, fields: Mapping[bytes, bytes], key: str) -> Self:
        """Return the publication from the fields of the hash. Raises InvalidPublication."""
        try:
            parsed = cls(
                count(fields[b"n"]),
                count(fields[b"seq"]),
                entry_id(fields[b"cursor"]),
                digest(fields[b"sha256"]).hex(),
                count(fields[b"size"]),
                count(fields[b"parts"]),
                digest(fields[b"config_hash"]).hex(),
                count(fields[b"at"]),
            )
        except (KeyError, ValueError) as error:
            raise InvalidPublication(f"{key} is damaged: {error}") from error
        if not 1 <= parsed.parts <= min(_MAX_PARTS, max(1, parsed.size)) or parsed.n > parsed.seq:
            raise InvalidPublication(f"{key} is damaged: its numbers do not fit one another")
        return parsed
