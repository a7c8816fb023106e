"""A feed as a whole, from outside: how it stands, and beginning it anew."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from workers.broker.lease import Holder
from workers.broker.store import PAGE, Store
from workers.errors import BadConfiguration, StateLost, WrongKeyType
from workers.feed.keys import FIELD, GROUP, REGISTRY, is_feed_name

COUNTED = 1000
"""Waiting entries are counted one by one up to here: counting them reads them."""


class FeedInUse(BadConfiguration):
    """A live worker holds the feed."""


class NoSuchFeed(BadConfiguration):
    """A feed that has neither input nor state."""


class NoSuchSnapshot(BadConfiguration):
    """A feed that has no snapshot yet."""


def require(store: Store) -> None:
    """Raise NoSuchFeed if nothing is stored under the feed's keys."""
    if not store.types():
        feed = store.keys.feed
        raise NoSuchFeed(f"no feed {feed!r}: push examples to it, or see online-svm status")


@dataclass(frozen=True, slots=True)
class Status:
    """How a feed stands.

    Attributes
    ----------
    feed : str
    seq, n : int
        Input entries answered, examples learned.
    waiting : int
        Input entries not answered yet.
    waiting_is_at_least : bool
        Whether there may be more of them: `COUNTED` were counted, behind others that are kept.
    cursor : str
        ID of the last entry answered.
    out, met, dlq : int
        Entries kept in the output streams.
    epoch : int
        Writers so far; 0 if the feed never had one.
    writer, holder : str or None
        The last writer, and who holds the lease now.
    digest : str
        Of every answer so far, as hexadecimal digits.
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
    """Return the names of all feeds, also of those that no worker has begun, and what is no name.

    Producers may write the list of feeds, so it may hold anything. Both are sorted.

    Raises
    ------
    WrongKeyType
        If the list is no set.
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
    """Return how a feed stands; this only reads.

    Raises
    ------
    NoSuchFeed
        If nothing of it is there.
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
    """Return how many entries of the input lie after a cursor, and whether they may be more."""
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
        If it has none: another program wrote it.
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
        If it is no JSON object: another program wrote it.
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
    """Forget every answer and all state of a feed, at once; return how many keys went.

    A worker that still runs notices, writes nothing more, and exits.

    Parameters
    ----------
    store : Store
    with_input : bool
        Also delete the input; else it is answered again from its start.
    force : bool
        Even if a live worker holds the feed.

    Raises
    ------
    FeedInUse
        If one does, and `force` is not set.
    """
    refuse_in_use(store, force)
    keys = store.keys
    going = [keys.state, keys.out, keys.met, keys.dlq, keys.lease, *snapshot_keys(store)]
    if with_input:
        going.append(keys.input)
    else:
        # The bookmark points at answers that are gone; the next worker makes it again.
        _drop_bookmark(store)
    gone = int(store.call("DEL", *going))
    if not store.types():
        store.call("SREM", REGISTRY, keys.feed)
    return gone


def refuse_in_use(store: Store, force: bool) -> None:
    """Raise FeedInUse if a live worker holds the feed, unless that does not matter."""
    holder = _holder(store)
    if holder is not None and not force:
        raise FeedInUse(
            f"feed {store.keys.feed!r} is held by {holder!r}: stop that worker first, or --force"
        )


def _holder(store: Store) -> str | None:
    """Return who holds the lease, unless its process is known to be gone."""
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


def _drop_bookmark(store: Store) -> None:
    if store.length(store.keys.input):
        store.call("XGROUP", "DESTROY", store.keys.input, GROUP)


def _newest_report(store: Store) -> dict[str, Any] | None:
    found = newest(store, store.keys.met, 1)
    return orjson.loads(payload(found[0])) if found else None
