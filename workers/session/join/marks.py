"""The points from which the sources of a join are read again, as the state of its feed has them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from workers.errors import StateLost
from workers.feed.state_fields import MAX_COUNT, entry_id


@dataclass(frozen=True, slots=True)
class SourceMark:
    """The point from which a source has to be read again.

    Attributes
    ----------
    cursor : bytes
        Entry ID; everything up to it is finished.
    seq : int
        Place of the next answer after it.
    taken : tuple of int
        Places after it that were taken already.
    """

    cursor: bytes = b"0-0"
    seq: int = 0
    taken: tuple[int, ...] = ()


def encode_joined(marks: Sequence[SourceMark], letters: int) -> bytes:
    """Return the marks of the sources and the count of dead letters as they are stored.

    Examples
    --------
    >>> encode_joined([SourceMark(b"5-0", 3, (4,))], 2)
    b'{"letters":2,"marks":[["5-0",3,[4]]]}'
    """
    stored = [(mark.cursor.decode(), mark.seq, mark.taken) for mark in marks]
    return json.dumps({"letters": letters, "marks": stored}, separators=(",", ":")).encode()


def decode_joined(text: bytes) -> tuple[list[SourceMark], int]:
    """Return what `encode_joined` was given.

    Raises
    ------
    StateLost
        If it is damaged.

    Examples
    --------
    >>> decode_joined(encode_joined([SourceMark(b"5-0", 3, (4,))], 2))
    ([SourceMark(cursor=b'5-0', seq=3, taken=(4,))], 2)
    """
    try:
        stored = json.loads(text)
        marks = [
            SourceMark(
                entry_id(cursor.encode()), _place(seq), tuple(_place(other) for other in taken)
            )
            for cursor, seq, taken in stored["marks"]
        ]
        return marks, _place(stored["letters"])
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise StateLost(
            f"where the combination stands in its sources is damaged ({str(error)[:100]!r}): "
            "restore it from a backup, or reset the feed"
        ) from error


def _place(value: object) -> int:
    """Return a number of entries; anything else, such as 1.5 or true, was not written here."""
    if type(value) is not int or not 0 <= value <= MAX_COUNT:
        raise ValueError(f"not a number from 0 to {MAX_COUNT}")
    return value
