"""Erase the rows of one person: from the streams, from what was learned, and from an archive.

1. The entries are found, and listed in `erased`: their IDs, and the digests of the chain at them.
2. The feed is learned again from the input that is kept, without them. From now on that is its only
   snapshot; published states go.
3. Input, answers, dead letters and requests are replaced by copies without them.
4. The parts of the archive are written again without them.

Each step may be cut off: the same command finishes what was begun. From step 2 on no worker needs
anything from before; until then, it has all.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain as joined
from typing import Protocol

from workers.admin.backup import Backup
from workers.admin.erase.learned_again import learn_again
from workers.admin.erase.links import ChainSource, Entries, link_digests
from workers.admin.erase.streams import (
    among,
    erased_of,
    finish,
    ids_of_person,
    is_text,
    names_person,
    without,
    write,
)
from workers.admin.restore import restore
from workers.admin.verify import feed_state
from workers.broker.leases import holding
from workers.broker.store import Store
from workers.errors import BadConfiguration
from workers.feed.digest import Digest
from workers.feed.erased import Erased, ErasedEntry
from workers.feed.position import START, parse_id, previous_id
from workers.feed.state import FeedState
from workers.reading.answers import answer
from workers.reading.registry import check_not_in_use
from workers.session import snapshots
from workers.session.replay import kept_positions, settings_of
from workers.stop import Stop

WRITER = "erase"

_LEASE = 5.0  # seconds


class Copies(Protocol):
    """Copies of a feed's entries outside of Redis: an archive."""

    def is_of(self, store: Store) -> bool:
        """Return whether they are copies of the feed as it is, not of one that had its name."""
        ...

    def ids_of_person(self, sent: bytes) -> dict[bytes, int | None]:
        """Return the IDs of the entries of a person, each with its `seq` where that is known."""
        ...

    def chain_from(self, store: Store, state: FeedState) -> ChainSource:
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
    learned : int or None
        Examples that the feed has learned again; None where it was left as it is.
    unlinked : int
        Entries among them whose place in the chain is no longer known.
    """

    entries: int
    archived: int
    learned: int | None
    unlinked: int


def erase(store: Store, person: str, copies: Copies | None = None) -> Erasure:
    """Erase all entries with a producer's id, labels that came late too.

    Copies of an earlier feed of this name lose their rows; the feed stays as it is.

    Raises
    ------
    NoSuchFeed, FeedInUse
        If there is no such feed, or a worker holds it.
    BadConfiguration
        If it is a combination, keeps nothing of the id, or has entries of it that wait.
    """
    sent = person.encode(errors="surrogateescape")  # as a shell gives what is not UTF-8
    if copies is not None and not copies.is_of(store):
        return _erase_copies(store.keys.feed, sent, copies)
    state = feed_state(store)
    settings_of(store.keys.feed, state)  # a combination has none
    check_not_in_use(store)
    with holding(store.url, store.keys.feed, WRITER, _LEASE, Stop()):
        return _erase(store, feed_state(store), sent, copies)


def _erase_copies(feed: str, sent: bytes, copies: Copies) -> Erasure:
    """Erase the rows of a person from copies alone."""
    gone = frozenset(copies.ids_of_person(sent))
    if not gone:
        raise BadConfiguration(f"this archive of an earlier feed {feed!r} has nothing of this id")
    return Erasure(0, copies.erase(gone), None, 0)


def _erase(store: Store, state: FeedState, sent: bytes, copies: Copies | None) -> Erasure:
    record = erased_of(store)
    gone = _find(store, state, sent, copies, record)
    unknown = {at: seq for at, seq in gone.items() if at not in record.entries}
    links = _links(store, state, record, set(unknown), copies)
    for at, seq in _seqs(store, state, record, unknown).items():
        record.entries[at] = ErasedEntry(seq, links.get(at))
    record.is_unfinished = True
    write(store, record)
    learned = _learn_again(store, state, record)
    all_gone = frozenset(record.entries)
    keys = store.keys
    for stream in (keys.input, keys.out, keys.dlq):
        without(store, stream, among(all_gone))
    without(store, keys.requests, lambda entry: names_person(entry[1], sent))
    if is_text(sent):  # a request whose id is none has its answer under another key, and it expires
        store.call("DEL", keys.reply(sent.decode()))
    archived = 0 if copies is None else copies.erase(all_gone)
    finish(store)
    unlinked = sum(record.entries[at].link is None for at in gone)
    return Erasure(len(gone), archived, learned, unlinked)


def _find(
    store: Store, state: FeedState, sent: bytes, copies: Copies | None, record: Erased
) -> dict[bytes, int | None]:
    """Return the entries to erase, with their `seq` where the archive tells it."""
    found, waiting = ids_of_person(store, sent, state.position.cursor)
    if waiting:
        raise BadConfiguration(
            f"feed {store.keys.feed!r} has not answered {waiting:,} entries of this id: let a "
            f"worker answer them first (online-svm worker {store.keys.feed}), then stop it"
        )
    gone = dict.fromkeys(found) | ({} if copies is None else copies.ids_of_person(sent))
    if record.is_unfinished:  # of the erasure that was cut off, whatever it was of
        gone |= {at: entry.seq for at, entry in record.entries.items()}
    if not gone:
        raise BadConfiguration(
            f"feed {store.keys.feed!r} keeps nothing of this id"
            + ("; name its archive with --archive DIR" if copies is None else "")
        )
    return gone


def _seqs(
    store: Store, state: FeedState, record: Erased, gone: Mapping[bytes, int | None]
) -> dict[bytes, int]:
    """Return the number of input entries before each entry: from its answer, or by counting."""
    found = {at: _seq(store, at) if seq is None else seq for at, seq in gone.items()}
    uncounted = [at for at, seq in found.items() if seq is None]
    if uncounted:
        first, cursor = min(uncounted, key=parse_id), state.position.cursor
        pages = store.pages(store.keys.input, previous_id(first), cursor)
        later = {entry[0] for page in pages for entry in page} | {*record.after(first, cursor)}
        places = sorted(map(parse_id, later | gone.keys()))
        before_all = state.position.seq - len(places)
        for at in uncounted:
            found[at] = max(0, before_all + bisect_left(places, parse_id(at)))
    return {at: seq for at, seq in found.items() if seq is not None}


def _seq(store: Store, entry_id: bytes) -> int | None:
    """Return the number of input entries before an entry, if its answer is kept."""
    found = store.call("XRANGE", store.keys.out, entry_id, entry_id)
    seq = answer(found[0]).get("seq") if found else None
    return seq if isinstance(seq, int) else None


def _links(
    store: Store, state: FeedState, record: Erased, gone: set[bytes], copies: Copies | None
) -> dict[bytes, Digest]:
    """Return the digests of the chain at the answers to erase."""
    entries = partial(_entries, store, state)
    sources = [ChainSource(START.digest, START.cursor, entries)]
    if copies is not None:
        sources.insert(0, copies.chain_from(store, state))
    kept = kept_positions(store, state)
    sources += [ChainSource(at.digest, at.cursor, entries) for at in kept]
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
    base, replay = learn_again(
        feed,
        state,
        lambda: () if at.cursor == b"0-0" else store.pages(store.keys.input, b"0-0", at.cursor),
        record.after(first, at.cursor),
        at,
        first,
    )
    body = replay.recent.prepend_to(replay.predictor.snapshot())
    pointer, data = snapshots.encode(feed, state.agreement.config_hash, base.position, body)
    record.base = base
    write(store, record)
    backup = Backup(feed, state.epoch, state.agreement, pointer, data)
    restore(store, backup, overwrite=True, force=True)
    store.call("DEL", store.keys.published, *store.published_keys())
    return replay.predictor.n
