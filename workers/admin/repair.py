"""Repair: make `st` and the output streams of a feed agree again, as far as a replay proves them.

A replay of the input, from a snapshot whose hash is in `st`, gives the only possible answers.

- If the state is behind the answers, it is moved to their end. Every answer, report and rejected
  entry beyond it must equal the replay, byte for byte.
- If the state is ahead of the answers, the missing answers are appended. The replay must end at
  the digest in the state.
- If they agree and no kept snapshot can be used, the snapshots are forgotten. A replay of all input
  must end at the digest in the state; the next worker makes it again, and keeps a snapshot.

For any other difference an error is raised, and nothing is written.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from workers.broker.commands import Script
from workers.broker.commit_script import STREAM_REFUSALS, lost
from workers.broker.leases import is_held
from workers.broker.pipeline import Argument
from workers.broker.store import Store
from workers.broker.streams import Entry
from workers.errors import NotRepairable, way_back
from workers.feed.pinned_config import check_hash, check_supported
from workers.feed.position import Position, parse_id
from workers.feed.state import FeedState
from workers.reading.registry import FeedInUse, require
from workers.session.answer import Outcome
from workers.session.preflight import find_ends, last_id
from workers.session.replay import Replay, check_same, compare, entries_of, restored

_REPAIR = Script.load("streams", "repair")


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result of a repair."""

    before: Position  # of the state
    after: Position  # of the state; equal if it was not moved
    appended: int = 0  # number of missing answers that were appended
    dropped: bool = False  # whether the unusable snapshots were forgotten


@dataclass(frozen=True, slots=True)
class Change:
    """The writes of a repair, and the values that must be unchanged when they happen."""

    epoch: int  # in `st`
    before: Position  # in `st`
    after: Position  # written to `st`
    lease: bytes  # lease of a worker that has ended; empty if there is none
    end: bytes  # last ID added to `out`
    # Entries to append to `out`, `met`, `alarms` and `dlq`
    missing: tuple[Sequence[Entry], ...] = ((), (), (), ())
    drops_snapshots: bool = False


def repair(store: Store) -> Repaired:
    """Make state and answers of a feed agree, atomically and fenced.

    Raises BadConfiguration if an earlier version began it; NoSuchFeed, FeedInUse if there is no
    such feed, or a live worker holds it; StateLost if the state is gone or damaged;
    NotRepairable if a replay does not give the stored answers; InputLost, ReplayMismatch if a
    replay does not reach the committed state.
    """
    require(store)
    state = store.state()
    if state is None:
        raise lost(store.keys)
    held = store.lease_value() or b""
    if is_held(held):
        raise FeedInUse(f"feed {store.keys.feed!r} is held by a worker: stop it first")
    check_hash(store.keys.feed, state.pinned)
    check_supported(store.keys.feed, state.pinned)
    found, before = find_ends(store, state), state.position
    if found.is_behind:
        return Repaired(before, _move_state_forward(store, state, found.out, held))
    if found.is_ahead:
        return Repaired(before, before, _append_missing(store, state, found.out, held))
    if restored(store, state, [state.snapshot, state.previous]) is not None:
        return Repaired(before, before)
    _drop_snapshots(store, state, found.out, held)
    return Repaired(before, before, dropped=True)


def _move_state_forward(store: Store, state: FeedState, end: bytes, held: bytes) -> Position:
    """Move the state to the end of the answers, which must equal a replay."""
    replay = _replay_from(store, state, state.position.cursor)
    check_same(store.keys.feed, replay.run(store, state.position.cursor), state.position)
    for outcome in replay.outcomes(store, end):
        _check_stored(store, outcome)
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
    write_change(store, Change(state.epoch, state.position, replay.position, held, end))
    return replay.position


def _append_missing(store: Store, state: FeedState, end: bytes, held: bytes) -> int:
    upto = state.position.cursor
    # Replay twice: first to check that it ends at the digest in the state, then to write.
    check_same(store.keys.feed, _replay_from(store, state, end).run(store, upto), state.position)
    ends = [last_id(store, stream) or end for stream in store.keys.outputs]
    replay = _replay_from(store, state, end)
    replay.run(store, end)
    appended, epoch = 0, state.epoch
    for outcome in replay.outcomes(store, upto):
        missing = tuple(
            [entry for entry in entries if parse_id(entry[0]) > parse_id(last)]
            for entries, last in zip(entries_of(outcome), ends, strict=True)
        )
        write_change(store, Change(epoch, state.position, state.position, held, end, missing))
        appended, epoch, end = appended + len(missing[0]), epoch + 1, outcome.ids[-1]
    return appended


def _drop_snapshots(store: Store, state: FeedState, end: bytes, held: bytes) -> None:
    """Forget snapshots that cannot be used, if all input gives the committed answers again."""
    replay, at = restored(store, state, [None]), state.position
    assert replay is not None
    check_same(store.keys.feed, replay.run(store, at.cursor), at)
    write_change(store, Change(state.epoch, at, at, held, end, drops_snapshots=True))


def _check_stored(store: Store, outcome: Outcome) -> None:
    """Raise NotRepairable unless the streams have the entries of an outcome, and no others."""
    for stream, computed in zip(store.keys.outputs, entries_of(outcome), strict=True):
        stored = store.each(stream, outcome.before.cursor, outcome.ids[-1])
        different = [pair.id for pair in compare(stored, computed) if not pair.is_same]
        if different:
            first = min(different, key=parse_id)
            raise refusal(
                store.keys.feed,
                f"{stream} does not hold at {first.decode()} what answering the input again gives",
            )


def _replay_from(store: Store, state: FeedState, upto: bytes) -> Replay:
    """Return a replay from the newest valid snapshot at or before an ID."""
    early = [
        pointer
        for pointer in (state.snapshot, state.previous)
        if pointer is None or parse_id(pointer.cursor) <= parse_id(upto)
    ]
    replay = restored(store, state, early)
    if replay is None:
        raise refusal(store.keys.feed, f"no good snapshot stands at or before {upto.decode()}")
    return replay


def write_change(store: Store, change: Change) -> None:
    """Write a change atomically; the epoch grows by one.

    Raises FeedInUse if a worker took over the feed or wrote to it meanwhile; StateLost if the state
    is gone; NotRepairable if a stream accepts no such entry. Nothing was written then.
    """
    keys, after = store.keys, change.after
    named = [keys.state, keys.input, *keys.outputs, keys.lease]
    args: list[Argument] = [change.epoch, change.before.cursor, change.lease, change.end]
    args += [after.cursor, after.seq, after.n, after.digest.hex(), int(change.drops_snapshots)]
    args += [len(entries) for entries in change.missing]
    *payloads, dead_letters = change.missing
    args += [part for entries in payloads for at, fields in entries for part in (at, fields[1])]
    args += [part for at, fields in dead_letters for part in (at, *fields)]
    code, *detail = store.run(_REPAIR, named, args)
    if code == b"OK":
        return
    if code == b"LOST":
        raise lost(keys)
    if code in STREAM_REFUSALS:
        stream = " ".join(part.decode() for part in detail)
        raise refusal(keys.feed, f"nothing can be added to {stream}")
    raise FeedInUse(
        f"feed {keys.feed!r} was taken or written to meanwhile: stop its worker, and run this "
        "command again"
    )


def refusal(feed: str, reason: str) -> NotRepairable:
    """Return the error for a feed that cannot be repaired, with the alternatives."""
    return NotRepairable(
        f"feed {feed!r} cannot be repaired: {reason}. Nothing was written; {way_back(feed)}"
    )
