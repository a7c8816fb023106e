"""Erased entries of a feed: their IDs, and nothing of what they held.

The hash `erased` has a field for each erased entry, its ID: with the `seq` it had, and the digest
of the chain after its answer where that is known. With this the answers before and after can still
be checked. The field `base` says from where the feed was learned again without them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from workers.errors import StateLost
from workers.feed.digest import Digest
from workers.feed.position import Position, parse_id
from workers.feed.state_fields import count, digest, entry_id

_BASE, _UNFINISHED = b"base", b"unfinished"
_UNKNOWN = b"-"


@dataclass(frozen=True, slots=True)
class ErasedEntry:
    """An entry that was erased.

    Attributes
    ----------
    seq : int
        Input entries before it.
    link : bytes or None
        Digest of the chain after its answer; None where it was no longer known.
    """

    seq: int
    link: Digest | None = None


@dataclass(frozen=True, slots=True)
class Base:
    """Where a feed was learned again.

    Attributes
    ----------
    first : bytes
        The first entry of the input that was learned.
    position : Position
        Of the feed, which did not move: but `n` is that of the new learner.
    """

    first: bytes
    position: Position


@dataclass(slots=True)
class Erased:
    """The hash `erased` of one feed.

    Attributes
    ----------
    entries : dict of bytes to ErasedEntry
    base : Base or None
    is_unfinished : bool
        Whether an erasure was begun that has not ended.

    Examples
    --------
    >>> made = Erased({b"5-0": ErasedEntry(3)}, Base(b"2-0", Position(b"9-0", 7, 4)), True)
    >>> Erased.parse(dict(made.fields()), "key") == made
    True
    """

    entries: dict[bytes, ErasedEntry] = field(default_factory=dict)
    base: Base | None = None
    is_unfinished: bool = False

    def after(self, first: bytes, upto: bytes) -> list[bytes]:
        """Return the IDs of erased entries from one entry to another, both included, in order."""
        begin, end = parse_id(first), parse_id(upto)
        return sorted((at for at in self.entries if begin <= parse_id(at) <= end), key=parse_id)

    def fields(self) -> Iterable[tuple[bytes, bytes]]:
        """Yield names and values of the hash."""
        for name, entry in self.entries.items():
            link = _UNKNOWN if entry.link is None else entry.link.hex().encode()
            yield name, b"%d %b" % (entry.seq, link)
        if self.base is not None:
            at = self.base.position
            texts = (self.base.first, at.cursor, at.seq, at.n, at.digest.hex().encode())
            yield _BASE, b"%b %b %d %d %b" % texts
        if self.is_unfinished:
            yield _UNFINISHED, b"1"

    @classmethod
    def parse(cls, fields: Mapping[bytes, bytes], key: str) -> Self:
        """Return what `fields` wrote.

        Raises
        ------
        StateLost
            If a field is damaged.
        """
        found = cls(is_unfinished=_UNFINISHED in fields)
        for name, value in fields.items():
            try:
                if name == _BASE:
                    found.base = _base(value)
                elif name != _UNFINISHED:
                    found.entries[entry_id(name)] = _entry(value)
            except (ValueError, IndexError) as error:
                raise StateLost(f"{key} is damaged: field {name[:60]!r}, {error}") from error
        return found


def _entry(value: bytes) -> ErasedEntry:
    seq, link = value.split(b" ")
    return ErasedEntry(count(seq), None if link == _UNKNOWN else digest(link))


def _base(value: bytes) -> Base:
    first, cursor, seq, n, link = value.split(b" ")
    position = Position(entry_id(cursor), count(seq), count(n), digest(link))
    return Base(entry_id(first), position)
