"""Verify: answer the input of a feed again, and compare every byte. Reads only."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.admin.erase.record import erased_of
from workers.admin.verification import MAX_DIFFERENCES, Difference, Verification
from workers.broker.batch_size import Entry
from workers.broker.feed_reader import PAGE
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.errors import BadConfiguration, InvalidStoredSnapshot, SnapshotsLost
from workers.feed.position import START, Position, parse_id
from workers.feed.recent_ids import RecentIds
from workers.feed.state import FeedState
from workers.feed.stored_settings import stored_settings
from workers.message.decode import Fields
from workers.reading.answers import newest
from workers.reading.registry import require
from workers.session import snapshots
from workers.session.answer import Outcome, process


def verify(store: Store) -> Verification:
    """Recompute from the older kept snapshot, and compare all answers since then.

    The stored configuration is used.

    Raises
    ------
    BadConfiguration
        If there is no such feed.
    StateLost
        If its state is damaged.
    """
    state = feed_state(store)
    comparison = Comparison(store, state, *_start(store, state))
    if comparison.position.cursor != state.position.cursor:
        for page in store.pages(
            store.keys.input, comparison.position.cursor, state.position.cursor
        ):
            comparison.check(comparison.answer(page))
    return comparison.result()


def verify_history(store: Store, entries: Iterable[Fields]) -> Verification:
    """Recompute the whole history from the fields of its input entries, in order.

    Payloads do not depend on entry IDs, so the entries may come from a file. For the digest, the
    IDs are taken from the answers that are still in `out`.

    Parameters
    ----------
    store : Store
    entries : iterable of fields
        As they were pushed; entries after the committed position are ignored.
    """
    state = feed_state(store)
    if erased_of(store).entries:
        raise BadConfiguration(
            f"entries of feed {store.keys.feed!r} were erased, so its history is no longer that of "
            "a source: give its archive, or verify without --input what is kept"
        )
    rest = iter(entries)
    trimmed = max(0, state.position.seq - store.length(store.keys.out))
    comparison = Comparison(store, state, START, *fresh(store.keys.feed, state))
    comparison.found.has_ids = trimmed == 0
    for batch in _batches(islice(rest, trimmed)):
        first = comparison.position.seq + 1
        numbered = [(b"0-%d" % (first + i), fields) for i, fields in enumerate(batch)]
        comparison.skip(comparison.answer(numbered))
    last = state.position.cursor
    for page in store.pages(store.keys.out, b"0-0", last) if state.position.seq else ():
        batch = list(islice(rest, len(page)))
        if not batch:
            break
        ids = [entry[0] for entry in page]
        comparison.check(comparison.answer(list(zip(ids, batch, strict=False))))
    return comparison.result()


class Comparison:
    """Compares recomputed outcomes with the streams."""

    def __init__(
        self,
        store: Store,
        state: FeedState,
        start: Position,
        predictor: OnlinePredictor,
        recent: RecentIds,
    ) -> None:
        self.position = start
        self.found = Verification(start, start, state.position)
        self.found.erased = len(erased_of(store).entries)
        self._store, self._limits = store, settings_of(store.keys.feed, state)[1]
        self._predictor, self._recent = predictor, recent
        self._streams = store.keys.outputs[:-1]
        self._oldest = {stream: self._first_kept(stream) for stream in self._streams}

    def answer(self, entries: Sequence[tuple[bytes, Fields]]) -> Outcome:
        """Recompute the answers to the next entries."""
        outcome = process(self._predictor, self._limits, self.position, entries, self._recent)
        self.position = outcome.after
        return outcome

    def skip(self, outcome: Outcome) -> None:
        """Count answers that are no longer kept."""
        self.found.trimmed += len(outcome.out) + len(outcome.met) + len(outcome.alarms)
        # The comparison begins at the oldest answer that is kept.
        oldest = self._oldest[self._streams[0]]
        if oldest is not None:
            self.position = replace(outcome.after, cursor=_just_before(oldest))

    def check(self, outcome: Outcome) -> None:
        """Compare recomputed answers, reports and alarms with the committed ones."""
        out, met, alarms = self._streams
        answers = dict(zip(outcome.ids, outcome.out, strict=True))
        self.found.answers += self._compare(out, answers, outcome)
        self.found.reports += self._compare(met, dict(outcome.met), outcome)
        self.found.alarms += self._compare(alarms, dict(outcome.alarms), outcome)

    def result(self) -> Verification:
        """Return the result; entries beyond the committed position count as differences."""
        self.found.end = self.position
        for stream in (*self._streams, self._store.keys.dlq):
            for page in self._beyond(stream):
                for entry in page:
                    self._note(Difference(stream, entry[0], b" ".join(entry[1]), None))
        return self.found

    def committed(self, stream: str, after: bytes, upto: bytes) -> Iterable[Entry]:
        """Return the committed entries of a stream in (after, upto]."""
        return (entry for page in self._store.pages(stream, after, upto) for entry in page)

    def _compare(self, stream: str, computed: dict[bytes, bytes], outcome: Outcome) -> int:
        """Compare one stream over the span of a batch; return the number of entries compared."""
        found = self.committed(stream, outcome.before.cursor, outcome.ids[-1])
        committed = {entry[0]: entry[1][1] for entry in found}
        compared = 0
        for entry_id in dict.fromkeys((*computed, *committed)):
            if entry_id not in committed and self.is_trimmed(stream, entry_id):
                self.found.trimmed += 1
                continue
            compared += 1
            difference = Difference(
                stream, entry_id, committed.get(entry_id), computed.get(entry_id)
            )
            if difference.committed != difference.computed:
                self._note(difference)
        return compared

    def _beyond(self, stream: str) -> Iterator[list[Entry]]:
        """Yield the entries of an output stream beyond the committed position."""
        last = newest(self._store, stream, 1)
        # Read the position after the entry: a worker may be running, and commits both at once.
        cursor = feed_state(self._store).position.cursor
        if last and parse_id(cursor) < parse_id(last[0][0]):
            yield from self._store.pages(stream, cursor, last[0][0])

    def _note(self, difference: Difference) -> None:
        self.found.n_differences += 1
        if len(self.found.differences) < MAX_DIFFERENCES:
            self.found.differences.append(difference)

    def _first_kept(self, stream: str) -> tuple[int, int] | None:
        oldest = self._store.call("XRANGE", stream, "-", "+", "COUNT", 1)
        return parse_id(oldest[0][0]) if oldest else None

    def is_trimmed(self, stream: str, entry_id: bytes) -> bool:
        """Return whether a missing entry was trimmed by retention."""
        oldest = self._oldest[stream]
        return oldest is None or parse_id(entry_id) < oldest


def _just_before(entry_id: tuple[int, int]) -> bytes:
    time, count = entry_id
    return b"%d-%d" % ((time, count - 1) if count else (time - 1, 2**64 - 1))


def feed_state(store: Store) -> FeedState:
    """Return the state of a feed, which must have one."""
    require(store)
    state = store.state()
    if state is None:
        feed = store.keys.feed
        raise BadConfiguration(f"feed {feed!r} has no answers yet: online-svm worker {feed}")
    return state


def _start(store: Store, state: FeedState) -> tuple[Position, OnlinePredictor, RecentIds]:
    """Return the oldest point from which recomputing can start."""
    for pointer in (state.previous, state.snapshot):
        predictor, recent = fresh(store.keys.feed, state)
        if pointer is None:
            return START, predictor, recent
        try:
            stored = snapshots.read(store, pointer, state.agreement.config_hash)
            predictor.restore(recent.restore_from(stored.body))
        except (InvalidStoredSnapshot, InvalidSnapshot):
            continue
        return stored.position, predictor, recent
    raise SnapshotsLost(f"feed {store.keys.feed!r}: no kept snapshot can be used to verify from")


def settings_of(feed: str, state: FeedState) -> tuple[PredictorConfig, Limits]:
    """Return the settings of a feed.

    Raises
    ------
    BadConfiguration
        If the feed is a combination, or has semantics that this version does not compute.
    """
    stored = stored_settings(feed, state.agreement)
    if stored is None:
        raise BadConfiguration(
            "the feed is a combination: verify its sources, and combine them into another feed to "
            "compare the answers"
        )
    return stored


def fresh(feed: str, state: FeedState) -> tuple[OnlinePredictor, RecentIds]:
    """Return the start of a feed: a predictor that has learned nothing, and no ids."""
    config, limits = settings_of(feed, state)
    return OnlinePredictor(config), RecentIds(limits.dedupe_window)


def _batches(rows: Iterator[Fields]) -> Iterator[list[Fields]]:
    while batch := list(islice(rows, PAGE)):
        yield batch
