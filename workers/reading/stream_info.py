"""A stream as XINFO tells of it, and the entries after an ID, counted by reading them."""

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple, Self

from workers.broker.batch_size import Entry
from workers.broker.feed_reader import PAGE, FeedReader, pairs_of


class StreamInfo(NamedTuple):
    """What Redis says of a stream.

    Attributes
    ----------
    length : int
        Entries that it holds.
    added : int or None
        Entries that it ever got; None on a Redis before 7, which does not count them.
    first, last : Entry or None
        None where the stream holds no entry.
    last_id : bytes
        The largest ID so far, whether or not its entry is still there.
    """

    length: int
    added: int | None
    first: Entry | None
    last: Entry | None
    last_id: bytes

    @property
    def gone(self) -> int:
        """Entries that were trimmed or deleted; 0 on a Redis before 7."""
        return 0 if self.added is None else self.added - self.length

    @classmethod
    def parse(cls, reply: Sequence[Any]) -> Self:
        """Return the fields of a reply.

        Examples
        --------
        >>> reply = [b"length", 2, b"last-generated-id", b"9-0", b"entries-added", 9]
        >>> found = StreamInfo.parse([*reply, b"first-entry", None, b"last-entry", None])
        >>> found.added, found.gone
        (9, 7)
        """
        fields = pairs_of(reply)
        added = fields.get(b"entries-added")
        return cls(
            int(fields[b"length"]),
            None if added is None else int(added),
            fields[b"first-entry"],
            fields[b"last-entry"],
            fields[b"last-generated-id"],
        )


COUNTED = 1000
"""Entries that are read to count what waits; push reads up to its own mark."""


class Backlog(NamedTuple):
    """The entries of a stream after an ID.

    Attributes
    ----------
    entries : int
    is_at_least : bool
        Whether there may be more: counting stopped.
    size : int
        Bytes of their field names and values.
    """

    entries: int
    is_at_least: bool
    size: int


def backlog(
    reader: FeedReader, stream: str, after: bytes, most: float = COUNTED, most_bytes: float = inf
) -> Backlog:
    """Return what follows an ID in a stream; counting stops at so many entries, or bytes."""
    entries = size = 0
    for page in reader.pages(stream, after, count=int(min(most, PAGE))):
        for _, fields in page:
            entries += 1
            size += sum(map(len, fields))
            if entries >= most or size >= most_bytes:
                return Backlog(entries, True, size)
    return Backlog(entries, False, size)
