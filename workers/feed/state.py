"""The stored state of a feed as types: the hash `st`, a commit, published state, finished fits."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple, Self

from workers.config.retention_settings import RetentionSettings
from workers.errors import BadConfiguration, InvalidPublication
from workers.feed.keys import FeedKeys
from workers.feed.position import Position
from workers.feed.retention import KeptBytes, parse_retention
from workers.feed.state_fields import (
    DUPLICATES,
    KINDS,
    MEMORY,
    FieldReader,
    Mark,
    added,
    count,
    digest,
    entry_id,
    gone,
    json_object,
    parse_kinds,
    parse_marks,
    parse_memory,
    run_id,
    text,
)

RETENTION = "retention"
"""Name of the field with the retention."""

_NO_POINTER = "not number:SHA-256:ID, nor that with a number of parts and names of chunks"
_CHUNK = re.compile(r"[0-9]{1,18}-[0-9a-f]{32}")

FORMAT = 2
"""Version of the keys and fields of a feed in Redis. A feed with an earlier one is refused by its
pinned configuration."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """A reference to a snapshot: its n, hash and cursor.

    Examples
    --------
    >>> pointer = Pointer(2000, "ab" * 32, b"17-3")
    >>> Pointer.parse(pointer.encode()) == pointer
    True
    >>> Pointer(2000, "ab", b"17-3", parts=4).encode()
    b'2000:ab:17-3:4'
    >>> Pointer(2000, "ab", b"17-3", chunks=("0-" + "cd" * 16,)).encode()
    b'2000:ab:17-3:1:0-cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd'
    """

    n: int
    sha256: str
    cursor: bytes
    parts: int = 1  # number of keys; Redis limits the size of a value
    chunks: tuple[str, ...] = ()  # names of the chunks of the memory that belong to it

    def encode(self) -> bytes:
        """Encode the pointer for `st`."""
        fields = [b"%d" % self.n, self.sha256.encode(), self.cursor]
        if self.parts > 1 or self.chunks:
            fields.append(b"%d" % self.parts)
        if self.chunks:
            fields.append(",".join(self.chunks).encode())
        return b":".join(fields)

    def keys(self, names: FeedKeys) -> list[str]:
        """Return the keys of its parts, in order, and then of its chunks."""
        parts = names.snapshot_parts(self.n, self.sha256, self.parts)
        return parts + names.memory_chunks(self.chunks)

    @property
    def mark(self) -> Mark:
        """The position of the snapshot."""
        return Mark(self.n, self.cursor)

    @classmethod
    def parse(cls, value: bytes) -> Self:
        """Decode a result of `encode`. Raises ValueError for any other text."""
        fields = value.split(b":")
        parts = count(fields[3]) if len(fields) > 3 else 1
        chunks = tuple(fields[4].decode().split(",")) if len(fields) == 5 else ()
        if not 3 <= len(fields) <= 5 or (len(fields) == 4 and parts < 2) or parts < 1:
            raise ValueError(_NO_POINTER)
        if not all(map(_CHUNK.fullmatch, chunks)):
            raise ValueError(_NO_POINTER)
        return cls(count(fields[0]), digest(fields[1]).hex(), entry_id(fields[2]), parts, chunks)


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
        The newest snapshot, and the one before it. None is the start of the feed, from which all
        input is then kept.
    """

    epoch: int  # fencing token: incremented by each new writer, the only one that may commit
    writer: str  # name of the last writer, for people
    position: Position  # committed
    snapshot: Pointer | None
    previous: Pointer | None
    pinned: PinnedConfig
    marks: tuple[Mark, ...] = ()  # points since which all input is kept, the oldest first
    kept: KeptBytes = field(default_factory=KeptBytes)  # byte counts of the output streams
    retention: RetentionSettings | None = None  # of the last worker; None if never stored
    kinds: Sequence[Mapping[str, Any]] = ()  # features in another kind than was learned
    duplicates: int = 0  # answered entries that repeated an id
    memory: Mapping[str, Any] = field(default_factory=dict)  # as of the newest snapshot

    @property
    def snapshots(self) -> tuple[Pointer, ...]:
        """The kept snapshots, newest first."""
        return tuple(p for p in (self.snapshot, self.previous) if p is not None)

    @classmethod
    def parse(cls, fields: dict[bytes, bytes], key: str) -> Self:
        """Parse the fields of the hash.

        Raises StateLost if a field is missing or damaged; BadConfiguration if a newer version of
        this program wrote the state.
        """
        read = FieldReader(fields, key)
        stored = read("format", count)
        if stored > FORMAT:
            raise BadConfiguration(
                f"{key} has format {stored}, this version knows {FORMAT}: upgrade online-svm"
            )
        # Optional fields that only the scripts use.
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
            kinds=read(KINDS, parse_kinds, b"[]"),
            duplicates=read(DUPLICATES, count, b"0"),
            memory=read(MEMORY, parse_memory, b"{}"),
        )


def initial_fields(pinned: PinnedConfig) -> list[bytes | str | int]:
    """Return names and values of the fields of a new feed; fence.lua adds epoch and writer."""
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
    n, chained = read("n", count), read("digest", digest)
    if n > seq:
        raise read.damaged(f"field 'n' is {n}, more than the {seq} entries of 'seq'")
    return Position(cursor, seq, n, chained)


def _pointer(value: bytes) -> Pointer | None:
    return Pointer.parse(value) if value else None


HEAD_BYTES = 1024  # bytes of a rejected entry that `dlq` keeps


@dataclass(frozen=True, slots=True)
class RejectedEntry:
    """A dead letter: a rejected entry as `dlq` keeps it."""

    id: bytes
    code: str
    about: str  # case and parameters as JSON
    size: int  # of the whole entry in bytes
    head: bytes  # its first `HEAD_BYTES`

    @property
    def fields(self) -> list[bytes]:
        """Flat fields of its entry in `dlq`."""
        why = (b"code", self.code.encode(), b"about", self.about.encode())
        return [*why, b"size", b"%d" % self.size, b"head", self.head]


@dataclass(frozen=True, slots=True)
class SnapshotMove:
    """How a commit with a new snapshot moves the pointers."""

    newest: Pointer
    previous: Pointer | None
    dropped: tuple[str, ...] = ()  # keys of snapshots to delete
    trim: bytes = b""  # trim input before this ID; empty trims nothing
    marks: tuple[Mark, ...] = ()  # new marks of the input


@dataclass(frozen=True, slots=True)
class Commit:
    """One batch to write."""

    epoch: int  # of the writer
    before: Position
    after: Position
    ids: Sequence[bytes] = ()  # of the input entries, and of their answers
    out: Sequence[bytes] = ()  # payloads of the answers
    met: Sequence[tuple[bytes, bytes]] = ()  # ID and payload of each report
    dlq: Sequence[RejectedEntry] = ()
    move: SnapshotMove | None = None
    fields: Mapping[str, bytes] = field(default_factory=dict)  # further fields of `st` to set
    alarms: Sequence[tuple[bytes, bytes]] = ()  # ID and payload of each entry of `alarms`
    answered_ids: Mapping[str, bytes] = field(default_factory=dict)  # changes of the hash `ids`


_MAX_PARTS = 1 << 16


@dataclass(frozen=True, slots=True)
class Publication:
    """A published state: its position, and where its bytes are stored."""

    n: int  # learned examples
    seq: int  # answered input entries
    cursor: bytes  # ID of the last answered entry
    sha256: str  # of its bytes
    size: int  # number of bytes
    parts: int  # number of keys
    config_hash: str = ""  # of the feed; publish.lua adds it
    at: int = 0  # Unix time in milliseconds, by the clock of Redis; publish.lua adds it

    @classmethod
    def of(cls, position: Position, data: bytes, part_bytes: int) -> Self:
        """Return the publication of a state, in parts of up to `part_bytes`."""
        parts = max(1, -(-len(data) // part_bytes))
        name = sha256(data).hexdigest()
        return cls(position.n, position.seq, position.cursor, name, len(data), parts)

    @property
    def name(self) -> str:
        """Its n and the first digits of its hash, as answers name it."""
        return f"{self.n}-{self.sha256[:8]}"

    def keys(self, names: FeedKeys) -> list[str]:
        """Return the keys of its parts, in order."""
        return names.published_parts(self.n, self.sha256, self.parts)

    def fields(self) -> list[bytes | str | int]:
        """Return names and values of the fields that a worker writes."""
        return [
            "n", self.n, "seq", self.seq, "cursor", self.cursor, "sha256", self.sha256,
            "size", self.size, "parts", self.parts,
        ]  # fmt: skip

    @staticmethod
    def shown(fields: Mapping[bytes, bytes]) -> str:
        """Return the name according to unchecked fields, for messages."""
        n, sha = (
            fields.get(name, b"?")[:20].decode(errors="replace") for name in (b"n", b"sha256")
        )
        return f"{n}-{sha[:8]}"

    @classmethod
    def parse(cls, fields: Mapping[bytes, bytes], key: str) -> Self:
        """Parse the fields of the hash. Raises InvalidPublication."""
        try:
            parsed = cls(
                count(fields[b"n"]), count(fields[b"seq"]), entry_id(fields[b"cursor"]),
                digest(fields[b"sha256"]).hex(), count(fields[b"size"]), count(fields[b"parts"]),
                digest(fields[b"config_hash"]).hex(), count(fields[b"at"]),
            )  # fmt: skip
        except (KeyError, ValueError) as error:
            raise InvalidPublication(f"{key} is damaged: {error}") from error
        if not 1 <= parsed.parts <= min(_MAX_PARTS, max(1, parsed.size)) or parsed.n > parsed.seq:
            raise InvalidPublication(f"{key} is damaged: its numbers do not fit one another")
        return parsed


class StoredFit(NamedTuple):
    """The trees of a task; equal tasks have equal trees.

    Examples
    --------
    >>> fit = StoredFit("long", b"hash of the task", b"trees")
    >>> fields = dict(zip(fit.fields()[::2], fit.fields()[1::2]))
    >>> StoredFit.parse("long", fields) == fit
    True
    >>> StoredFit.parse("long", fields | {b"trees": b"other"}) is None
    True
    """

    kind: str  # name of the kind of forest
    task: bytes  # SHA-256 of the task
    trees: bytes  # result of the task

    def fields(self) -> list[bytes]:
        """Return names and values of its entry."""
        return [b"task", self.task, b"sum", self._sum, b"trees", self.trees]

    @classmethod
    def parse(cls, kind: str, fields: Mapping[bytes, Any]) -> Self | None:
        """Return the fit of an entry; None if it is damaged."""
        found = cls(kind, fields.get(b"task", b""), fields.get(b"trees", b""))
        return found if fields.get(b"sum") == found._sum else None

    @property
    def _sum(self) -> bytes:
        return sha256(self.task + self.trees).digest()
