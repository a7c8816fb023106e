"""Restore: put a feed back to the position of its backup."""

from dataclasses import dataclass

from workers.admin.backup import Backup
from workers.broker.script import Script
from workers.broker.store import Store
from workers.errors import BadConfiguration, OutputAhead, StateLost, Unavailable, WrongKeyType
from workers.feed.agreement import check_computed
from workers.feed.output_retention import KeptBytes
from workers.feed.position import Position
from workers.feed.state import Pointer, initial_fields
from workers.reading.lag import lag
from workers.reading.registry import check_not_in_use
from workers.session.snapshots import parts_of

_RESTORE = Script.load("streams", "restore")

_ATTEMPTS = 5  # a worker may replace snapshots while they are read


class NoSuchSnapshot(BadConfiguration):
    """A feed that has no snapshot yet."""


@dataclass(frozen=True, slots=True)
class Restored:
    """The position of a restored feed, and what else it has.

    Attributes
    ----------
    position : Position
    answers : int
        Answers that are kept; all are at or before the position.
    waiting : int
        Input entries after the position, which a worker will answer.
    waiting_is_at_least : bool
        Whether more may wait than were counted.
    """

    position: Position
    answers: int
    waiting: int
    waiting_is_at_least: bool


def backup_of(store: Store) -> Backup:
    """Return a backup of a feed at its newest snapshot; its worker may be running.

    Raises
    ------
    NoSuchSnapshot
        If the feed has none.
    BadConfiguration
        If its semantics were given up.
    InvalidStoredSnapshot
        If the newest one is damaged.
    """
    for _ in range(_ATTEMPTS):
        state = store.state()
        if state is None or state.snapshot is None:
            break
        data = store.get_snapshot(state.snapshot)
        if data is not None:
            feed = store.keys.feed
            check_computed(feed, state.agreement)
            backup = Backup(feed, state.epoch, state.agreement, state.snapshot, data)
            _ = backup.position  # raises if the snapshot is damaged
            return backup
    raise NoSuchSnapshot(
        f"feed {store.keys.feed!r} has no snapshot: a worker leaves one when it stops, and every "
        "10,000 entries, or --replay-budget"
    )


def restore(store: Store, backup: Backup, overwrite: bool = False, force: bool = False) -> Restored:
    """Put a feed back to the position of a backup.

    Answers up to that position are kept. Input after it is answered next.

    Parameters
    ----------
    store : Store
    backup : Backup
    overwrite : bool
        Whether an existing state may be replaced.
    force : bool
        Even if a live worker holds the feed; it will exit.

    Raises
    ------
    BadConfiguration
        If the backup is of another feed, its semantics were given up, or the feed exists and may
        not be overwritten.
    FeedInUse
        If a live worker holds it.
    OutputAhead, WrongKeyType
        If there are answers after the position of the backup, or a key has another type.
    """
    feed = store.keys.feed
    if backup.feed != feed:
        raise BadConfiguration(
            f"the backup is of feed {backup.feed!r}: online-svm restore {backup.feed} FILE"
        )
    check_computed(feed, backup.agreement)
    check_not_in_use(store, force)
    position = backup.position
    before = set(store.snapshot_keys())
    pointer = Pointer(
        position.n, backup.pointer.sha256, position.cursor, parts_of(len(backup.data))
    )
    parts = pointer.keys(store.keys)
    store.finish_snapshot(store.put_snapshot(pointer, backup.data))
    fields = _fields(backup, position, pointer, _kept(store))
    reply = store.run(
        _RESTORE,
        [*_streams(store), *parts],
        [position.cursor, position.seq, int(overwrite), *fields],
    )
    if reply[0] != b"OK":
        _refused(store, position, [part.decode() for part in reply])
    store.register()
    for key in before - set(parts):
        store.call("DEL", key)
    waits = lag(store)
    return Restored(position, store.length(store.keys.out), waits.entries, waits.is_at_least)


def exists(store: Store) -> bool:
    """Return whether restoring would replace a state."""
    return store.keys.state in store.types()


def _streams(store: Store) -> list[str]:
    keys = store.keys
    return [keys.state, keys.input, *keys.outputs]


def _kept(store: Store) -> KeptBytes:
    """Return what the feed counted of its outputs, which stay where they are."""
    try:
        state = store.state()
    except (StateLost, BadConfiguration):  # what this restore replaces; nothing is trimmed sooner
        state = None
    return KeptBytes() if state is None else state.kept


def _fields(
    backup: Backup, position: Position, pointer: Pointer, kept: KeptBytes
) -> list[bytes | str | int]:
    """Return names and values of the hash `st`; both snapshots are this one."""
    return [
        *initial_fields(backup.agreement),
        *(part for pair in kept.changes(KeptBytes()).items() for part in pair),
        *("cursor", position.cursor, "seq", position.seq, "n", position.n),
        *("digest", position.digest.hex()),
        *("snapshot", pointer.encode(), "previous", pointer.encode()),
        *("epoch", backup.epoch, "writer", "restore"),
    ]


def _refused(store: Store, position: Position, reply: list[str]) -> None:
    feed = store.keys.feed
    if reply[0] == "EXISTS":
        raise BadConfiguration(f"feed {feed!r} exists: say --yes to replace its state")
    if reply[0] == "AHEAD":
        raise OutputAhead(
            f"{reply[1]} holds answers up to {reply[2]}, after the backup's position "
            f"{position.cursor.decode()}: no answer is given twice. Go on with the feed as it is, "
            f"or delete its answers with online-svm reset {feed}, and restore then"
        )
    if reply[0] == "TYPE":
        raise WrongKeyType(f"{reply[1]} holds a {reply[2]}: move that key away, or reset the feed")
    raise Unavailable("the snapshot was not kept: try again")
