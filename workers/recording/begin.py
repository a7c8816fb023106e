"""Begin a feed with a trained model, and set a feed to a snapshot, as restore does."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from online_svm.errors import InvalidSnapshot
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.storage.recording import SavedModel, stored_config
from workers.broker.commands import Script
from workers.broker.commit_script import WRONG_TYPE
from workers.broker.feed_reader import FeedReader
from workers.broker.store import Store
from workers.config.retention_settings import RetentionSettings
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
from workers.feed.pinned_config import (
    changes,
    check_hash,
    check_supported,
    pinned_config,
)
from workers.feed.position import Position
from workers.feed.recent_ids import RecentIds
from workers.feed.retention import KeptBytes
from workers.feed.state import RETENTION, FeedState, PinnedConfig, Pointer, initial_fields
from workers.feed.state_fields import fields_of
from workers.feed.stored_settings import stored_settings
from workers.reading.registry import check_not_in_use, feed_state
from workers.recording.file import InvalidRecording, reporting
from workers.session import snapshots
from workers.session.preflight import KnownFeeds, find
from workers.session.replay import Replay
from workers.session.snapshots import LoadedSnapshot

_RESTORE = Script.load("streams", "input", "restore")


@dataclass(frozen=True, slots=True)
class RestorePoint:
    """What a feed is set to: its configuration and a snapshot."""

    epoch: int
    pinned: PinnedConfig
    position: Position
    body: bytes  # of the snapshot: recent ids and predictor
    retention: RetentionSettings | None = None  # the stored retention, if any

    @classmethod
    def of(cls, reader: FeedReader) -> Self:
        """Return the newest snapshot of a recording, or of a feed.

        Raises BadConfiguration if it has none, or an earlier version began the feed;
        InvalidStoredSnapshot if it is damaged; StateLost if its settings are damaged.
        """
        feed, state = reader.keys.feed, feed_state(reader)
        check_supported(feed, state.pinned)
        check_hash(feed, state.pinned)
        if state.snapshot is None:
            raise BadConfiguration(
                f"feed {feed!r} has no snapshot, as no worker has left one: online-svm fork "
                "FILE --to NAME begins a feed with the recorded input"
            )
        loaded = snapshots.read(reader, state.snapshot, state.pinned.config_hash)
        return cls(state.epoch, state.pinned, loaded.position, loaded.whole, state.retention)

    def replay(self, feed: str) -> Replay:
        """Return a replay at the snapshot. Raises InvalidStoredSnapshot if it is damaged."""
        config, limits = stored_settings(feed, self.pinned)
        replay = Replay(OnlinePredictor(config), limits)
        replay.restore(LoadedSnapshot(self.position, self.body))
        return replay


def begin(
    store: Store, file: Path, given: WorkerSettings, known: KnownFeeds | None = None
) -> int | None:
    """Begin a feed with a model; return the examples it learned, None if the feed exists.

    The model was saved by `save` of an estimator or by `backup`; given settings must equal its own.
    Its examples count as entries of the feed, so the first answer has this number as `seq`.

    Raises InvalidRecording if the file cannot be read, or holds no model that this version can
    continue; ConfigurationChanged if a given setting differs from the model's; StateLost if the
    feed is among the `known` ones and Redis has lost it.
    """
    if find(store, known=known).state is not None:
        return None
    with reporting(file):
        saved = SavedModel.read(file)
    try:
        config = stored_config(saved.snapshot)
        predictor = OnlinePredictor(config)
        predictor.restore(saved.snapshot)
    except InvalidSnapshot as error:
        raise InvalidRecording(f"{file}: {error}") from error
    pinned = pinned_config(config, given.limits)
    if differing := changes(json.loads(pinned.config), given.over(config, given.limits).agreed):
        raise ConfigurationChanged(
            f"a feed that begins with {file} has the settings of its model: {differing}. Leave "
            "such options out, or begin the feed without --from"
        )
    n = predictor.n
    # The model's feed may have answered some ids lately; this feed has answered none.
    body = RecentIds(given.limits.dedupe_window).prepend_to(saved.snapshot)
    try:
        check_not_in_use(store)
        put_back(store, RestorePoint(1, pinned, Position(seq=n, n=n), body))
    except BadConfiguration:
        if store.state() is None:
            raise
        return None  # another worker began the feed after `find`
    return n


def put_back(store: Store, point: RestorePoint, overwrite: bool = False) -> None:
    """Set a feed to a snapshot, which becomes its only one. Raises as `restore`."""
    position, before = point.position, set(store.snapshot_keys())
    config_hash = point.pinned.config_hash
    pointer, data = snapshots.encode(store.keys.feed, config_hash, position, point.body)
    parts = pointer.keys(store.keys)
    store.finish_snapshot(store.put_snapshot(pointer, data))
    fields = _fields(store.keys.feed, point, pointer, _replaced(store))
    reply = store.run(
        _RESTORE,
        [store.keys.state, store.keys.input, *store.keys.outputs, *parts],
        [position.cursor, position.seq, int(overwrite), *fields],
    )
    if reply[0] != b"OK":
        raise _refusal(store.keys.feed, position, [part.decode() for part in reply])
    store.register()
    for key in before - set(parts):
        store.delete(key)


def _replaced(store: Store) -> FeedState | None:
    """Return the state that this restore replaces; None if there is none, or it is damaged."""
    try:
        return store.state()
    except (StateLost, BadConfiguration):
        return None


def _fields(
    feed: str, point: RestorePoint, pointer: Pointer, before: FeedState | None
) -> list[bytes | str | int]:
    """Return names and values of the hash `st`; both snapshot pointers name this snapshot.

    Byte counts and retention stay as in the replaced state: the output streams stay, and the
    retention may have been changed since the backup.
    """
    kept, position = KeptBytes() if before is None else before.kept, point.position
    retention = point.retention if before is None else before.retention or point.retention
    replay = point.replay(feed)
    described = fields_of(replay.predictor, replay.recent.duplicates)
    stored = () if retention is None else (RETENTION, retention.model_dump_json())
    return [
        *initial_fields(point.pinned),
        *stored,
        *(part for pair in kept.changes(KeptBytes()).items() for part in pair),
        *("cursor", position.cursor, "seq", position.seq, "n", position.n),
        *("digest", position.digest.hex()),
        *("snapshot", pointer.encode(), "previous", pointer.encode()),
        *("epoch", point.epoch, "writer", "restore"),
        *(part for pair in described.items() for part in pair),
    ]


def _refusal(feed: str, position: Position, reply: list[str]) -> WorkerError:
    """Return the error for a reply of the script."""
    if reply[0] == "BEGUN":
        return BadConfiguration(f"feed {feed!r} exists: say --yes to replace its state")
    if reply[0] == "AHEAD":
        return OutputAhead(
            f"{reply[1]} holds answers up to {reply[2]}, after the backup's position "
            f"{position.cursor.decode()}: no answer is given twice. Go on with the feed as it is, "
            f"or delete its answers with online-svm reset {feed}, and restore then"
        )
    if reply[0] == WRONG_TYPE.decode():
        return WrongKeyType(f"{reply[1]} holds a {reply[2]}: move that key away, or reset the feed")
    return Unavailable("the snapshot was not kept: try again")
