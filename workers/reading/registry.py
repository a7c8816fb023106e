"""The list of feeds."""

from workers.broker.feed_reader import FeedReader
from workers.errors import BadConfiguration, WrongKeyType
from workers.feed.keys import REGISTRY, is_feed_name


class NoSuchFeed(BadConfiguration):
    """A feed that has neither input nor state."""


def require(store: FeedReader) -> None:
    """Raise NoSuchFeed if none of the feed's keys exists."""
    if not store.types():
        feed = store.keys.feed
        raise NoSuchFeed(f"no feed {feed!r}: push examples to it, or see online-svm status")


def names(store: FeedReader) -> list[str]:
    """Return the names of all feeds; see `listed`."""
    return listed(store)[0]


def listed(store: FeedReader) -> tuple[list[str], list[bytes]]:
    """Return the names of all listed feeds, and the listed texts that are not valid names.

    Feeds that no worker has started are included. Producers may write the list, so it may contain
    anything. Both results are sorted.

    Raises
    ------
    WrongKeyType
        If the list is not a set.
    """
    try:
        found = sorted(store.call("SMEMBERS", REGISTRY))
    except WrongKeyType:
        raise WrongKeyType(
            f"{REGISTRY} is not the set of feeds: something else was written there. Name the feed: "
            f"online-svm status FEED; and delete that key, which each push and worker makes anew"
        ) from None
    feeds = [name.decode() for name in found if is_feed_name(name)]
    return feeds, [name for name in found if not is_feed_name(name)]
