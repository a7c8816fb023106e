"""Scorers of a feed: the state that they answer with, and the requests that wait."""

from dataclasses import dataclass

from workers.broker.feed_reader import FeedReader
from workers.feed.keys import SCORERS
from workers.feed.publication import Publication
from workers.reading.consumers import named_fields
from workers.reading.permitted import permitted


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
    groups = named_fields(permitted(reader, "XINFO", "GROUPS", requests)) if asked else []
    group = next((found for found in groups if found[b"name"] == SCORERS.encode()), {})
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
