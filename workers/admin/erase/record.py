"""The hash `erased` in Redis."""

from workers.broker.feed_reader import FeedReader, pairs_of
from workers.feed.erased import Erased


def erased_of(store: FeedReader) -> Erased:
    """Return what was erased from a feed.

    Raises
    ------
    StateLost
        If the list is damaged.
    """
    key = store.keys.erased
    return Erased.parse(pairs_of(store.call("HGETALL", key)), key)


def write(store: FeedReader, record: Erased) -> None:
    """Write what was erased, or is about to be."""
    fields = [part for pair in record.fields() for part in pair]
    store.call("HSET", store.keys.erased, *fields)


def finish(store: FeedReader) -> None:
    """Note that nothing is left to erase."""
    store.call("HDEL", store.keys.erased, "unfinished")
