"""Marks: a number that grows along a stream, and the entry at which it was reached."""

from collections.abc import Iterable
from dataclasses import dataclass

from workers.feed.state_fields import count, entry_id


@dataclass(frozen=True, slots=True)
class Mark:
    """A point of a stream: the entry after which a number is `n`, such as of learned examples.

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


def parse_marks(value: bytes) -> tuple[Mark, ...]:
    """Return the marks that `encode_marks` wrote.

    Raises
    ------
    ValueError
        For any other text.
    """
    pairs = [part.split(b":") for part in value.split()]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("not pairs of number:ID")
    return tuple(Mark(count(n), entry_id(cursor)) for n, cursor in pairs)
