"""How a feed stands, seen from outside."""

from dataclasses import dataclass
from typing import Any

import orjson

from workers.admin.alarms import open_alarms
from workers.admin.answers import newest, payload
from workers.admin.holder import holder
from workers.admin.registry import require
from workers.broker.feed_reader import FeedReader
from workers.broker.store import Store
from workers.feed.agreement import check_computed

COUNTED = 1000
"""Largest number of waiting entries that are counted one by one, which reads them."""


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
    out, met, alarms, dlq : int
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
    open_alarms : list of dict
        As the messages of `alarms` have them, the oldest first; see `alarms.open_alarms`.
    """

    feed: str
    seq: int
    n: int
    waiting: int
    waiting_is_at_least: bool
    cursor: str
    out: int
    met: int
    alarms: int
    dlq: int
    epoch: int
    writer: str | None
    holder: str | None
    digest: str
    snapshots: list[int]
    validity: dict[str, Any] | None
    open_alarms: list[dict[str, Any]]


def status(store: Store) -> Status:
    """Return the status of a feed; this only reads.

    Raises
    ------
    NoSuchFeed
        If the feed does not exist.
    BadConfiguration
        If its semantics were given up.
    """
    require(store)
    keys, state = store.keys, store.state()
    if state is not None:
        check_computed(keys.feed, state.agreement)
    cursor = b"0-0" if state is None else state.position.cursor
    pointers = () if state is None else (state.snapshot, state.previous)
    waits, is_at_least = waiting(store, cursor)
    report = next(iter(newest(store, keys.met, 1)), None)
    return Status(
        feed=keys.feed,
        seq=0 if state is None else state.position.seq,
        n=0 if state is None else state.position.n,
        waiting=waits,
        waiting_is_at_least=is_at_least,
        cursor=cursor.decode(),
        out=store.length(keys.out),
        met=store.length(keys.met),
        alarms=store.length(keys.alarms),
        dlq=store.length(keys.dlq),
        epoch=0 if state is None else state.epoch,
        writer=None if state is None else state.writer,
        holder=holder(store),
        digest=bytes(32).hex() if state is None else state.position.digest.hex(),
        snapshots=[pointer.n for pointer in pointers if pointer is not None],
        validity=None if report is None else orjson.loads(payload(report)),
        open_alarms=open_alarms(store, report),
    )


def waiting(store: FeedReader, cursor: bytes) -> tuple[int, bool]:
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
