"""The entries of a stream after an ID, counted by reading them: their number and their bytes."""

from math import inf
from typing import NamedTuple

from workers.broker.feed_reader import PAGE, FeedReader

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
