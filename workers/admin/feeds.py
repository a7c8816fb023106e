"""The status of feeds, their streams as seen from outside, and reset."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from workers.broker.lease import Holder
from workers.broker.store import PAGE, Store
from workers.errors import BadConfiguration, StateLost, WrongKeyType
from workers.feed.keys import FIELD, GROUP, REGISTRY, is_feed_name

COUNTED = 1000
"""Largest number of waiting entries that are counted one by one, which reads them."""


class FeedInUse(BadConfiguration):
    """A live worker holds the feed."""


class NoSuchFeed(BadConfiguration):
    """A feed that has neither input nor state."""


class NoSuchSnapshot(BadConfiguration):
    """A feed that has no snapshot yet."""


def require(store: Store) -> None:
    """Raise NoSuchFeed if none of the feed's keys exists."""
    if not store.types():
        feed = store.keys.feed
        raise NoSuchFeed(f"no feed {feed!r}: push examples to it, or see online-svm status")


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a feed.

    Attributes
    ----------
    feed : str
    seq, n : int
        Input entries answered, examples learned.
    waiting : int
        Input entries not answered yet.
    waiting_is_at_least : bool
        Whether more may wait: counting stopped at `COUNTED`.
    cursor : str
        ID of the last entry answered.
    out, met, dlq : int
        Entries kept in the output streams.
    epoch : int
        Number of writers so far.
    writer, holder : str or None
        The last writer, and the present holder of the lease.
    digest : str
        Digest of all answers so far, in hexadecimal.
    snapshots : list of int
        Learned examples at each kept snapshot, the newest first.
    validity : dict or None
        The newest message of `met`.
    """

    feed: str
    seq: int
    n: int
    waiting: int
    waiting_is_at_least: bool
    cursor: str
    out: int
    met: int
    dlq: int
    epoch: int
    writer: str | None
    holder: str | None
    digest: str
    snapshots: list[int]
    validity: dict[str, Any] | None


def names(store: Store) -> list[str]:
    """Return the names of all feeds; see `listed`."""
    return listed(store)[0]


def listed(store: Store) -> tuple[list[str], list[bytes]]:
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


def status(store: Store) -> Status:
    """Return the status of a feed; this only reads.

    Raises
    ------
    NoSuchFeed
        If the feed does not exist.
    """
    require(store)
    keys, state = store.keys, store.state()
    cursor = b"0-0" if state is None else state.position.cursor
    pointers = () if state is None else (state.snapshot, state.previous)
    waits, is_at_least = waiting(store, cursor)
    return Status(
        feed=keys.feed,
        seq=0 if state is None else state.position.seq,
        n=0 if state is None else state.position.n,
        waiting=waits,
        waiting_is_at_least=is_at_least,
        cursor=cursor.decode(),
        out=store.length(keys.out),
        met=store.length(keys.met),
        dlq=store.length(keys.dlq),
        epoch=0 if state is None else state.epoch,
        writer=None if state is None else state.writer,
        holder=_holder(store),
        digest=bytes(32).hex() if state is None else state.position.digest.hex(),
        snapshots=[pointer.n for pointer in pointers if pointer is not None],
        validity=_newest_report(store),
    )


def waiting(store: Store, cursor: bytes) -> tuple[int, bool]:
    """Return how many input entries follow a cursor, and whether there may be more."""
    stream, count, after = store.keys.input, 0, b""
    for page in store.pages(stream, cursor, count=COUNTED):
        after = after or page[0][0]
        count += len(page)
        if count >= COUNTED:
            break
    if count < COUNTED:
        return count, False
    first = store.call("XRANGE", stream, "-", "+", "COUNT", 1)
    if first and first[0][0] == after:  # none is kept up to the cursor
        return store.length(stream), False
    return count, True


def newest(store: Store, stream: str, count: int) -> list[Any]:
    """Return the last `count` entries of a stream, the oldest first."""
    found: list[Any] = store.call("XREVRANGE", stream, "+", "-", "COUNT", count)
    return found[::-1]


def payload(entry: Sequence[Any]) -> bytes:
    """Return the payload of an entry of `out` or `met`.

    Raises
    ------
    StateLost
        If it has no payload: another program wrote it.
    """
    fields = entry[1]
    if FIELD.encode() not in fields[::2]:
        raise no_answer(entry)
    return bytes(fields[2 * fields[::2].index(FIELD.encode()) + 1])


def answer(entry: Sequence[Any]) -> dict[str, Any]:
    """Return the parsed payload of an entry of `out` or `met`.

    Raises
    ------
    StateLost
        If it is not a JSON object: another program wrote it.
    """
    try:
        found = orjson.loads(payload(entry))
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise no_answer(entry)
    return found


def no_answer(entry: Sequence[Any]) -> StateLost:
    """Return the error for an entry of an output stream that this program did not write."""
    return StateLost(
        f"entry {entry[0].decode()} of an output stream is no answer: another program wrote it; "
        "online-svm verify tells what else differs"
    )


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
    dropped = [keys.state, keys.out, keys.met, keys.dlq, keys.lease, *snapshot_keys(store)]
    if with_input:
        dropped.append(keys.input)
    else:
        # The consumer group marks the cursor, which is gone; the next worker creates it again.
        _drop_group(store)
    gone = int(store.call("DEL", *dropped))
    if not store.types():
        store.call("SREM", REGISTRY, keys.feed)
    return gone


def check_not_in_use(store: Store, force: bool) -> None:
    """Raise FeedInUse if a live worker holds the feed and `force` is not set."""
    holder = _holder(store)
    if holder is not None and not force:
        raise FeedInUse(
            f"feed {store.keys.feed!r} is held by {holder!r}: stop that worker first, or --force"
        )


def _holder(store: Store) -> str | None:
    """Return the holder of the lease, unless its process is known to be gone."""
    held = store.call("GET", store.keys.lease)
    if held is None:
        return None
    holder = Holder.parse(held)
    if holder is None:
        return repr(held[:80])
    return None if holder.is_dead() else holder.name


def snapshot_keys(store: Store) -> Iterator[str]:
    """Yield the keys of all snapshots of the feed, referenced or not (a scan)."""
    cursor = b"0"
    while True:
        cursor, found = store.call(
            "SCAN", cursor, "MATCH", store.keys.snapshots, "COUNT", 10 * PAGE
        )
        yield from (key.decode() for key in found)
        if cursor == b"0":
            return


def _drop_group(store: Store) -> None:
    if store.length(store.keys.input):
        store.call("XGROUP", "DESTROY", store.keys.input, GROUP)


def _newest_report(store: Store) -> dict[str, Any] | None:
    found = newest(store, store.keys.met, 1)
    return orjson.loads(payload(found[0])) if found else None
