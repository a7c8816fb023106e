"""Replay: restore a snapshot, answer the input since then again, compare with the stored answers.

Recovery, `verify`, `repair`, `explain`, `erase` and `backtest` use it with different starts and
inputs, and differ in how they treat a difference.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from heapq import merge
from operator import itemgetter
from types import MappingProxyType
from typing import NamedTuple

from online_svm.errors import InvalidSnapshot
from online_svm.predictor.batch import Waits, finished
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.broker.feed_reader import FeedReader
from workers.broker.streams import Entry, payload
from workers.config.settings import Limits
from workers.errors import (
    InputLost,
    InvalidStoredSnapshot,
    ReplayMismatch,
    StateLost,
    way_back,
)
from workers.feed.keys import FIELD
from workers.feed.position import ALARMS, MET, OUT, START, Digest, Position, chain, parse_id
from workers.feed.recent_ids import RecentIds
from workers.feed.state import FeedState, Pointer
from workers.feed.stored_settings import stored_settings
from workers.message.entry_decode import EntryFields
from workers.session import snapshots
from workers.session.answer import AnsweredBatch, Outcome, answering, processing
from workers.session.snapshots import Fetched, LoadedSnapshot

OnUnusable = Callable[[Pointer, InvalidStoredSnapshot], None]
"""Called with each unusable snapshot and the reason."""


class Replay:
    """An untrained predictor and its position in a feed; answers the entries that follow.

    Examples
    --------
    >>> from online_svm.config import PredictorConfig
    >>> replay = Replay(OnlinePredictor(PredictorConfig()), Limits())
    >>> outcome = replay.answer([(b"7-0", [b"x", b"[1]", b"y", b"a"])])
    >>> replay.position.cursor, replay.position.seq, len(outcome.out)
    (b'7-0', 1, 1)
    """

    def __init__(self, predictor: OnlinePredictor, limits: Limits) -> None:
        self.predictor, self.limits = predictor, limits
        self.recent = RecentIds(limits.dedupe_window, predictor.config.takes_delayed_labels)
        self.position = START  # of the predictor and of `recent`

    @classmethod
    def of(cls, feed: str, state: FeedState) -> "Replay":
        """Return a replay at the start of a feed, with its stored settings.

        Raises BadConfiguration as `stored_settings`.
        """
        config, limits = stored_settings(feed, state.pinned)
        return cls(OnlinePredictor(config), limits)

    def restore(self, stored: LoadedSnapshot) -> None:
        """Continue from a snapshot. After InvalidStoredSnapshot this replay cannot be used."""
        try:
            self.predictor.restore(self.recent.restore_from(stored.body), stored.chunks)
        except InvalidSnapshot as error:
            raise InvalidStoredSnapshot(str(error)) from error
        self.position = stored.position

    def answer(self, entries: Sequence[tuple[bytes, EntryFields]]) -> Outcome:
        """Answer the next entries."""
        return finished(self.answering(entries))

    def answering(self, entries: Sequence[tuple[bytes, EntryFields]]) -> Waits[Outcome]:
        """Do `answer` in steps; see `OnlinePredictor.processing`."""
        outcome = yield from processing(
            self.predictor, self.limits, self.position, entries, self.recent
        )
        self.position = outcome.after
        return outcome

    def predict(self, entries: Sequence[tuple[bytes, EntryFields]]) -> AnsweredBatch:
        """Answer the next entries without encoding payloads; cursor and digest do not change."""
        seq = self.position.seq
        answered = finished(answering(self.predictor, self.limits, seq, entries, self.recent))
        self.position = replace(self.position, seq=seq + len(entries), n=self.predictor.n)
        return answered

    def input(self, store: FeedReader, upto: bytes) -> Iterator[list[Entry]]:
        """Return the pages of stored input from the position to an ID."""
        if parse_id(upto) <= parse_id(self.position.cursor):
            return iter(())
        return store.pages(store.keys.input, self.position.cursor, upto)

    def outcomes(self, store: FeedReader, upto: bytes) -> Iterator[Outcome]:
        """Answer the stored input up to an ID; yield the outcome of each page."""
        return map(self.answer, self.input(store, upto))

    def run(self, store: FeedReader, upto: bytes) -> Position:
        """Answer the stored input up to an ID; return the position after it."""
        for _ in self.outcomes(store, upto):
            pass
        return self.position


def restored(
    store: FeedReader,
    state: FeedState,
    candidates: Iterable[Pointer | None],
    begin: Callable[[], Replay] | None = None,
    fetched: Fetched | None = None,
    on_unusable: OnUnusable | None = None,
) -> Replay | None:
    """Return a replay at the first usable candidate; None if all are unusable.

    Parameters
    ----------
    candidates : iterable of (Pointer or None)
        None stands for the start of the feed, which is always usable.
    begin : callable, optional
        Returns a replay at the start of the feed; default `Replay.of`.
    """
    config_hash = state.pinned.config_hash
    for pointer in candidates:
        replay = Replay.of(store.keys.feed, state) if begin is None else begin()
        if pointer is None:
            return replay
        try:
            found = fetched.pop((pointer, config_hash), None) if fetched else None
            replay.restore(found or snapshots.read(store, pointer, config_hash))
        except InvalidStoredSnapshot as error:
            if on_unusable is not None:
                on_unusable(pointer, error)
            continue
        return replay
    return None


def kept_positions(store: FeedReader, state: FeedState) -> Iterator[Position]:
    """Yield the positions of the readable snapshots, newest first."""
    for pointer in state.snapshots:
        with suppress(InvalidStoredSnapshot):
            yield snapshots.read(store, pointer, state.pinned.config_hash).position


class Compared(NamedTuple):
    """One entry of a stream, as stored and as recomputed."""

    id: bytes
    stored: list[bytes] | None  # flat fields; None if there is no such entry
    computed: list[bytes] | None

    @property
    def is_same(self) -> bool:
        """Whether both exist and are equal byte for byte."""
        return self.stored == self.computed


def compare(stored: Iterable[Entry], computed: Iterable[Entry]) -> Iterator[Compared]:
    """Yield each entry that is stored or computed."""
    old = {at: list(fields) for at, fields in stored}
    new = {at: list(fields) for at, fields in computed}
    for at in dict.fromkeys((*new, *old)):
        yield Compared(at, old.get(at), new.get(at))


class ChainLink(NamedTuple):
    """One entry of the digest chain."""

    id: bytes
    is_answer: bool  # False: a report or alarms
    is_erased: bool
    digest: Digest | None  # after this entry; None after an erased entry without a stored digest


def links(
    digest: Digest,
    streams: Sequence[Iterable[Entry]],
    erased: Mapping[bytes, Digest | None] = MappingProxyType({}),
) -> Iterator[ChainLink]:
    """Follow the chain from a digest through answers, reports and alarms, in that order at one ID.

    `erased` has the stored digests of erased entries after the start, whose answers are gone.
    """
    kinds = (OUT, MET, ALARMS)
    present = [_numbered(stream, index) for index, stream in enumerate(streams)]
    gaps = ((parse_id(at), 0, (at, None)) for at in sorted(erased, key=parse_id))
    current: Digest | None = digest
    for _, index, (at, data) in merge(gaps, *present, key=itemgetter(0, 1)):
        if data is None:
            current = erased[at]
        elif current is not None:
            current = chain(current, [(kinds[index], at, data)])
        yield ChainLink(at, index == 0, data is None, current)


def _numbered(
    stream: Iterable[Entry], index: int
) -> Iterator[tuple[tuple[int, int], int, tuple[bytes, bytes | None]]]:
    for entry in stream:
        yield parse_id(entry[0]), index, (entry[0], payload(entry))


def entries_of(outcome: Outcome) -> tuple[list[Entry], ...]:
    """Return the entries that committing an outcome adds to `out`, `met`, `alarms` and `dlq`."""
    name = FIELD.encode()
    return (
        [(at, [name, payload]) for at, payload in zip(outcome.ids, outcome.out, strict=True)],
        [(at, [name, payload]) for at, payload in outcome.met],
        [(at, [name, payload]) for at, payload in outcome.alarms],
        [(letter.id, letter.fields) for letter in outcome.dlq],
    )


def check_same(feed: str, computed: Position, committed: Position) -> None:
    """Raise unless a replay ended at the committed position.

    Raises InputLost if the replay read fewer or other entries than were answered; ReplayMismatch if
    it read as many entries but computed other bytes; StateLost if the bytes are equal but the
    number of learned examples is not.
    """
    if (computed.cursor, computed.seq) != (committed.cursor, committed.seq):
        raise InputLost(
            f"feed {feed!r}: {committed.seq} input entries were answered up to "
            f"{committed.cursor.decode()}, but a replay reaches {computed.seq} at "
            f"{computed.cursor.decode()}: input was trimmed, deleted or added. Put it back, "
            f"or {way_back(feed)}"
        )
    if computed.digest != committed.digest:
        raise ReplayMismatch(
            f"feed {feed!r}: answering the input again gives other bytes than were committed "
            f"(digest {computed.digest.hex()[:16]}, committed {committed.digest.hex()[:16]}): the "
            "installation or the stored data changed. online-svm verify shows the first difference"
        )
    if computed.n != committed.n:
        raise StateLost(
            f"feed {feed!r}: its state is damaged: field 'n' is {committed.n}, but a replay that "
            f"gives the same answers learns {computed.n}; "
            f"{way_back(feed)}"
        )
