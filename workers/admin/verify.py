"""Verify: answer the input of a feed again, and compare every byte. It only reads."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from workers.admin.erased_streams import erased_of
from workers.broker.feed_reader import PAGE, FeedReader
from workers.broker.streams import Entry
from workers.errors import BadConfiguration, SnapshotsLost
from workers.feed.position import Position, format_id, parse_id, previous_id
from workers.feed.state import FeedState
from workers.message.entry_decode import EntryFields
from workers.reading.registry import feed_state
from workers.session.answer import Outcome
from workers.session.replay import Replay, compare, entries_of, restored

MAX_DIFFERENCES = 20  # differences that are reported; later ones usually follow from the first


@dataclass(frozen=True, slots=True)
class Difference:
    """An output entry that differs from the recomputed one."""

    stream: str  # key of the stream
    id: bytes
    committed: bytes | None  # None if there is no such entry
    computed: bytes | None  # likewise


@dataclass(slots=True)
class Verification:
    """The result of a comparison."""

    start: Position  # start of the recomputation: the older kept snapshot, or the feed's start
    end: Position  # end of the recomputation
    committed: Position  # the committed position of the feed
    answers: int = 0  # entries of `out` that were compared
    reports: int = 0  # entries of `met` that were compared
    alarms: int = 0  # entries of `alarms` that were compared
    trimmed: int = 0  # recomputed entries that are no longer kept
    has_ids: bool = True  # False if the IDs of early input are unknown; the digest is not compared
    erased: int = 0  # entries that were erased; they cannot be recomputed
    chained: int = 0  # answers before the start, which only the digest proves
    # Of these, answers that the digest does not prove either: it is not known before them, or after
    # an erased entry
    unlinked: int = 0
    differences: list[Difference] = field(default_factory=list)  # the first `MAX_DIFFERENCES`
    n_differences: int = 0

    def note(self, difference: Difference) -> None:
        """Count a difference, and keep it if it is among the first."""
        self.n_differences += 1
        if len(self.differences) < MAX_DIFFERENCES:
            self.differences.append(difference)

    @property
    def is_identical(self) -> bool:
        """Whether everything that was compared is equal, byte for byte."""
        same_end = (self.end.seq, self.end.n) == (self.committed.seq, self.committed.n)
        same_digest = self.end.digest == self.committed.digest or not self.has_ids
        return self.n_differences == 0 and same_end and same_digest


def verify(store: FeedReader) -> Verification:
    """Recompute from the older kept snapshot under the stored settings, and compare all answers.

    Raises BadConfiguration if there is no such feed; StateLost if its state is damaged.
    """
    state = feed_state(store)
    replay = restored(store, state, (state.previous, state.snapshot))
    if replay is None:
        raise SnapshotsLost(
            f"feed {store.keys.feed!r}: no kept snapshot can be used to verify from"
        )
    comparison = Comparison(store, state, replay)
    for outcome in replay.outcomes(store, state.position.cursor):
        comparison.check(outcome)
    return comparison.result()


def verify_history(store: FeedReader, entries: Iterable[EntryFields]) -> Verification:
    """Recompute the whole history from the fields of its input entries, in order, and compare it.

    Payloads do not depend on entry IDs, so the entries may come from a file. The digest does; the
    IDs are taken from the answers that are still in `out`. Entries after the committed position are
    ignored.
    """
    state = feed_state(store)
    if erased_of(store).entries:
        raise BadConfiguration(
            f"entries of feed {store.keys.feed!r} were erased, so its history is no longer that of "
            "a source: verify without --input what is kept"
        )
    rest = iter(entries)
    trimmed = max(0, state.position.seq - store.length(store.keys.out))
    replay = Replay.of(store.keys.feed, state)
    comparison = Comparison(store, state, replay)
    comparison.found.has_ids = trimmed == 0
    for batch in _batches(islice(rest, trimmed)):
        first = replay.position.seq + 1
        numbered = [(b"0-%d" % (first + i), fields) for i, fields in enumerate(batch)]
        comparison.skip(replay.answer(numbered))
    last = state.position.cursor
    for page in store.pages(store.keys.out, b"0-0", last):
        batch = list(islice(rest, len(page)))
        if not batch:
            break
        ids = [entry[0] for entry in page]
        comparison.check(replay.answer(list(zip(ids, batch, strict=False))))
    return comparison.result()


class Comparison:
    """Compares the outcomes of a replay with the streams."""

    def __init__(self, store: FeedReader, state: FeedState, replay: Replay) -> None:
        self.found = Verification(replay.position, replay.position, state.position)
        self.found.erased = len(erased_of(store).entries)
        self.replay, self._store = replay, store
        self._streams = store.keys.outputs[:-1]
        first = {stream: store.first_entry(stream) for stream in self._streams}
        self._oldest = {stream: entry and parse_id(entry[0]) for stream, entry in first.items()}

    def skip(self, outcome: Outcome) -> None:
        """Count recomputed entries that are no longer kept."""
        self.found.trimmed += len(outcome.out) + len(outcome.met) + len(outcome.alarms)
        # The comparison starts at the oldest kept answer.
        oldest = self._oldest[self._streams[0]]
        if oldest is not None:
            self.replay.position = replace(outcome.after, cursor=previous_id(format_id(oldest)))

    def check(self, outcome: Outcome) -> None:
        """Compare recomputed answers, reports and alarms with the committed ones."""
        counts = [
            self._compare(stream, computed, outcome)
            for stream, computed in zip(self._streams, entries_of(outcome), strict=False)
        ]
        self.found.answers += counts[0]
        self.found.reports += counts[1]
        self.found.alarms += counts[2]

    def result(self) -> Verification:
        """Return the result; entries beyond the committed position count as differences."""
        self.found.end = self.replay.position
        for stream in (*self._streams, self._store.keys.dlq):
            for entry in self._beyond(stream):
                self.found.note(Difference(stream, entry[0], b" ".join(entry[1]), None))
        return self.found

    def committed(self, stream: str, after: bytes, upto: bytes) -> Iterable[Entry]:
        """Return the committed entries of a stream in (after, upto]."""
        return self._store.each(stream, after, upto)

    def _compare(self, stream: str, computed: Sequence[Entry], outcome: Outcome) -> int:
        """Compare a stream over the span of a batch; return the number of compared entries."""
        committed = self.committed(stream, outcome.before.cursor, outcome.ids[-1])
        compared = 0
        for pair in compare(committed, computed):
            if pair.stored is None and self.is_trimmed(stream, pair.id):
                self.found.trimmed += 1
                continue
            compared += 1
            payloads = (None if fields is None else fields[1] for fields in pair[1:])
            difference = Difference(stream, pair.id, *payloads)
            if difference.committed != difference.computed:
                self.found.note(difference)
        return compared

    def _beyond(self, stream: str) -> Iterator[Entry]:
        last = self._store.last_entries(stream, 1)
        # Read the position after the last entry, since a running worker commits both at once.
        cursor = feed_state(self._store).position.cursor
        if last and parse_id(cursor) < parse_id(last[0][0]):
            yield from self._store.each(stream, cursor, last[0][0])

    def is_trimmed(self, stream: str, entry_id: bytes) -> bool:
        """Return whether a missing entry was trimmed by retention."""
        oldest = self._oldest[stream]
        return oldest is None or parse_id(entry_id) < oldest


def _batches(rows: Iterator[EntryFields]) -> Iterator[list[EntryFields]]:
    while batch := list(islice(rows, PAGE)):
        yield batch
