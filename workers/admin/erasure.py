"""Erase the rows of one person: from the streams, from the model, and from an archive.

1. The entries are found and listed in `erased`: their IDs, and the digests of the chain there.
2. The feed is learned again from the kept input, without them. This is now its only snapshot;
   published states are deleted.
3. Input, answers, dead letters and requests are replaced by copies without them.
4. The parts of the archive are written again without them.

Any step may be interrupted: the same command finishes the erasure. After step 2 no worker needs
anything from before; until then everything is still there.

A learner holds the examples of its window, and machines fitted on them. So nothing of the old
learner is kept. The position of the feed stays: cursor, `seq` and digest.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain as joined
from typing import Protocol

from workers.admin.backup import Backup
from workers.admin.erased_streams import (
    ChainSource,
    Entries,
    erased_of,
    ids_of_person,
    link_digests,
    names_person,
    without,
    write,
)
from workers.admin.restore import restore
from workers.admin.verify import feed_state
from workers.broker.leases import holding
from workers.broker.store import Store
from workers.broker.streams import Entry
from workers.errors import BadConfiguration
from workers.feed.erased import Base, Erased, ErasedEntry
from workers.feed.position import START, Digest, Position, parse_id, previous_id
from workers.feed.state import FeedState
from workers.reading.answers import answer
from workers.reading.registry import check_not_in_use
from workers.session import snapshots
from workers.session.replay import Replay, kept_positions, settings_of

Pages = Callable[[], Iterable[Sequence[Entry]]]  # called for a pass over pages of entries

WRITER = "erase"
_LEASE = 5.0  # seconds


def learn_again(
    feed: str, state: FeedState, kept: Pages, holes: Sequence[bytes], at: Position, first: bytes
) -> tuple[Base, Replay]:
    """Learn the kept input again; return the base of the new learner, and the replay.

    `kept` returns the input up to the position `at` of the feed, `holes` are the IDs of the erased
    entries from the first kept one on, in order, and `first` is the ID of the first entry of both.
    """
    replay, gone = Replay.of(feed, state), frozenset(holes)
    count = sum(entry[0] not in gone for page in kept() for entry in page) + len(holes)
    replay.position = Position(seq=at.seq - count)
    for passed, run in runs(kept(), holes):
        replay.position = replace(replay.position, seq=replay.position.seq + passed)
        if run:
            replay.answer(run)
    return Base(first, replace(at, n=replay.predictor.n)), replay


def runs(
    kept: Iterable[Sequence[Entry]], holes: Sequence[bytes]
) -> Iterator[tuple[int, list[Entry]]]:
    """Yield runs of entries, with how many erased ones stood before each; the last may be empty."""
    left, passed, run = deque(holes), 0, list[Entry]()
    for page in kept:
        for entry in page:
            new, is_erased = 0, False
            while left and parse_id(left[0]) <= parse_id(entry[0]):
                is_erased = left.popleft() == entry[0]
                new += 1
            if new and run:
                yield passed, run
                passed, run = 0, []
            passed += new
            if not is_erased:
                run.append(entry)
        if run:
            yield passed, run
            passed, run = 0, []
    if passed or left:
        yield passed + len(left), []


class Copies(Protocol):
    """Copies of a feed's entries outside of Redis: an archive."""

    def is_of(self, store: Store) -> bool:
        """Return whether they are copies of the feed as it is, not of one that had its name."""

    def ids_of_person(self, sent: bytes) -> dict[bytes, int | None]:
        """Return the entries of a person, each with its `seq` if that is known."""

    def chain_from(self, store: Store, state: FeedState) -> ChainSource:
        """Return the chain of answers from the beginning of the archive."""

    def erase(self, gone: frozenset[bytes]) -> int:
        """Remove all rows of these entries; return how many rows that were."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """The result of an erasure."""

    entries: int  # entries of the feed
    archived: int  # rows of the archive
    learned: int | None  # examples learned again; None if the feed was not changed
    unlinked: int  # entries among them whose place in the chain is no longer known


def erase(store: Store, person: str, copies: Copies | None = None) -> Erasure:
    """Erase all entries with a producer's id, labels that came late too.

    Copies of an earlier feed of this name lose their rows; the feed stays as it is.

    Raises NoSuchFeed, FeedInUse if there is no such feed, or a worker holds it; BadConfiguration if
    it is a combination, keeps nothing of the id, or has entries of it that wait.
    """
    sent = person.encode(errors="surrogateescape")  # as a shell passes bytes that are not UTF-8
    if copies is not None and not copies.is_of(store):
        return _erase_copies(store.keys.feed, sent, copies)
    state = feed_state(store)
    settings_of(store.keys.feed, state)  # a combination has none
    check_not_in_use(store)
    with holding(store.url, store.keys.feed, WRITER, _LEASE):
        return _erase(store, feed_state(store), sent, copies)


def _erase_copies(feed: str, sent: bytes, copies: Copies) -> Erasure:
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
        without(store, stream, lambda entry: entry[0] in all_gone)
    without(store, keys.requests, lambda entry: names_person(entry[1], sent))
    with suppress(UnicodeDecodeError):  # such a request has its answer elsewhere, and it expires
        store.delete(keys.reply(sent.decode()))
    archived = 0 if copies is None else copies.erase(all_gone)
    store.finish_erased()
    unlinked = sum(record.entries[at].digest is None for at in gone)
    return Erasure(len(gone), archived, learned, unlinked)


def _find(
    store: Store, state: FeedState, sent: bytes, copies: Copies | None, record: Erased
) -> dict[bytes, int | None]:
    """Return the entries to erase, with their `seq` if the archive has it."""
    found, waiting = ids_of_person(store, sent, state.position.cursor)
    if waiting:
        raise BadConfiguration(
            f"feed {store.keys.feed!r} has not answered {waiting:,} entries of this id: let a "
            f"worker answer them first (online-svm worker {store.keys.feed}), then stop it"
        )
    gone = dict.fromkeys(found) | ({} if copies is None else copies.ids_of_person(sent))
    if record.is_unfinished:  # of the interrupted erasure, of any id
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
        later = {entry[0] for page in pages for entry in page} | {*record.between(first, cursor)}
        places = sorted(map(parse_id, later | gone.keys()))
        before_all = state.position.seq - len(places)
        for at in uncounted:
            found[at] = max(0, before_all + bisect_left(places, parse_id(at)))
    return {at: seq for at, seq in found.items() if seq is not None}


def _seq(store: Store, entry_id: bytes) -> int | None:
    """Return the number of input entries before an entry, if its answer is kept."""
    found = store.entry(store.keys.out, entry_id)
    seq = None if found is None else answer(found).get("seq")
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
    oldest = store.first_entry(store.keys.input)
    first = at.cursor if oldest is None else min(oldest[0], at.cursor, key=parse_id)
    base, replay = learn_again(
        feed,
        state,
        lambda: () if at.cursor == b"0-0" else store.pages(store.keys.input, b"0-0", at.cursor),
        record.between(first, at.cursor),
        at,
        first,
    )
    body = replay.recent.prepend_to(replay.predictor.snapshot())
    pointer, data = snapshots.encode(feed, state.pinned.config_hash, base.position, body)
    record.base = base
    write(store, record)
    backup = Backup(feed, state.epoch, state.pinned, pointer, data)
    restore(store, backup, overwrite=True, force=True)
    store.delete(store.keys.published, *store.published_keys())
    return replay.predictor.n
