"""The feed that a combination writes, and where it stores how far it is in its sources."""

import json
from collections.abc import Sequence

from workers.broker.store import Store
from workers.combine.join import Mark
from workers.errors import StateLost
from workers.feed.state_fields import MAX_COUNT, entry_id


class TargetStore(Store):
    """Keys of the written feed; see `Store`."""

    reads_input = False

    def joined(self) -> tuple[bytes | None, bytes | None]:
        """Return what the last commit stored: where the sources stand, and the combiner."""
        joined, combiner = self.call("HMGET", self.keys.state, "joined", "combiner")
        return joined, combiner


def encode_joined(marks: Sequence[Mark], letters: int) -> bytes:
    """Return the marks of the sources and the count of dead letters as they are stored.

    Examples
    --------
    >>> encode_joined([Mark(b"5-0", 3, (4,))], 2)
    b'{"letters":2,"marks":[["5-0",3,[4]]]}'
    """
    stored = [(mark.cursor.decode(), mark.seq, mark.taken) for mark in marks]
    return json.dumps({"letters": letters, "marks": stored}, separators=(",", ":")).encode()


def decode_joined(text: bytes) -> tuple[list[Mark], int]:
    """Return what `encode_joined` was given.

    Raises
    ------
    StateLost
        If it is damaged.

    Examples
    --------
    >>> decode_joined(encode_joined([Mark(b"5-0", 3, (4,))], 2))
    ([Mark(cursor=b'5-0', seq=3, taken=(4,))], 2)
    """
    try:
        stored = json.loads(text)
        marks = [
            Mark(entry_id(cursor.encode()), _place(seq), tuple(_place(other) for other in taken))
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
