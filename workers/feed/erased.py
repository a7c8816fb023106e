"""Erased entries of a feed: their IDs, but nothing of their contents.

The hash `erased` has a field for each erased entry, named by its ID, with its `seq` and, if known,
the digest after its answer: so the answers before and after it can still be verified. The field
`base` is the position from which the feed was learned again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from workers.errors import StateLost
from workers.feed.position import Digest, Position, parse_id
from workers.feed.state_fields import count, digest, entry_id
from workers.text import counted

_BASE, _UNFINISHED = b"base", b"unfinished"
_UNKNOWN = b"-"
_SHOWN = 5  # IDs in a message


@dataclass(frozen=True, slots=True)
class ErasedEntry:
    """An erased entry."""

    seq: int  # input entries before it
    digest: Digest | None = None  # after its answer, if known


@dataclass(frozen=True, slots=True)
class Base:
    """The position from which a feed was learned again."""

    first: bytes  # ID of the first learned entry
    position: Position  # of the feed, but `n` counts the examples of the new learner


@dataclass(slots=True)
class Erased:
    """The hash `erased` of one feed."""

    entries: dict[bytes, ErasedEntry] = field(default_factory=dict)
    base: Base | None = None
    is_unfinished: bool = False  # whether an erasure was started and not completed

    def between(self, first: bytes, last: bytes) -> list[bytes]:
        """Return the IDs of erased entries in a range, bounds included, in order."""
        begin, end = parse_id(first), parse_id(last)
        return sorted((at for at in self.entries if begin <= parse_id(at) <= end), key=parse_id)

    def fields(self) -> Iterable[tuple[bytes, bytes]]:
        """Yield names and values of the hash."""
        for name, entry in self.entries.items():
            link = _UNKNOWN if entry.digest is None else entry.digest.hex().encode()
            yield name, b"%d %b" % (entry.seq, link)
        if self.base is not None:
            at = self.base.position
            texts = (self.base.first, at.cursor, at.seq, at.n, at.digest.hex().encode())
            yield _BASE, b"%b %b %d %d %b" % texts
        if self.is_unfinished:
            yield _UNFINISHED, b"1"

    @classmethod
    def parse(cls, fields: Mapping[bytes, bytes], key: str) -> Self:
        """Decode the fields of the hash. Raises StateLost if a field is damaged."""
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


class Missing(NamedTuple):
    """Answered entries that the input of a feed no longer has."""

    trimmed: int  # number of trimmed entries, the oldest ones
    erased: tuple[bytes, ...] = ()  # IDs of erased entries, in order

    @classmethod
    def of(cls, record: Erased, cursor: bytes, count: int) -> Self:
        """Return the missing entries, given that `count` entries up to a cursor are missing."""
        erased = tuple(record.between(b"0-0", cursor))
        return cls(max(0, count - len(erased)), erased)

    @property
    def erased_shown(self) -> str:
        """The number of erased entries, and the first of their IDs.

        Examples
        --------
        >>> Missing(0, tuple(b"%d-0" % i for i in range(7))).erased_shown
        '7 erased entries (0-0, 1-0, 2-0, 3-0, 4-0 and 2 more)'
        """
        count, shown = len(self.erased), [at.decode() for at in self.erased[:_SHOWN]]
        more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
        return f"{counted(count, 'erased entry', 'erased entries')} ({', '.join(shown)}{more})"


def _entry(value: bytes) -> ErasedEntry:
    seq, link = value.split(b" ")
    return ErasedEntry(count(seq), None if link == _UNKNOWN else digest(link))


def _base(value: bytes) -> Base:
    first, cursor, seq, n, link = value.split(b" ")
    position = Position(entry_id(cursor), count(seq), count(n), digest(link))
    return Base(entry_id(first), position)
