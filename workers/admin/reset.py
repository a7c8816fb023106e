"""Reset a feed: delete its answers and its state."""

from workers.broker.store import Store
from workers.feed.keys import GROUP
from workers.reading.registry import check_not_in_use

RESTART_ALLOWED_SECONDS = 7 * 24 * 3600
"""Time in which a process that knew the feed may start it again; later it requires a reset."""


def reset(store: Store, with_input: bool, force: bool = False) -> int:
    """Delete all answers and all state of a feed at once; return the number of deleted keys.

    Kept input is then answered again from its start. A worker that still runs notices, writes
    nothing more, and exits. Raises FeedInUse if a live worker holds the feed, unless `force`.
    """
    check_not_in_use(store, force)
    keys = store.keys
    to_delete = [keys.state, *keys.outputs, keys.events, keys.raised, keys.lease]
    to_delete += [keys.erased, keys.wanted, keys.answered_ids]
    to_delete += store.snapshot_keys()
    to_delete += [keys.published, *store.published_keys()]
    if with_input:
        to_delete += [keys.input, keys.table]
    elif store.length(keys.input):
        # The consumer group holds the old cursor; the next worker creates the group again.
        store.group(keys.input, GROUP).destroy()
    count = store.delete(*to_delete)
    # While a slot of a cluster migrates, a scan sees only the keys on one of its two nodes.
    while left := [*store.snapshot_keys(), *store.published_keys()]:
        count += store.delete(*left)
    store.put_value(keys.restart_mark, "1", RESTART_ALLOWED_SECONDS)
    if not store.types():
        store.unregister()
    return count
