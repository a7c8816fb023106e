"""Erase the entries of one person: from the streams, from the model, and from an archive.

1. The entries are found and listed in `erased`: their IDs, and the digests of the chain after them.
2. A new learner learns the kept input without them. It becomes the only snapshot of the feed;
   published states are deleted.
3. Input, answers, dead letters and requests are replaced by copies without them.
4. The files of the archive are rewritten without them.

Any step may be interrupted: the same command finishes the erasure. Nothing is deleted before
step 2 has written all that a worker needs to continue.

The old learner holds the examples of its window, and machines fitted on them, so nothing of it is
kept. The position of the feed stays: cursor, `seq` and digest.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from workers.admin.backup import Backup
from workers.admin.erased_streams import (
    ChainSource,
    erased_of,
    has_person,
    ids_of_person,
    link_digests,
    remove_entries,
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

Pages = Callable[[], Iterable[Sequence[Entry]]]  # returns a new iterator over pages of entries

Progress = Callable[[int], None]

WRITER = "erase"
_LEASE = 5.0  # seconds


def learn_again(
    feed: str,
    state: FeedState,
    kept: Pages,
    holes: Sequence[bytes],
    at: Position,
    first: bytes,
    progress: Progress | None = None,
) -> tuple[Base, Replay]:
    """Learn the kept input again; return the base of the new learner, and the replay.

    `kept` returns the input up to the position `at` of the feed, `holes` are the IDs of the erased
    entries since the first kept one, in order, and `first` is the first ID of both. `progress` is
    called with the number of entries so far.
    """
    replay, erased = Replay.of(feed, state), frozenset(holes)
    count = sum(entry[0] not in erased for page in kept() for entry in page) + len(holes)
    replay.position = Position(seq=at.seq - count)
    for skipped, run in runs(kept(), holes):
        replay.position = replace(replay.position, seq=replay.position.seq + skipped)
        if run:
            replay.answer(run)
            if progress is not None:
                progress(replay.position.seq - at.seq + count)
    return Base(first, replace(at, n=replay.predictor.n)), replay


def runs(
    kept: Iterable[Sequence[Entry]], holes: Sequence[bytes]
) -> Iterator[tuple[int, list[Entry]]]:
    """Yield runs of entries, with the number of erased ones before each; the last may be empty."""
    left, skipped, run = deque(holes), 0, list[Entry]()
    for page in kept:
        for entry in page:
            new, is_erased = 0, False
            while left and parse_id(left[0]) <= parse_id(entry[0]):
                is_erased = left.popleft() == entry[0]
                new += 1
            if new and run:
                yield skipped, run
                skipped, run = 0, []
            skipped += new
            if not is_erased:
                run.append(entry)
        if run:
            yield skipped, run
            skipped, run = 0, []
    if skipped or left:
        yield skipped + len(left), []


class Copies(Protocol):
    """Copies of a feed's entries outside of Redis: an archive."""

    def are_of(self, store: Store) -> bool:
        """Return whether they are of the present feed, not of an earlier feed of its name."""

    def ids_of_person(self, sent: bytes) -> dict[bytes, int | None]:
        """Return the IDs of a person's entries, each with its `seq` if that is known."""

    def chain_from(self, store: Store, state: FeedState) -> ChainSource:
        """Return the start of the archive as a point of the chain."""

    def erase(self, ids: frozenset[bytes]) -> int:
        """Remove all rows of these entries; return the number of rows."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """The result of an erasure."""

    entries: int  # entries of the feed
    archived: int  # rows of the archive
    learned: int | None  # examples learned again; None if the feed was not changed
    unlinked: int  # erased entries of the feed without a known digest


def erase(
    store: Store, person: str, copies: Copies | None = None, progress: Progress | None = None
) -> Erasure:
    """Erase all entries with a producer's id, delayed labels included.

    If `copies` are of an earlier feed of this name, only they are changed. `progress` is called
    with the number of entries that are learned again so far.

    Raises NoSuchFeed, FeedInUse if there is no such feed, or a worker holds it; BadConfiguration if
    it is a combination, keeps nothing of the id, or has unanswered entries with the id.
    """
    sent = person.encode(errors="surrogateescape")  # restores bytes of a shell that are not UTF-8
    if copies is not None and not copies.are_of(store):
        return _erase_copies(store.keys.feed, sent, copies)
    state = feed_state(store)
    settings_of(store.keys.feed, state)  # raises for a combination
    check_not_in_use(store)
    with holding(store.url, store.keys.feed, WRITER, _LEASE):
        return _erase(store, feed_state(store), sent, copies, progress)


def _erase_copies(feed: str, sent: bytes, copies: Copies) -> Erasure:
    ids = frozenset(copies.ids_of_person(sent))
    if not ids:
        raise BadConfiguration(f"this archive of an earlier feed {feed!r} has nothing of this id")
    return Erasure(0, copies.erase(ids), None, 0)


def _erase(
    store: Store, state: FeedState, sent: bytes, copies: Copies | None, progress: Progress | None
) -> Erasure:
    record = erased_of(store)
    to_erase = _find(store, state, sent, copies, record)
    new = {at: seq for at, seq in to_erase.items() if at not in record.entries}
    links = _links(store, state, record, set(new), copies)
    for at, seq in _seqs(store, state, record, new).items():
        record.entries[at] = ErasedEntry(seq, links.get(at))
    record.is_unfinished = True
    write(store, record)
    learned = _learn_again(store, state, record, progress)
    erased = frozenset(record.entries)
    keys = store.keys
    for stream in (keys.input, keys.out, keys.dlq):
        remove_entries(store, stream, lambda entry: entry[0] in erased)
    remove_entries(store, keys.requests, lambda entry: has_person(entry[1], sent))
    with suppress(UnicodeDecodeError):  # the reply to such an id has another key, and expires
        store.delete(keys.reply(sent.decode()))
    archived = 0 if copies is None else copies.erase(erased)
    store.finish_erased()
    unlinked = sum(record.entries[at].digest is None for at in to_erase)
    return Erasure(len(to_erase), archived, learned, unlinked)


def _find(
    store: Store, state: FeedState, sent: bytes, copies: Copies | None, record: Erased
) -> dict[bytes, int | None]:
    """Return the IDs of the entries to erase, with their `seq` if the archive has it."""
    found, waiting = ids_of_person(store, sent, state.position.cursor)
    if waiting:
        raise BadConfiguration(
            f"feed {store.keys.feed!r} has not answered {waiting:,} entries of this id: let a "
            f"worker answer them first (online-svm worker {store.keys.feed}), then stop it"
        )
    to_erase = dict.fromkeys(found) | ({} if copies is None else copies.ids_of_person(sent))
    if record.is_unfinished:  # finish the interrupted erasure, of whatever id
        to_erase |= {at: entry.seq for at, entry in record.entries.items()}
    if not to_erase:
        raise BadConfiguration(
            f"feed {store.keys.feed!r} keeps nothing of this id"
            + ("; name its archive with --archive DIR" if copies is None else "")
        )
    return to_erase


def _seqs(
    store: Store, state: FeedState, record: Erased, to_erase: Mapping[bytes, int | None]
) -> dict[bytes, int]:
    """Return the `seq` of each entry: from the archive, from its answer, or by counting."""
    found = {at: _seq(store, at) if seq is None else seq for at, seq in to_erase.items()}
    uncounted = [at for at, seq in found.items() if seq is None]
    if uncounted:
        first, cursor = min(uncounted, key=parse_id), state.position.cursor
        later = {entry[0] for entry in store.each(store.keys.input, previous_id(first), cursor)}
        later.update(record.between(first, cursor))
        ids = sorted(map(parse_id, later | to_erase.keys()))
        before_all = state.position.seq - len(ids)
        for at in uncounted:
            found[at] = max(0, before_all + bisect_left(ids, parse_id(at)))
    return {at: seq for at, seq in found.items() if seq is not None}


def _seq(store: Store, entry_id: bytes) -> int | None:
    """Return the `seq` in the answer to an entry; None if that is not kept."""
    found = store.entry(store.keys.out, entry_id)
    seq = None if found is None else answer(found).get("seq")
    return seq if isinstance(seq, int) else None


def _links(
    store: Store, state: FeedState, record: Erased, to_erase: set[bytes], copies: Copies | None
) -> dict[bytes, Digest]:
    """Return the digests of the chain after the answers to erase, where they can be computed."""

    def entries(after: bytes) -> Sequence[Iterable[Entry]]:
        cursor = state.position.cursor
        return [store.each(stream, after, cursor) for stream in store.keys.outputs[:-1]]

    sources = [ChainSource(START.digest, START.cursor, entries)]
    if copies is not None:
        sources.insert(0, copies.chain_from(store, state))
    kept = kept_positions(store, state)
    sources += [ChainSource(at.digest, at.cursor, entries) for at in kept]
    return link_digests(to_erase, record.entries, sources, state.position.digest)


def _learn_again(store: Store, state: FeedState, record: Erased, progress: Progress | None) -> int:
    """Learn the feed again as its only snapshot; return the number of examples learned."""
    feed, at = store.keys.feed, state.position
    oldest = store.first_entry(store.keys.input)
    first = at.cursor if oldest is None else min(oldest[0], at.cursor, key=parse_id)
    base, replay = learn_again(
        feed, state, lambda: store.pages(store.keys.input, b"0-0", at.cursor),
        record.between(first, at.cursor), at, first, progress,
    )  # fmt: skip
    body = replay.recent.prepend_to(replay.predictor.snapshot())
    pointer, data = snapshots.encode(feed, state.pinned.config_hash, base.position, body)
    record.base = base
    write(store, record)
    backup = Backup(feed, state.epoch, state.pinned, pointer, data)
    restore(store, backup, overwrite=True, force=True)
    store.delete(store.keys.published, *store.published_keys())
    return replay.predictor.n
