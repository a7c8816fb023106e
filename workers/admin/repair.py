"""Make `st` and the output streams of a feed agree again, where that can be proved.

A replay of the input from a snapshot that `st` vouches for gives the only answers there can be.

- The state is behind the answers: it is moved to their end if every answer, report and rejected
  entry beyond it is what the replay gives, byte for byte.
- The state is ahead of the answers: those that are missing are appended, if the replay comes out
  at the digest in the state.

Anything else is refused, and nothing is written.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from online_svm.errors import InvalidSnapshot
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.admin.feeds import FeedInUse, require
from workers.admin.repair_store import Change, RepairStore, dead_letter_fields, refusal
from workers.admin.verify import fresh, settings_of
from workers.broker.batch_size import Entry
from workers.broker.commit_replies import lost
from workers.broker.lease import is_held
from workers.broker.store import Store
from workers.engine import snapshots
from workers.engine.answer import Outcome, process
from workers.engine.consistency import find_ends, last_id
from workers.engine.recovery import check_same
from workers.errors import InvalidStoredSnapshot
from workers.feed.agreement import check_whole
from workers.feed.keys import FIELD
from workers.feed.position import START, Position, parse_id
from workers.feed.recent_ids import RecentIds
from workers.feed.state import FeedState


@dataclass(frozen=True, slots=True)
class Repaired:
    """What was done.

    Attributes
    ----------
    before, after : Position
        Of the state; equal where it was not moved.
    appended : int
        Answers that were missing and are there now.
    """

    before: Position
    after: Position
    appended: int = 0


def repair(store: RepairStore) -> Repaired:
    """Make state and answers of a feed agree, atomically and fenced, or raise.

    Raises
    ------
    NoSuchFeed, FeedInUse
        If there is no such feed, or a live worker holds it.
    StateLost
        If the state is gone or damaged.
    NotRepairable
        If a replay does not give what is there.
    InputLost, ReplayMismatch
        If it does not even give what the state says.
    """
    require(store)
    state = store.state()
    if state is None:
        raise lost(store.keys)
    held = store.call("GET", store.keys.lease) or b""
    if is_held(held):
        raise FeedInUse(f"feed {store.keys.feed!r} is held by a worker: stop it first")
    check_whole(store.keys.feed, state.agreement)
    found, before = find_ends(store, state), state.position
    if found.is_behind:
        return Repaired(before, _moved_forward(store, state, found.out, held))
    appended = _completed(store, state, found.out, held) if found.is_ahead else 0
    return Repaired(before, before, appended)


class _Replay:
    """The input of a feed answered again, from a snapshot that stands at or before an ID."""

    def __init__(self, store: Store, state: FeedState, upto: bytes) -> None:
        self._store, self._limits = store, settings_of(store.keys.feed, state)[1]
        self.position, self._predictor, self._recent = _start(store, state, upto)

    def outcomes(self, upto: bytes) -> Iterator[Outcome]:
        """Yield what the input up to an ID leads to, a page at a time."""
        pages = self._store.pages(self._store.keys.input, self.position.cursor, upto)
        for page in pages if self.position.cursor != upto else ():
            outcome = process(self._predictor, self._limits, self.position, page, self._recent)
            self.position = outcome.after
            yield outcome

    def run(self, upto: bytes) -> Position:
        """Answer the input up to an ID; return where that comes out."""
        for _ in self.outcomes(upto):
            pass
        return self.position


def _moved_forward(store: RepairStore, state: FeedState, end: bytes, held: bytes) -> Position:
    """Move the state to the end of the answers, which must be those of a replay."""
    replay = _Replay(store, state, state.position.cursor)
    check_same(store.keys.feed, replay.run(state.position.cursor), state.position)
    for outcome in replay.outcomes(end):
        _compare(store, outcome)
    if replay.position.cursor != end:
        raise refusal(
            store.keys.feed,
            f"the answers end at {end.decode()}, the input to replay at "
            f"{replay.position.cursor.decode()}",
        )
    for stream in (store.keys.met, store.keys.dlq):
        last = last_id(store, stream)
        if last is not None and parse_id(last) > parse_id(end):
            raise refusal(store.keys.feed, f"{stream} holds {last.decode()}, beyond the answers")
    store.repair(Change(state.epoch, state.position, replay.position, held, end))
    return replay.position


def _completed(store: RepairStore, state: FeedState, end: bytes, held: bytes) -> int:
    """Append the answers that are missing; return how many."""
    upto = state.position.cursor
    # Once to see that it comes out at the digest in the state, and once more to write.
    check_same(store.keys.feed, _Replay(store, state, end).run(upto), state.position)
    ends = [last_id(store, stream) or end for stream in _streams(store)]
    replay = _Replay(store, state, end)
    replay.run(end)
    appended, epoch = 0, state.epoch
    for outcome in replay.outcomes(upto):
        missing = tuple(
            [entry for entry in entries if parse_id(entry[0]) > parse_id(last)]
            for entries, last in zip(_entries(outcome), ends, strict=True)
        )
        store.repair(Change(epoch, state.position, state.position, held, end, missing))
        appended, epoch, end = appended + len(missing[0]), epoch + 1, outcome.ids[-1]
    return appended


def _compare(store: Store, outcome: Outcome) -> None:
    """Raise NotRepairable unless the streams hold, over the span of a page, what it leads to."""
    for stream, computed in zip(_streams(store), _entries(outcome), strict=True):
        pages = store.pages(stream, outcome.before.cursor, outcome.ids[-1])
        stored = [(entry[0], list(entry[1])) for page in pages for entry in page]
        if stored != computed:
            different = [
                entry[0]
                for entry in (*stored, *computed)
                if entry not in stored or entry not in computed
            ]
            first = min(different, key=parse_id, default=outcome.ids[0])
            raise refusal(
                store.keys.feed,
                f"{stream} does not hold at {first.decode()} what answering the input again gives",
            )


def _streams(store: Store) -> tuple[str, str, str]:
    return store.keys.out, store.keys.met, store.keys.dlq


def _entries(outcome: Outcome) -> tuple[list[Entry], list[Entry], list[Entry]]:
    """Return what a commit of an outcome adds to `out`, `met` and `dlq`."""
    name = FIELD.encode()
    return (
        [(at, [name, payload]) for at, payload in zip(outcome.ids, outcome.out, strict=True)],
        [(at, [name, payload]) for at, payload in outcome.met],
        [(letter.id, dead_letter_fields(letter)) for letter in outcome.dlq],
    )


def _start(
    store: Store, state: FeedState, upto: bytes
) -> tuple[Position, OnlinePredictor, RecentIds]:
    """Return the newest good snapshot that stands at or before an ID, restored."""
    for pointer in (state.snapshot, state.previous):
        cursor = START.cursor if pointer is None else pointer.cursor
        if parse_id(cursor) > parse_id(upto):
            continue
        predictor, recent = fresh(store.keys.feed, state)
        if pointer is None:
            return START, predictor, recent
        try:
            stored = snapshots.read(store, pointer, state.agreement.config_hash)
            predictor.restore(recent.restore_from(stored.body))
        except (InvalidStoredSnapshot, InvalidSnapshot):
            continue
        return stored.position, predictor, recent
    raise refusal(store.keys.feed, f"no good snapshot stands at or before {upto.decode()}")
