"""Consumer groups of a feed: archives and others of its answers, and scorers of its requests."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workers.broker.feed_reader import FeedReader, pairs_of
from workers.broker.pipeline import Argument
from workers.errors import AccessDenied
from workers.feed.keys import SCORERS
from workers.feed.publication import Publication


def permitted(reader: FeedReader, *command: Argument) -> Any:
    """Return the reply of the feed's server; None where Redis does not let this user ask it."""
    try:
        return reader.call_server(*command)
    except AccessDenied:
        return None


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
    for fields in map(pairs_of, permitted(reader, "XINFO", "GROUPS", out) or ()):
        upto, lag = fields[b"last-delivered-id"], fields.get(b"lag")
        behind, is_at_least = count(out, upto) if lag is None else (int(lag), False)
        name = fields[b"name"].decode(errors="backslashreplace")
        pending = int(fields[b"pending"])
        found.append(ConsumerGroup(name, upto.decode(), pending, behind, is_at_least))
    return found


@dataclass(frozen=True, slots=True)
class ScorerStatus:
    """The newest published state of a feed, and its requests.

    Attributes
    ----------
    n, size : int or None
        Examples learned in the newest published state, and its bytes; None without one.
    behind : int or None
        Examples that the feed has learned since.
    age : float or None
        Seconds since it was published, by the clock of Redis; None where this user may not ask.
    scorers : int or None
        Of the consumer group, those that were killed less than an hour ago included; None where
        this user may not ask.
    waiting, pending : int
        Requests without an answer, and those of them that a scorer has taken.
    """

    n: int | None
    size: int | None
    behind: int | None
    age: float | None
    scorers: int | None
    waiting: int
    pending: int | None


def scorer_status(reader: FeedReader, n: int, published: Publication | None) -> ScorerStatus | None:
    """Return how scorers of a feed stand; None if it has published nothing and nobody asks.

    Parameters
    ----------
    reader : FeedReader
    n : int
        Examples that the feed has learned.
    published : Publication or None
        The newest state.
    """
    requests = reader.keys.requests
    asked = permitted(reader, "TYPE", requests) == b"stream"
    if published is None and not asked:
        return None
    groups = permitted(reader, "XINFO", "GROUPS", requests) if asked else None
    named = (found for found in map(pairs_of, groups or ()) if found[b"name"] == SCORERS.encode())
    group = next(named, {})
    return ScorerStatus(
        n=None if published is None else published.n,
        size=None if published is None else published.size,
        behind=None if published is None else n - published.n,
        age=None if published is None else _age(reader, published),
        scorers=group.get(b"consumers"),
        waiting=reader.length(requests) if asked else 0,
        pending=group.get(b"pending"),
    )


def _age(reader: FeedReader, published: Publication) -> float | None:
    now = permitted(reader, "TIME")
    return None if now is None else max(0.0, (int(now[0]) * 1000 - published.at) / 1000)
