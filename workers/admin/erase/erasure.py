"""Erase the rows of one person: from the streams, from what was learned, and from an archive.

1. The entries are found, and listed in `erased`: their IDs, and the digests of the chain at them.
2. The feed is learned again from the input that is kept, without them. From now on that is its only
   snapshot; published states go.
3. Input, answers, dead letters and requests are replaced by copies without them.
4. The parts of the archive are written again without them.

Each step may be cut off: the same command finishes what was begun. From step 2 on no worker needs
anything from before; until then, it has all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain as joined
from typing import Protocol

from workers.admin.answers import answer
from workers.admin.backup import Backup
from workers.admin.erase.learned_again import learn_again
from workers.admin.erase.links import Entries, Source, link_digests
from workers.admin.erase.record import erased_of, finish, write
from workers.admin.erase.streams import among, ids_of_person, names_person, without
from workers.admin.holder import check_not_in_use
from workers.admin.restore import restore
from workers.admin.verify import feed_state, settings_of
from workers.broker.lease import holding
from workers.broker.store import Store
from workers.engine import snapshots
from workers.errors import BadConfiguration, InvalidStoredSnapshot
from workers.feed.erased import Erased, ErasedEntry
from workers.feed.position import START, Digest, parse_id
from workers.feed.state import FeedState
from workers.stop import Stop

WRITER = "erase"

_LEASE = 5.0  # seconds


class Copies(Protocol):
    """Copies of a feed's entries outside of Redis: an archive."""

    def ids_of_person(self, person: str) -> dict[bytes, int | None]:
        """Return the IDs of the entries of a person, each with its `seq` where that is known."""
        ...

    def chain_from(self, store: Store, state: FeedState) -> Source:
        """Return the chain of answers from the beginning of the archive."""
        ...

    def erase(self, gone: frozenset[bytes]) -> int:
        """Remove all rows of these entries; return how many rows that were."""
        ...


@dataclass(frozen=True, slots=True)
class Erasure:
    """What was erased.

    Attributes
    ----------
    entries : int
        Entries of the feed.
    archived : int
        Rows of the archive.
    learned : int
        Examples that the feed has learned again.
    unlinked : int
        Entries among them whose place in the chain is no longer known.
    """

    entries: int
    archived: int
    learned: int
    unlinked: int


def erase(store: Store, person: str, copies: Copies | None = None) -> Erasure:
    """Erase all entries with a producer's id, labels that came late too.

    Raises
    ------
    NoSuchFeed, FeedInUse
        If there is no such feed, or a worker holds it.
    BadConfiguration
        If it is a combination, keeps nothing of the id, or has entries of it that wait.
    """
    state = feed_state(store)
    settings_of(store.keys.feed, state)  # a combination has none
    check_not_in_use(store, force=False)
    with holding(store.url, store.keys.lease, WRITER, _LEASE, Stop(), _LEASE):
        return _erase(store, feed_state(store), person, copies)


def _erase(store: Store, state: FeedState, person: str, copies: Copies | None) -> Erasure:
    record = erased_of(store)
    gone = _find(store, state, person, copies, record)
    unknown = set(gone) - record.entries.keys()
    links = _links(store, state, record, unknown, copies)
    for at in unknown:
        record.entries[at] = ErasedEntry(_seq(store, state, record, at, gone[at]), links.get(at))
    record.is_unfinished = True
    write(store, record)
    learned = _learn_again(store, state, record)
    all_gone = frozenset(record.entries)
    keys = store.keys
    for stream in (keys.input, keys.out, keys.dlq):
        without(store, stream, among(all_gone))
    without(store, keys.requests, lambda entry: names_person(entry[1], person.encode()))
    store.call("DEL", keys.reply(person))
    archived = 0 if copies is None else copies.erase(all_gone)
    finish(store)
    unlinked = sum(record.entries[at].link is None for at in gone)
    return Erasure(len(gone), archived, learned, unlinked)


def _find(
    store: Store, state: FeedState, person: str, copies: Copies | None, record: Erased
) -> dict[bytes, int | None]:
    """Return the entries to erase, with their `seq` where the archive tells it."""
    found, waiting = ids_of_person(store, person, state.position.cursor)
    if waiting:
        raise BadConfiguration(
            f"feed {store.keys.feed!r} has not answered {waiting:,} entries of this id: let a "
            f"worker answer them first (online-svm worker {store.keys.feed}), then stop it"
        )
    gone = dict.fromkeys(found) | ({} if copies is None else copies.ids_of_person(person))
    if record.is_unfinished:  # of the erasure that was cut off, whatever it was of
        gone |= {at: entry.seq for at, entry in record.entries.items()}
    if not gone:
        raise BadConfiguration(
            f"feed {store.keys.feed!r} keeps nothing of this id"
            + ("; name its archive with --archive DIR" if copies is None else "")
        )
    return gone


def _seq(store: Store, state: FeedState, record: Erased, entry_id: bytes, known: int | None) -> int:
    """Return the number of input entries before an entry: from its answer, or by counting."""
    if known is not None:
        return known
    found = store.call("XRANGE", store.keys.out, entry_id, entry_id)
    if found and isinstance(seq := answer(found[0]).get("seq"), int):
        return seq
    cursor = state.position.cursor
    pages = store.pages(store.keys.input, entry_id, cursor)
    later = {entry[0] for page in pages for entry in page} | {*record.after(entry_id, cursor)}
    return max(0, state.position.seq - 1 - len(later - {entry_id}))


def _links(
    store: Store, state: FeedState, record: Erased, gone: set[bytes], copies: Copies | None
) -> dict[bytes, Digest]:
    """Return the digests of the chain at the answers to erase."""
    entries = partial(_entries, store, state)
    sources = [Source(START.digest, START.cursor, entries)]
    if copies is not None:
        sources.insert(0, copies.chain_from(store, state))
    for pointer in state.snapshots:
        try:
            at = snapshots.read(store, pointer, state.agreement.config_hash).position
        except InvalidStoredSnapshot:
            continue
        sources.append(Source(at.digest, at.cursor, entries))
    return link_digests(gone, record.entries, sources, state.position.digest)


def _entries(store: Store, state: FeedState, after: bytes) -> Sequence[Entries]:
    """Return answers, reports and alarms after an ID."""
    cursor = state.position.cursor
    if after == cursor:
        return [(), (), ()]
    return [
        joined.from_iterable(store.pages(stream, after, cursor))
        for stream in store.keys.outputs[:-1]
    ]


def _learn_again(store: Store, state: FeedState, record: Erased) -> int:
    """Learn the feed again, and make that its only snapshot; return how many were learned."""
    feed, at = store.keys.feed, state.position
    oldest = store.call("XRANGE", store.keys.input, "-", "+", "COUNT", 1)
    first = oldest[0][0] if oldest and parse_id(oldest[0][0]) <= parse_id(at.cursor) else at.cursor
    base, predictor, recent = learn_again(
        feed,
        state,
        lambda: () if at.cursor == b"0-0" else store.pages(store.keys.input, b"0-0", at.cursor),
        record.after(first, at.cursor),
        at,
        first,
    )
    body = recent.prepend_to(predictor.snapshot())
    pointer, data = snapshots.encode(feed, state.agreement.config_hash, base.position, body)
    record.base = base
    write(store, record)
    backup = Backup(feed, state.epoch, state.agreement, pointer, data)
    restore(store, backup, overwrite=True, force=True)
    store.call("DEL", store.keys.published, *store.published_keys())
    return predictor.n
