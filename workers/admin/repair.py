"""Repair: make `st` and the output streams of a feed agree again, where a replay proves them.

A replay of the input, from a snapshot whose hash is in `st`, gives the only possible answers.

- If the state is behind the answers, it is moved to their end. Every answer, report and rejected
  entry beyond it must equal the replay, byte for byte.
- If the state is ahead of the answers, the missing answers are appended. The replay must end at
  the digest in the state.

Any other difference is refused, and nothing is written.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from online_svm.errors import InvalidSnapshot
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.admin.repair_store import Change, RepairStore, dead_letter_fields, refusal
from workers.admin.verify import fresh, settings_of
from workers.broker.batch_size import Entry
from workers.broker.commit_replies import lost
from workers.broker.lease import is_held
from workers.broker.store import Store
from workers.engine.consistency import find_ends, last_id
from workers.engine.recovery import check_same
from workers.errors import InvalidStoredSnapshot
from workers.feed.agreement import check_computed, check_whole
from workers.feed.keys import FIELD
from workers.feed.position import START, Position, parse_id
from workers.feed.recent_ids import RecentIds
from workers.feed.state import FeedState
from workers.reading.holder import FeedInUse
from workers.reading.registry import require
from workers.session import snapshots
from workers.session.answer import Outcome, process


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result of a repair.

    Attributes
    ----------
    before, after : Position
        Of the state; equal if it was not moved.
    appended : int
        Number of missing answers that were appended.
    """

    before: Position
    after: Position
    appended: int = 0


def repair(store: RepairStore) -> Repaired:
    """Make state and answers of a feed agree, atomically and fenced, or raise.

    Raises
    ------
    BadConfiguration
        If its semantics were given up.
    NoSuchFeed, FeedInUse
        If there is no such feed, or a live worker holds it.
    StateLost
        If the state is gone or damaged.
    NotRepairable
        If a replay does not give the stored answers.
    InputLost, ReplayMismatch
        If a replay does not even reach the committed state.
    """
    require(store)
    state = store.state()
    if state is None:
        raise lost(store.keys)
    held = store.call("GET", store.keys.lease) or b""
    if is_held(held):
        raise FeedInUse(f"feed {store.keys.feed!r} is held by a worker: stop it first")
    check_whole(store.keys.feed, state.agreement)
    check_computed(store.keys.feed, state.agreement)
    found, before = find_ends(store, state), state.position
    if found.is_behind:
        return Repaired(before, _move_state_forward(store, state, found.out, held))
    appended = _append_missing(store, state, found.out, held) if found.is_ahead else 0
    return Repaired(before, before, appended)


class _Replay:
    """Answers the input of a feed again, from a snapshot at or before an ID."""

    def __init__(self, store: Store, state: FeedState, upto: bytes) -> None:
        self._store, self._limits = store, settings_of(store.keys.feed, state)[1]
        self.position, self._predictor, self._recent = _start(store, state, upto)

    def outcomes(self, upto: bytes) -> Iterator[Outcome]:
        """Yield the outcomes of the input up to an ID, a page at a time."""
        pages = self._store.pages(self._store.keys.input, self.position.cursor, upto)
        for page in pages if self.position.cursor != upto else ():
            outcome = process(self._predictor, self._limits, self.position, page, self._recent)
            self.position = outcome.after
            yield outcome

    def run(self, upto: bytes) -> Position:
        """Answer the input up to an ID; return the position after it."""
        for _ in self.outcomes(upto):
            pass
        return self.position


def _move_state_forward(store: RepairStore, state: FeedState, end: bytes, held: bytes) -> Position:
    """Move the state to the end of the answers, which must equal those of a replay."""
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
    for stream in store.keys.outputs[1:]:
        last = last_id(store, stream)
        if last is not None and parse_id(last) > parse_id(end):
            raise refusal(store.keys.feed, f"{stream} holds {last.decode()}, beyond the answers")
    store.repair(Change(state.epoch, state.position, replay.position, held, end))
    return replay.position


def _append_missing(store: RepairStore, state: FeedState, end: bytes, held: bytes) -> int:
    """Append the missing answers; return how many."""
    upto = state.position.cursor
    # Replay twice: first to check that it ends at the digest in the state, then to write.
    check_same(store.keys.feed, _Replay(store, state, end).run(upto), state.position)
    ends = [last_id(store, stream) or end for stream in store.keys.outputs]
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
    """Raise NotRepairable unless the streams have the entries of an outcome, and no others."""
    for stream, computed in zip(store.keys.outputs, _entries(outcome), strict=True):
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


def _entries(outcome: Outcome) -> tuple[list[Entry], ...]:
    """Return the entries that a commit of an outcome adds to `out`, `met`, `alarms` and `dlq`."""
    name = FIELD.encode()
    return (
        [(at, [name, payload]) for at, payload in zip(outcome.ids, outcome.out, strict=True)],
        [(at, [name, payload]) for at, payload in outcome.met],
        [(at, [name, payload]) for at, payload in outcome.alarms],
        [(entry.id, dead_letter_fields(entry)) for entry in outcome.dlq],
    )


def _start(
    store: Store, state: FeedState, upto: bytes
) -> tuple[Position, OnlinePredictor, RecentIds]:
    """Return the predictor restored from the newest good snapshot at or before an ID."""
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
