"""Restore: set a feed back to its recording."""

from dataclasses import dataclass

from workers.admin.erased_streams import erased_of, write
from workers.broker.store import Store
from workers.errors import (
    BadConfiguration,
)
from workers.feed.position import Position, parse_id
from workers.push.convention import keep_convention, stored_convention
from workers.reading.lag import lag
from workers.reading.registry import check_not_in_use
from workers.recording.begin import RestorePoint, put_back
from workers.recording.reader import Recording


@dataclass(frozen=True, slots=True)
class Restored:
    """The position of a restored feed, its answers, and its waiting input."""

    position: Position
    answers: int  # answers in Redis, all at or before the position
    waiting: int  # input entries after the position, which a worker will answer
    waiting_is_at_least: bool  # whether `waiting` is a lower bound: counting stopped


def restore(
    store: Store, recording: Recording, overwrite: bool = False, force: bool = False
) -> Restored:
    """Set a feed back to its recording: to the newest snapshot, with the input after it.

    Answers in Redis up to that position stay. If Redis has lost the input after it, the recorded
    input is put back, and a worker answers it again. `overwrite` permits to replace a state,
    `force` to do so while a live worker holds the feed, which will exit.

    Raises BadConfiguration if the recording is of another feed, or of an earlier version,
    or the feed exists and may not be overwritten; FeedInUse if a live worker holds it;
    OutputAhead, WrongKeyType if there are answers after the position, or a key has another type.
    """
    feed = store.keys.feed
    if recording.keys.feed != feed:
        raise BadConfiguration(
            f"the file is of feed {recording.keys.feed!r}: online-svm restore "
            f"{recording.keys.feed} FILE"
        )
    point = RestorePoint.of(recording)
    check_not_in_use(store, force)
    put_back(store, point, overwrite)
    keep_convention(store, stored_convention(recording))
    record = erased_of(recording)
    if record.entries:
        write(store, record)
    _put_input_back(store, recording, point.position.cursor)
    waits = lag(store)
    return Restored(point.position, store.length(store.keys.out), waits.entries, waits.is_at_least)


def _put_input_back(store: Store, recording: Recording, cursor: bytes) -> None:
    """Append the recorded input after a position, unless Redis has input after it."""
    key = store.keys.input
    if parse_id(store.newest_id(key)) <= parse_id(cursor):
        for page in recording.pages(recording.keys.input, cursor):
            store.append(key, page)


def exists(store: Store) -> bool:
    """Return whether a restore would replace a state."""
    return store.keys.state in store.types()
