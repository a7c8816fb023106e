"""Who holds a feed."""

from workers.broker.feed_reader import FeedReader
from workers.broker.lease import Holder
from workers.errors import BadConfiguration


class FeedInUse(BadConfiguration):
    """A live worker holds the feed."""


def check_not_in_use(store: FeedReader, force: bool | None = None) -> None:
    """Raise FeedInUse if a live worker holds the feed.

    Parameters
    ----------
    store : FeedReader
    force : bool, optional
        Do not. None where nothing can be forced.
    """
    name = holder(store)
    if name is not None and not force:
        way = "" if force is None else ", or --force"
        raise FeedInUse(
            f"feed {store.keys.feed!r} is held by {name!r}: stop that worker first{way}"
        )


def holder(store: FeedReader) -> str | None:
    """Return the holder of the lease, unless its process is known to be gone."""
    held = store.call("GET", store.keys.lease)
    if held is None:
        return None
    found = Holder.parse(held)
    if found is None:
        return repr(held[:80])
    return None if found.is_dead() else found.name
