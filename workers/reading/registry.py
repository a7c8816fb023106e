"""The list of feeds, and the holder of a feed's lease."""

from workers.broker.feed_reader import FeedReader
from workers.broker.leases import Holder
from workers.errors import BadConfiguration, WrongKeyType
from workers.feed.keys import REGISTRY, is_feed_name
from workers.feed.state import FeedState


class NoSuchFeed(BadConfiguration):
    """A feed that has neither input nor state."""


def require(store: FeedReader) -> None:
    """Raise NoSuchFeed if none of the feed's keys exists."""
    if not store.types():
        feed = store.keys.feed
        raise NoSuchFeed(f"no feed {feed!r}: push examples to it, or see online-svm status")


def feed_state(store: FeedReader) -> FeedState:
    """Return the state of a feed; BadConfiguration: it has none."""
    require(store)
    state = store.state()
    if state is None:
        raise no_answers(store.keys.feed)
    return state


def no_answers(feed: str) -> BadConfiguration:
    """Return the error for a feed without a state."""
    return BadConfiguration(f"feed {feed!r} has no answers yet: online-svm worker {feed}")


def names(store: FeedReader) -> list[str]:
    """Return the names of all feeds; see `listed`."""
    return listed(store)[0]


def listed(store: FeedReader) -> tuple[list[str], list[bytes]]:
    """Return the listed feeds, and the listed texts that are no valid names; both sorted.

    Feeds that no worker has started are included. Producers may write to the list, so it may
    contain anything. WrongKeyType: the list is not a set.
    """
    try:
        found = sorted(store.members(REGISTRY))
    except WrongKeyType:
        raise WrongKeyType(
            f"{REGISTRY} is not the set of feeds: something else was written there. Name the feed: "
            f"online-svm status FEED; and delete that key; the next push or worker creates it again"
        ) from None
    feeds = [name.decode() for name in found if is_feed_name(name)]
    return feeds, [name for name in found if not is_feed_name(name)]


class FeedInUse(BadConfiguration):
    """A live worker holds the feed."""


def check_not_in_use(store: FeedReader, force: bool | None = None) -> None:
    """Raise FeedInUse if a live worker holds the feed; None: the command has no `--force`."""
    name = holder(store)
    if name is not None and not force:
        hint = "" if force is None else ", or --force"
        raise FeedInUse(
            f"feed {store.keys.feed!r} is held by {name!r}: stop that worker first{hint}"
        )


def holder(store: FeedReader) -> str | None:
    """Return the holder of the lease; None if its process is known to have ended."""
    held = store.lease_value()
    if held is None:
        return None
    found = Holder.parse(held)
    if found is None:
        return repr(held[:80])
    return None if found.is_dead() else found.name
