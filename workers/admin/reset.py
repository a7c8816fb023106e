"""A feed begun anew."""

from workers.broker.store import Store
from workers.feed.keys import GROUP, REGISTRY
from workers.reading.registry import check_not_in_use

BEGINS_ANEW = 7 * 24 * 3600
"""Seconds in which a process that knew the feed may begin it anew; later it asks for a reset."""


def reset(store: Store, with_input: bool, force: bool = False) -> int:
    """Delete all answers and all state of a feed at once; return the number of deleted keys.

    A worker that still runs notices, writes nothing more, and exits.

    Parameters
    ----------
    store : Store
    with_input : bool
        Also delete the input. Otherwise it is answered again from its start.
    force : bool
        Even if a live worker holds the feed.

    Raises
    ------
    FeedInUse
        If a live worker holds the feed and `force` is not set.
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
        _drop_group(store)
    gone = int(store.call("DEL", *dropped))
    # While a slot moves, a scan sees the keys of one of its two nodes alone.
    while left := [*store.snapshot_keys(), *store.published_keys()]:
        gone += int(store.call("DEL", *left))
    store.call("SET", keys.anew, "1", "EX", BEGINS_ANEW)
    if not store.types():
        store.call("SREM", REGISTRY, keys.feed)
    return gone


def _drop_group(store: Store) -> None:
    if store.length(store.keys.input):
        store.call("XGROUP", "DESTROY", store.keys.input, GROUP)
