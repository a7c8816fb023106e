"""How a feed stands, seen from outside."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from workers.admin.alarms import open_alarms
from workers.admin.answers import newest, payload
from workers.admin.consumers import ConsumerGroup, consumer_groups
from workers.admin.holder import holder
from workers.admin.kept_bytes import Stored, stored
from workers.admin.registry import require
from workers.admin.scorers import Scoring, scoring
from workers.broker.feed_reader import FeedReader
from workers.broker.store import Store
from workers.errors import InvalidPublication, WrongKeyType
from workers.feed.agreement import check_computed
from workers.feed.publication import Publication

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
    waiting_bytes : int
        Of their names and values, about: by the mean of those that were counted. Producers wait
        where it reaches their `--high-water-bytes`.
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
    scoring : Scoring or None
        What scorers have, and what waits for them; None where there are none.
    consumers : list of ConsumerGroup
        Who reads the answers, such as an archive.
    stored : Stored
        Bytes in Redis.
    """

    feed: str
    seq: int
    n: int
    waiting: int
    waiting_is_at_least: bool
    waiting_bytes: int
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
    scoring: Scoring | None
    consumers: list[ConsumerGroup]
    stored: Stored


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
    waits = backlog(store, keys.input, cursor)
    n = 0 if state is None else state.position.n
    published = _published(store)
    report = next(iter(newest(store, keys.met, 1)), None)
    return Status(
        feed=keys.feed,
        seq=0 if state is None else state.position.seq,
        n=n,
        waiting=waits.entries,
        waiting_is_at_least=waits.is_at_least,
        waiting_bytes=waits.size,
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
        scoring=scoring(store, n, published),
        consumers=consumer_groups(store, lambda stream, after: backlog(store, stream, after)[:2]),
        stored=stored(store, state, published),
    )


def _published(store: FeedReader) -> Publication | None:
    """Return the newest published state; None without one, or if what names it is damaged."""
    try:
        return store.publication()
    except (InvalidPublication, WrongKeyType):
        return None


class Backlog(NamedTuple):
    """The entries of a stream after an ID.

    Attributes
    ----------
    entries : int
    is_at_least : bool
        Whether there may be more: counting stopped at `COUNTED`.
    size : int
        Bytes of their names and values, about.
    """

    entries: int
    is_at_least: bool
    size: int


def waiting(store: FeedReader, cursor: bytes) -> tuple[int, bool]:
    """Return how many input entries follow a cursor, and whether there may be more."""
    return backlog(store, store.keys.input, cursor)[:2]


def backlog(store: FeedReader, stream: str, cursor: bytes) -> Backlog:
    """Return what follows an ID in a stream; `COUNTED` entries are read, and some more, at most."""
    count, size, after = 0, 0, b""
    for page in store.pages(stream, cursor, count=COUNTED):
        after = after or page[0][0]
        count += len(page)
        size += sum(len(part) for _, fields in page for part in fields)
        if count >= COUNTED:
            break
    if count < COUNTED:
        return Backlog(count, False, size)
    first = store.call("XRANGE", stream, "-", "+", "COUNT", 1)
    if first and first[0][0] == after:  # none is kept up to the cursor
        length = store.length(stream)
        return Backlog(length, False, size * length // count)
    return Backlog(count, True, size)
