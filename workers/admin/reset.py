"""Reset a feed: delete its answers and its state."""

from workers.broker.store import Store
from workers.feed.keys import GROUP
from workers.reading.registry import check_not_in_use

RESTART_ALLOWED_SECONDS = 7 * 24 * 3600
"""Seconds in which a process that knew the feed may restart it; later it asks for a reset."""


def reset(store: Store, with_input: bool, force: bool = False) -> int:
    """Delete all answers and all state of a feed at once; return the number of deleted keys.

    Input that is not deleted is answered again from its start. A worker that still runs notices,
    writes nothing more, and exits. Raises FeedInUse if a live worker holds the feed, unless
    `force`.
    """
    check_not_in_use(store, force)
    keys = store.keys
    dropped = [keys.state, *keys.outputs, keys.events, keys.raised, keys.lease]
    dropped += [keys.erased, keys.wanted]
    dropped += store.snapshot_keys()
    dropped += [keys.published, *store.published_keys()]
    if with_input:
        dropped += [keys.input, keys.requests]
    else:
        # The consumer group marks the cursor, which is gone; the next worker creates it again.
        if store.length(keys.input):
            store.group(keys.input, GROUP).destroy()
    gone = store.delete(*dropped)
    # While a slot moves, a scan sees the keys of one of its two nodes alone.
    while left := [*store.snapshot_keys(), *store.published_keys()]:
        gone += store.delete(*left)
    store.put_value(keys.restart_mark, "1", RESTART_ALLOWED_SECONDS)
    if not store.types():
        store.unregister()
    return gone
