"""What the hash `st` holds, as types: the position, the snapshot pointers and what was agreed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from workers.errors import BadConfiguration, StateLost
from workers.keys import FeedKeys
from workers.position import Position

FORMAT = 1
"""Version of everything this program stores in Redis."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A point of the feed: after `n` learned examples its cursor was there.

    Examples
    --------
    >>> encode_marks([Mark(40, b"50-0"), Mark(80, b"90-1")])
    b'40:50-0 80:90-1'
    >>> parse_marks(b"40:50-0 80:90-1")
    (Mark(n=40, cursor=b'50-0'), Mark(n=80, cursor=b'90-1'))
    """

    n: int = 0
    cursor: bytes = b"0-0"


def encode_marks(marks: Iterable[Mark]) -> bytes:
    """Return the text stored in `st`."""
    return b" ".join(b"%d:%b" % (mark.n, mark.cursor) for mark in marks)


def parse_marks(text: bytes) -> tuple[Mark, ...]:
    """Return the marks that `encode_marks` wrote."""
    pairs = (part.split(b":") for part in text.split())
    return tuple(Mark(int(n), cursor) for n, cursor in pairs)


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where a snapshot is, how it must hash, and from where to replay after it.

    Attributes
    ----------
    n : int
    sha256 : str
    cursor : bytes
    parts : int
        Keys that it is stored under: Redis takes no value of any size.

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
        """Where the snapshot stands."""
        return Mark(self.n, self.cursor)

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Return the pointer that `encode` wrote."""
        n, sha256, cursor, *parts = text.split(b":")
        if len(parts) > 1 or (parts and int(parts[0]) < 2):
            raise ValueError(f"no pointer to a snapshot: {text[:120]!r}")
        return cls(int(n), sha256.decode(), cursor, int(parts[0]) if parts else 1)


@dataclass(frozen=True, slots=True)
class Agreement:
    """What must not change while a feed lives.

    Attributes
    ----------
    config : str
        The predictor's configuration as canonical JSON.
    config_hash : str
        Its SHA-256.
    environment : str
        Library versions and processor family, as canonical JSON.
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
        Grows by one with each writer; only the writer with this epoch may commit.
    writer : str
        Name of the last writer, for people.
    position : Position
        What is committed.
    snapshot, previous : Pointer or None
        The newest and the older kept snapshot; None stands for the start of the feed, from where
        all input is still there.
    agreement : Agreement
    marks : tuple of Mark
        Points from which all input is still there, the oldest first; empty where none are known.
    """

    epoch: int
    writer: str
    position: Position
    snapshot: Pointer | None
    previous: Pointer | None
    agreement: Agreement
    marks: tuple[Mark, ...] = ()

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
        try:
            stored = int(fields[b"format"])
            if stored != FORMAT:
                raise BadConfiguration(
                    f"{key} has format {stored}, this version knows {FORMAT}: upgrade online-svm"
                )
            return cls(
                epoch=int(fields[b"epoch"]),
                writer=fields.get(b"writer", b"").decode(),
                position=_position(fields),
                snapshot=_pointer(fields[b"snapshot"]),
                previous=_pointer(fields[b"previous"]),
                agreement=Agreement(
                    fields[b"config"].decode(),
                    fields[b"config_hash"].decode(),
                    fields[b"environment"].decode(),
                ),
                marks=parse_marks(fields.get(b"marks", b"")),
            )
        except (KeyError, ValueError) as error:
            raise StateLost(
                f"{key} is damaged ({error!r}): restore it from a backup, or reset the feed"
            ) from error


def initial_fields(agreement: Agreement) -> list[bytes | str | int]:
    """Return names and values of the hash of a new feed, but for epoch and writer."""
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


def _position(fields: dict[bytes, bytes]) -> Position:
    digest = bytes.fromhex(fields[b"digest"].decode())
    if len(digest) != 32:
        raise ValueError("digest is not of 32 bytes")
    return Position(fields[b"cursor"], int(fields[b"seq"]), int(fields[b"n"]), digest)


def _pointer(text: bytes) -> Pointer | None:
    return Pointer.parse(text) if text else None
