"""The hash `st` as types: position, snapshot pointers, agreement."""

from dataclasses import dataclass, field
from typing import Self

from workers.errors import BadConfiguration
from workers.feed.keys import FeedKeys
from workers.feed.output_retention import KeptBytes
from workers.feed.position import Position
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

FORMAT = 1
"""Version of everything this program stores in Redis."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """The key of a snapshot, its hash, and the cursor to replay from.

    Attributes
    ----------
    n : int
    sha256 : str
    cursor : bytes
    parts : int
        Number of keys it is stored under; Redis bounds the size of a value.

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
    parts: int = 1

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
        """Return the pointer that `encode` wrote.

        Raises
        ------
        ValueError
            For any other text.
        """
        fields = value.split(b":")
        parts = count(fields[3]) if len(fields) == 4 else 1
        if len(fields) not in (3, 4) or (len(fields) == 4 and parts < 2):
            raise ValueError("not number:SHA-256:ID, nor that with a number of parts")
        return cls(count(fields[0]), digest(fields[1]).hex(), entry_id(fields[2]), parts)


@dataclass(frozen=True, slots=True)
class Agreement:
    """What must not change while a feed exists.

    Attributes
    ----------
    config : str
        The predictor's configuration as canonical JSON.
    config_hash : str
        Its SHA-256.
    environment : str
        Versions of the libraries that can change a byte, as canonical JSON.
    """

    config: str
    config_hash: str
    environment: str


@dataclass(frozen=True, slots=True)
class FeedState:
    """The hash `st` of one feed.

    Attributes
    ----------
    epoch : int
        Grows by one with each writer. Only the writer with this epoch may commit.
    writer : str
        Name of the last writer, shown to people.
    position : Position
        What is committed.
    snapshot, previous : Pointer or None
        The newest and the older kept snapshot. None is the start of the feed; all input since
        then is kept.
    agreement : Agreement
    marks : tuple of Mark
        Points since which all input is kept, the oldest first; empty if none are known.
    kept : KeptBytes
        What was counted of the output streams.
    """

    epoch: int
    writer: str
    position: Position
    snapshot: Pointer | None
    previous: Pointer | None
    agreement: Agreement
    marks: tuple[Mark, ...] = ()
    kept: KeptBytes = field(default_factory=KeptBytes)

    @property
    def snapshots(self) -> tuple[Pointer, ...]:
        """The kept snapshots, the newest first."""
        return tuple(p for p in (self.snapshot, self.previous) if p is not None)

    @classmethod
    def parse(cls, fields: dict[bytes, bytes], key: str) -> Self:
        """Return the state from the fields of the hash.

        Raises
        ------
        StateLost
            If a field is missing or unreadable.
        BadConfiguration
            If a newer version of this program wrote it.
        """
        read = FieldReader(fields, key)
        stored = read("format", count)
        if stored != FORMAT:
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
            agreement=_agreement(read),
            marks=read("marks", parse_marks, b""),
            kept=KeptBytes.read(read),
        )


def initial_fields(agreement: Agreement) -> list[bytes | str | int]:
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
        "config": agreement.config,
        "config_hash": agreement.config_hash,
        "environment": agreement.environment,
    }
    return [part for pair in fields.items() for part in pair]


def _position(read: FieldReader) -> Position:
    cursor, seq = read("cursor", entry_id), read("seq", count)
    n, answered = read("n", count), read("digest", digest)
    if n > seq:
        raise read.damaged(f"field 'n' is {n}, more than the {seq} entries of 'seq'")
    return Position(cursor, seq, n, answered)


def _agreement(read: FieldReader) -> Agreement:
    return Agreement(
        read("config", json_object), read("config_hash", text), read("environment", json_object)
    )


def _pointer(value: bytes) -> Pointer | None:
    return Pointer.parse(value) if value else None
