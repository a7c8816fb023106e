"""Restore: set a feed back to the position of its backup, or begin a feed with a trained model."""

import json
from dataclasses import dataclass
from pathlib import Path

from online_svm.errors import InvalidSnapshot
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.storage.saved_model import SavedModel, stored_config
from workers.admin.backup import Backup, InvalidBackup
from workers.broker.commands import Script
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.errors import (
    BadConfiguration,
    ConfigurationChanged,
    OutputAhead,
    StateLost,
    Unavailable,
    WorkerError,
    WrongKeyType,
)
from workers.feed.pinned_config import changes, check_supported, pinned_config
from workers.feed.position import Position
from workers.feed.retention import KeptBytes
from workers.feed.state import RETENTION, FeedState, Pointer, initial_fields
from workers.push.feed_convention import keep_convention
from workers.reading.lag import lag
from workers.reading.registry import check_not_in_use
from workers.session import snapshots
from workers.session.known_feeds import KnownFeeds
from workers.session.preflight import find
from workers.session.snapshots import parts_of

_RESTORE = Script.load("streams", "restore")


@dataclass(frozen=True, slots=True)
class Restored:
    """The position of a restored feed, its answers, and its waiting input."""

    position: Position
    answers: int  # answers in Redis, all at or before the position
    waiting: int  # input entries after the position, which a worker will answer
    waiting_is_at_least: bool  # whether `waiting` is a lower bound: counting stopped


def restore(store: Store, backup: Backup, overwrite: bool = False, force: bool = False) -> Restored:
    """Set a feed back to the position of a backup.

    Answers up to that position stay; the input after it is answered next. `overwrite` permits to
    replace a state, `force` to do so while a live worker holds the feed, which will exit.

    Raises BadConfiguration if the backup is of another feed, its semantics are no longer supported,
    or the feed exists and may not be overwritten; FeedInUse if a live worker holds it; OutputAhead,
    WrongKeyType if there are answers after the position of the backup, or a key has another type.
    """
    feed = store.keys.feed
    if backup.feed != feed:
        raise BadConfiguration(
            f"the backup is of feed {backup.feed!r}: online-svm restore {backup.feed} FILE"
        )
    check_supported(feed, backup.pinned)
    check_not_in_use(store, force)
    position = backup.position
    before = set(store.snapshot_keys())
    pointer = Pointer(
        position.n, backup.pointer.sha256, position.cursor, parts_of(len(backup.data))
    )
    parts = pointer.keys(store.keys)
    store.finish_snapshot(store.put_snapshot(pointer, backup.data))
    fields = _fields(backup, position, pointer, _replaced(store))
    reply = store.run(
        _RESTORE,
        [store.keys.state, store.keys.input, *store.keys.outputs, *parts],
        [position.cursor, position.seq, int(overwrite), *fields],
    )
    if reply[0] != b"OK":
        raise _refusal(store.keys.feed, position, [part.decode() for part in reply])
    store.register()
    keep_convention(store, backup.table)
    for key in before - set(parts):
        store.delete(key)
    waits = lag(store)
    return Restored(position, store.length(store.keys.out), waits.entries, waits.is_at_least)


def exists(store: Store) -> bool:
    """Return whether a restore would replace a state."""
    return store.keys.state in store.types()


def _replaced(store: Store) -> FeedState | None:
    """Return the state that this restore replaces; None if there is none, or it is damaged."""
    try:
        return store.state()
    except (StateLost, BadConfiguration):
        return None


def _fields(
    backup: Backup, position: Position, pointer: Pointer, before: FeedState | None
) -> list[bytes | str | int]:
    """Return names and values of the hash `st`; both snapshot pointers name this snapshot.

    Byte counts and retention stay as in the replaced state: the output streams stay, and the
    retention may have been changed since the backup.
    """
    kept = KeptBytes() if before is None else before.kept
    retention = backup.retention if before is None else before.retention or backup.retention
    stored = () if retention is None else (RETENTION, retention.model_dump_json())
    return [
        *initial_fields(backup.pinned),
        *stored,
        *(part for pair in kept.changes(KeptBytes()).items() for part in pair),
        *("cursor", position.cursor, "seq", position.seq, "n", position.n),
        *("digest", position.digest.hex()),
        *("snapshot", pointer.encode(), "previous", pointer.encode()),
        *("epoch", backup.epoch, "writer", "restore"),
    ]


def _refusal(feed: str, position: Position, reply: list[str]) -> WorkerError:
    """Return the error for a reply of the script."""
    if reply[0] == "EXISTS":
        return BadConfiguration(f"feed {feed!r} exists: say --yes to replace its state")
    if reply[0] == "AHEAD":
        return OutputAhead(
            f"{reply[1]} holds answers up to {reply[2]}, after the backup's position "
            f"{position.cursor.decode()}: no answer is given twice. Go on with the feed as it is, "
            f"or delete its answers with online-svm reset {feed}, and restore then"
        )
    if reply[0] == "TYPE":
        return WrongKeyType(f"{reply[1]} holds a {reply[2]}: move that key away, or reset the feed")
    return Unavailable("the snapshot was not kept: try again")


def begin(
    store: Store, file: Path, given: WorkerSettings, known: KnownFeeds | None = None
) -> int | None:
    """Begin a feed with a model; return its number of examples, None if the feed exists.

    The model was saved by `OnlineClassifier.save` or `backup`; given settings must equal its own.
    Its examples count as entries of the feed, so the first answer has this number as `seq`.

    Raises InvalidBackup if the file cannot be read, or holds no model that this version can
    continue; ConfigurationChanged if a given setting differs from the model's; StateLost if the
    feed is among the `known` ones and Redis has lost it.
    """
    if find(store, known=known).state is not None:
        return None
    feed = store.keys.feed
    try:
        snapshot = SavedModel.parse(file.read_bytes()).snapshot
        config = stored_config(snapshot)
        predictor = OnlinePredictor(config)
        predictor.restore(snapshot)
    except OSError as error:
        raise InvalidBackup(f"{file}: cannot be read: {error.strerror or error}") from None
    except InvalidSnapshot as error:
        raise InvalidBackup(f"{file}: {error}") from error
    pinned = pinned_config(config, given.limits)
    if differing := changes(json.loads(pinned.config), given.over(config, given.limits).agreed):
        raise ConfigurationChanged(
            f"a feed that begins with {file} has the settings of its model: {differing}. Leave "
            "such options out, or begin the feed without --from"
        )
    n = predictor.n
    pointer, data = snapshots.encode(feed, pinned.config_hash, Position(seq=n, n=n), snapshot)
    try:
        restore(store, Backup(feed, 1, pinned, pointer, data))
    except BadConfiguration:
        if store.state() is None:
            raise
        return None  # another worker began the feed after `find`
    return n
