"""Who reads the answers of a feed, and how far they are: archives and other consumer groups."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from workers.broker.feed_reader import FeedReader
from workers.reading.permitted import permitted


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """A consumer group of `out`.

    Attributes
    ----------
    name : str
        `archive` by default, if `online-svm export --to` reads.
    upto : str
        ID of the last entry that it was given; what an archive has up to there is on disk.
    pending : int
        Entries that it was given and did not acknowledge.
    behind : int
        Entries after that.
    behind_is_at_least : bool
        Whether there may be more: counting stopped.
    """

    name: str
    upto: str
    pending: int
    behind: int
    behind_is_at_least: bool


def consumer_groups(
    reader: FeedReader, count: Callable[[str, bytes], tuple[int, bool]]
) -> list[ConsumerGroup]:
    """Return the consumer groups of `out`; none where this user may not ask.

    Parameters
    ----------
    reader : FeedReader
    count : callable
        Takes a stream and an ID; returns how many entries follow, and whether there may be more.
    """
    out = reader.keys.out
    if reader.call("TYPE", out) == b"none":
        return []
    found = []
    for fields in named_fields(permitted(reader, "XINFO", "GROUPS", out)):
        upto, lag = fields[b"last-delivered-id"], fields.get(b"lag")
        behind, is_at_least = count(out, upto) if lag is None else (int(lag), False)
        name = fields[b"name"].decode(errors="backslashreplace")
        pending = int(fields[b"pending"])
        found.append(ConsumerGroup(name, upto.decode(), pending, behind, is_at_least))
    return found


def named_fields(rows: Sequence[Sequence[Any]] | None) -> list[dict[bytes, Any]]:
    """Return the rows of a reply to XINFO, each with its fields by name."""
    return [dict(zip(flat[::2], flat[1::2], strict=True)) for flat in rows or ()]
