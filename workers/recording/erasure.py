"""Erase the entries of one person: from the streams, from the model, and from a recording.

1. The entries are found and listed in `erased`: their IDs, and the digests of the chain after them.
2. A new learner learns the kept input without them, and takes over the rows of the memory without
   those of the person, to which its trees are fitted. It becomes the only snapshot of the feed;
   published states are deleted.
3. Input, answers and dead letters are replaced by copies without them.
4. The recording loses their rows and its snapshots, and gets the list and the new snapshot.

A recording alone is erased from by the same rule: its list, its learner, its rows.

Any step may be interrupted: the same command finishes the erasure. Nothing is deleted before
step 2 has written all that a worker needs to continue.

The old learner holds the examples of its window, and machines fitted on them, so nothing of it is
kept. The position of the feed stays: cursor, `seq` and digest.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from online_svm.memory.rows import rows_of
from online_svm.storage.recording import opened, transaction
from workers.admin.erased_streams import (
    Base,
    ChainSource,
    Erased,
    ErasedEntry,
    erased_of,
    ids_of_person,
    link_digests,
    remove_entries,
    write,
)
from workers.broker import failpoints
from workers.broker.feed_reader import FeedReader
from workers.broker.leases import holding
from workers.broker.store import Store
from workers.broker.streams import Entry, payload
from workers.errors import BadConfiguration, WorkerError
from workers.feed.position import START, Digest, Position, parse_id, previous_id
from workers.feed.state import FeedState
from workers.feed.stored_settings import stored_settings
from workers.reading.answers import answer
from workers.reading.registry import check_not_in_use, feed_state
from workers.recording.backup import end_log
from workers.recording.begin import RestorePoint, put_back
from workers.recording.file import InvalidRecording, reporting
from workers.recording.reader import Recording
from workers.recording.recorder import delete_snapshots, store_snapshot, write_erased
from workers.session.replay import Replay, kept_positions, restored
from workers.session.snapshots import LoadedSnapshot

Pages = Callable[[], Iterable[Sequence[Entry]]]  # returns a new iterator over pages of entries

Progress = Callable[[int], None]

WRITER = "erase"
_LEASE = 5.0  # seconds


def learn_again(
    feed: str,
    state: FeedState,
    kept: Pages,
    holes: Sequence[bytes],
    first: bytes,
    progress: Progress | None = None,
) -> tuple[Base, Replay]:
    """Learn the kept input again; return the base of the new learner, and the replay.

    `kept` returns the input up to the position of the feed, `holes` are the IDs of the erased
    entries since the first kept one, in order, and `first` is the first ID of both. `progress` is
    called with the number of entries so far.
    """
    replay, erased, at = Replay.of(feed, state), frozenset(holes), state.position
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


@dataclass(frozen=True, slots=True)
class Erasure:
    """The result of an erasure."""

    entries: int  # erased entries
    rows: int  # rows of the recording that were erased
    learned: int  # examples learned again
    unlinked: int  # erased entries without a known digest


def erase(
    store: Store, person: str, file: Path | None = None, progress: Progress | None = None
) -> Erasure:
    """Erase all entries with a producer's id, delayed labels included, from a feed and its file.

    `progress` is called with the number of entries that are learned again so far.

    Raises NoSuchFeed, FeedInUse if there is no such feed, or a worker holds it; BadConfiguration if
    it keeps nothing of the id, has unanswered entries with it, or cannot be computed; or if the
    file is of another feed, or open in another process.
    """
    state = feed_state(store)
    stored_settings(store.keys.feed, state.pinned)  # raises if it cannot be computed
    check_not_in_use(store)
    with holding(store.url, store.keys.feed, WRITER, _LEASE):
        if file is None:
            return _erase(store, feed_state(store), _sent(person), None, progress)
        with alone(file) as recording:
            _check_same_feed(store, recording)
            return _erase(store, feed_state(store), _sent(person), recording, progress)


def erase_file(file: Path, person: str) -> Erasure:
    """Erase all entries with a producer's id from a recording alone. Raises as `erase`."""
    with alone(file) as recording:
        state, record = feed_state(recording), erased_of(recording)
        memory = _memory_of(recording, state, record, _sent(person))
        to_erase = _listed(recording, state, _sent(person), None, record, memory)
        base, replay, body = _learned_again(recording, state, record, memory, None)
        record.base = base
        rows = _erase_rows(recording, record, LoadedSnapshot(base.position, body))
        return Erasure(len(to_erase), rows, replay.predictor.n, _unlinked(record, to_erase))


def _sent(person: str) -> bytes:
    return person.encode(errors="surrogateescape")  # restores bytes of a shell that are not UTF-8


@contextmanager
def alone(path: Path) -> Iterator[Recording]:
    """Open a recording for writing that no other process has open."""
    with reporting(path), opened(path, "rw") as file:
        end_log(file)
        if file.execute("PRAGMA journal_mode").fetchone()[0] != "delete":
            raise InvalidRecording(
                f"{path}: another process has it open: stop that first (backup --follow, or a "
                "reader), and run the same command again"
            )
        yield Recording(path, file)


def _check_same_feed(store: Store, recording: Recording) -> None:
    """Raise BadConfiguration unless a recording is of the present feed."""
    theirs, ours = feed_state(recording), feed_state(store)
    feed, at = store.keys.feed, theirs.position
    last, out = (
        recording.entry(recording.keys.out, at.cursor),
        store.entry(store.keys.out, at.cursor),
    )
    is_same = (recording.keys.feed, theirs.pinned.config_hash) == (feed, ours.pinned.config_hash)
    is_behind = parse_id(ours.position.cursor) < parse_id(at.cursor)
    is_other = None not in (last, out) and payload(last or ()) != payload(out or ())
    if not is_same or is_behind or is_other:
        raise BadConfiguration(
            f"{recording.path}: is not of the present feed {feed!r}: to erase from the file alone, "
            f"online-svm erase {recording.path} --id ID"
        )


def _erase(
    store: Store,
    state: FeedState,
    sent: bytes,
    recording: Recording | None,
    progress: Progress | None,
) -> Erasure:
    record = erased_of(store)
    memory = _memory_of(store, state, record, sent)
    to_erase = _listed(store, state, sent, recording, record, memory)
    record.is_unfinished = True
    write(store, record)
    base, replay, body = _learned_again(store, state, record, memory, progress)
    record.base = base
    write(store, record)
    put_back(store, RestorePoint(state.epoch, state.pinned, base.position, body), overwrite=True)
    store.delete(store.keys.answered_ids, store.keys.published, *store.published_keys())
    erased = frozenset(record.entries)
    keys = store.keys
    for stream in (keys.input, keys.out, keys.dlq):
        remove_entries(store, stream, lambda entry: entry[0] in erased)
    record.is_unfinished = False
    loaded = LoadedSnapshot(base.position, body)
    rows = 0 if recording is None else _erase_rows(recording, record, loaded)
    store.finish_erased()
    return Erasure(len(to_erase), rows, replay.predictor.n, _unlinked(record, to_erase))


def _unlinked(record: Erased, to_erase: Iterable[bytes]) -> int:
    return sum(record.entries[at].digest is None for at in to_erase)


def _erase_rows(recording: Recording, record: Erased, loaded: LoadedSnapshot) -> int:
    """Delete the rows of all erased entries, and every snapshot but a new one; return their number.

    SQLite overwrites deleted rows. But it may have moved a row earlier, and left a copy in the
    unused part of a page. So the file is rewritten at the end; until then it says that it is not
    finished.
    """
    file, rows = recording.file, 0
    with transaction(file, "EXCLUSIVE"):
        for table in ("input", "answers"):
            rows += sum(
                file.execute(f"DELETE FROM {table} WHERE seq = ?", (entry.seq,)).rowcount
                for entry in record.entries.values()
            )
        delete_snapshots(file)
        facts, at = recording.facts(), loaded.position
        store_snapshot(file, facts, loaded)
        if facts["cursor"].encode() == at.cursor:  # the new learner has learned fewer examples
            file.execute("UPDATE facts SET value = ? WHERE name = 'n'", (str(at.n),))
        write_erased(file, replace(record, is_unfinished=True))
        failpoints.reach("recording-erased")
    file.execute("PRAGMA temp_store = FILE")  # the copy may be larger than the memory
    file.execute("VACUUM")
    failpoints.reach("recording-vacuumed")
    with transaction(file, "EXCLUSIVE"):
        write_erased(file, record)
    return rows


def _listed(
    reader: FeedReader,
    state: FeedState,
    sent: bytes,
    recording: Recording | None,
    record: Erased,
    memory: "_Memory",
) -> dict[bytes, int | None]:
    """Add the entries to erase to the list; return their IDs, with their `seq` if it is known."""
    to_erase = _find(reader, state, sent, recording, record, memory)
    new = {at: seq for at, seq in to_erase.items() if at not in record.entries}
    found = _links(reader, state, record, set(new), recording)
    for at, seq in _seqs(reader, state, record, new).items():
        record.entries[at] = ErasedEntry(seq, *found.get(at, (None, None)))
    record.is_unfinished = False
    return to_erase


class _Memory(NamedTuple):
    """The memory at the position of a feed, and what is erased from it."""

    chunks: list[bytes]  # empty without a memory
    ids: frozenset[str]  # of the person, and of entries whose erasure was interrupted

    @property
    def has_person(self) -> bool:
        """Whether a row has one of the ids."""
        return bool(self.chunks) and rows_of(self.chunks, self.ids) > 0


def _memory_of(reader: FeedReader, state: FeedState, record: Erased, sent: bytes) -> _Memory:
    """Return the memory of a feed: of its newest snapshot, and of the input since."""
    unfinished = (reader.entry(reader.keys.input, at) for at in record.entries)
    ids = [sent, *(id for entry in unfinished if entry is not None for id in _ids(entry))]
    named = frozenset(id.decode(errors="replace") for id in ids)
    replay = restored(reader, state, state.snapshots)
    if replay is None or not replay.predictor.config.has_memory:
        return _Memory([], named)
    with suppress(WorkerError):  # the input since then is gone: its rows are, too
        replay.run(reader, state.position.cursor)
    return _Memory([chunk.data for chunk in replay.predictor.memory_chunks()], named)


def _ids(entry: Entry) -> Iterator[bytes]:
    pairs = zip(entry[1][::2], entry[1][1::2], strict=False)
    return (value for name, value in pairs if name in (b"id", b"for"))


def _find(
    reader: FeedReader,
    state: FeedState,
    sent: bytes,
    recording: Recording | None,
    record: Erased,
    memory: _Memory,
) -> dict[bytes, int | None]:
    """Return the IDs of the entries to erase, with their `seq` if the recording has it."""
    found, waiting = ids_of_person(reader, sent, state.position.cursor)
    if waiting:
        raise BadConfiguration(
            f"feed {reader.keys.feed!r} has not answered {waiting:,} entries of this id: let a "
            f"worker answer them first (online-svm worker {reader.keys.feed}), then stop it"
        )
    to_erase: dict[bytes, int | None] = dict.fromkeys(found)
    records = [record]
    if recording is not None:
        recorded, _ = ids_of_person(recording, sent, feed_state(recording).position.cursor)
        to_erase |= {at: _seq(recording, at) for at in recorded}
        records.append(erased_of(recording))
    for each in records:
        if each.is_unfinished:  # finish the interrupted erasure, of whatever id
            to_erase |= {at: entry.seq for at, entry in each.entries.items()}
    if not to_erase and not memory.has_person:
        raise BadConfiguration(
            f"feed {reader.keys.feed!r} keeps nothing of this id"
            + (
                "; name its recording with --file FILE"
                if recording is None and isinstance(reader, Store)
                else ""
            )
        )
    return to_erase


def _seqs(
    reader: FeedReader, state: FeedState, record: Erased, to_erase: Mapping[bytes, int | None]
) -> dict[bytes, int]:
    """Return the `seq` of each entry: as known, from its answer, or by counting."""
    found = {at: _seq(reader, at) if seq is None else seq for at, seq in to_erase.items()}
    uncounted = [at for at, seq in found.items() if seq is None]
    if uncounted:
        first, cursor = min(uncounted, key=parse_id), state.position.cursor
        later = {entry[0] for entry in reader.each(reader.keys.input, previous_id(first), cursor)}
        later.update(record.between(first, cursor))
        ids = sorted(map(parse_id, later | to_erase.keys()))
        before_all = state.position.seq - len(ids)
        for at in uncounted:
            found[at] = max(0, before_all + bisect_left(ids, parse_id(at)))
    return {at: seq for at, seq in found.items() if seq is not None}


def _seq(reader: FeedReader, entry_id: bytes) -> int | None:
    """Return the `seq` in the answer to an entry; None if that is not kept."""
    found = reader.entry(reader.keys.out, entry_id)
    seq = None if found is None else answer(found).get("seq")
    return seq if isinstance(seq, int) else None


def _links(
    reader: FeedReader,
    state: FeedState,
    record: Erased,
    to_erase: set[bytes],
    recording: Recording | None,
) -> dict[bytes, tuple[Digest, Digest]]:
    """Return the digests after and before each answer to erase, where they can be computed."""
    cursor = state.position.cursor
    own = recording if recording is not None or not isinstance(reader, Recording) else reader
    end = b"0-0" if recording is None else feed_state(recording).position.cursor

    def entries(after: bytes) -> Sequence[Iterable[Entry]]:
        """Return what is recorded, and what the feed has after that."""
        later = max(after, end, key=parse_id)
        return [
            chain(
                () if recording is None else recording.each(stream, after, end),
                reader.each(stream, later, cursor),
            )
            for stream in reader.keys.outputs[:-1]
        ]

    starts = [] if own is None else own.begun()
    if not isinstance(reader, Recording):
        starts.append(START)
    if recording is not None:
        starts += kept_positions(recording, feed_state(recording))
    starts += kept_positions(reader, state)
    sources = (ChainSource(at.digest, at.cursor, entries) for at in starts)
    return link_digests(to_erase, record.entries, sources, state.position.digest)


def _learned_again(
    reader: FeedReader,
    state: FeedState,
    record: Erased,
    memory: _Memory,
    progress: Progress | None,
) -> tuple[Base, Replay, bytes]:
    """Learn a feed again without its erased entries; return the body of the snapshot, too."""
    feed, at = reader.keys.feed, state.position
    oldest = reader.first_entry(reader.keys.input)
    first = at.cursor if oldest is None else min(oldest[0], at.cursor, key=parse_id)
    base, replay = learn_again(
        feed, state, lambda: reader.pages(reader.keys.input, b"0-0", at.cursor),
        record.between(first, at.cursor), first, progress,
    )  # fmt: skip
    if memory.chunks:
        replay.predictor.adopt_rows(memory.chunks, memory.ids)
    # As the position: of all entries so far, also of those that are no longer kept.
    replay.recent.duplicates = max(state.duplicates, replay.recent.duplicates)
    return base, replay, bytes(replay.recent.prepend_to(replay.predictor.snapshot()))
