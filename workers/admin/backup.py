"""Backup: one file with the configuration of a feed and its newest snapshot.

The file has a line that names the format, the length of the header (4 bytes), the header (JSON),
the snapshot, and the SHA-256 of everything before it. The snapshot holds the position of the feed.

A worker stores a snapshot when it stops, and after many entries. Between two snapshots a backup
would lack the newest answers. So `backup` writes a request to a key of the feed. The worker sees it
within about a second, and its next commit stores a snapshot. The request expires.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeGuard

from online_svm.storage.saved_model import BACKUP
from workers.broker.store import Store
from workers.config.retention_settings import RetentionSettings
from workers.errors import AccessDenied, BadConfiguration, InvalidStoredSnapshot, WorkerError
from workers.feed.pinned_config import check_supported, stored_groups
from workers.feed.position import Position, parse_id
from workers.feed.state import FeedState, PinnedConfig, Pointer
from workers.push.convention import Convention
from workers.push.feed_convention import readable_convention
from workers.reading.registry import holder
from workers.session import snapshots

FORMAT = 1
_LENGTH_BYTES = 4
_MAX_HEADER_BYTES = 1 << 22
_DIGEST_BYTES = 32

_ID = re.compile(rb"[0-9]{1,20}-[0-9]{1,20}")
POLL_SECONDS = 0.05  # time between two reads of the state while a snapshot is awaited
_ATTEMPTS = 5  # reads of a snapshot, which a worker may replace meanwhile


class InvalidBackup(BadConfiguration):
    """The file is not a backup, or is damaged."""


@dataclass(frozen=True, slots=True)
class Backup:
    """The contents of a backup."""

    feed: str
    epoch: int  # epoch of the feed when the backup was made
    pinned: PinnedConfig
    pointer: Pointer  # pointer to the snapshot
    data: bytes  # the snapshot
    retention: RetentionSettings | None = None  # the stored retention, if any
    table: Convention | None = None  # how the feed's tables are written, if that is stored

    @property
    def position(self) -> Position:
        """The position of the feed in the snapshot.

        Raises InvalidStoredSnapshot if `data` does not match the pointer or the feed.
        """
        return snapshots.decode(
            self.data, self.pointer, self.feed, self.pinned.config_hash
        ).position

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes of the file."""
        header = {
            "format": FORMAT,
            "feed": self.feed,
            "epoch": self.epoch,
            "agreement": asdict(self.pinned),
            "snapshot": self.pointer.encode().decode(),
            "bytes": len(self.data),
        }
        if self.retention is not None:
            header["retention"] = self.retention.model_dump()
        if self.table is not None:
            header["table"] = self.table.model_dump(mode="json", exclude_defaults=True)
        text = json.dumps(header, sort_keys=True).encode()
        digest = sha256()
        for piece in (BACKUP, len(text).to_bytes(_LENGTH_BYTES, "big"), text, self.data):
            digest.update(piece)
            yield piece
        yield digest.digest()

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the backup in a file; its sizes are checked before the contents are read.

        Raises InvalidBackup if the file cannot be read, is not a backup, is damaged, or has another
        format.
        """
        try:
            with path.open("rb") as source:
                size = path.stat().st_size
                return cls._parsed(source, size)
        except OSError as error:
            raise InvalidBackup(f"{path}: cannot be read: {error.strerror or error}") from None
        except (InvalidStoredSnapshot, ValueError) as error:
            raise InvalidBackup(f"{path}: {error}") from error

    @classmethod
    def _parsed(cls, source: BinaryIO, size: int) -> Self:
        start = source.read(len(BACKUP) + _LENGTH_BYTES)
        if not start.startswith(BACKUP) or len(start) < len(BACKUP) + _LENGTH_BYTES:
            raise ValueError("this is no backup; online-svm backup FEED --out FILE saves one")
        length = int.from_bytes(start[len(BACKUP) :], "big")
        left = size - len(start) - _DIGEST_BYTES
        if length > min(_MAX_HEADER_BYTES, left):
            raise ValueError("it is cut or damaged: its header is longer than it may be")
        text = source.read(length)
        header = _header(text)
        if header.get("bytes") != left - length:
            raise ValueError("it is cut or damaged: it has not the size that its header names")
        data = source.read(left - length)
        digest = sha256(start + text)
        digest.update(data)
        if source.read() != digest.digest():
            raise ValueError("it is damaged: its SHA-256 is not the one recorded")
        return cls._checked(header, data)

    @classmethod
    def _checked(cls, header: dict[str, Any], data: bytes) -> Self:
        try:
            stored = header["agreement"]  # earlier versions also wrote `environment`: not read
            pinned = PinnedConfig(stored["config"], stored["config_hash"])
            pointer = Pointer.parse(header["snapshot"].encode())
            kept = header.get("retention")  # earlier versions wrote none
            retention = None if kept is None else RetentionSettings.model_validate(kept)
            written = header.get("table")
            table = None if written is None else Convention.model_validate(written)
            epoch = int(header["epoch"])
            backup = cls(header["feed"], epoch, pinned, pointer, data, retention, table)
            config_hash = sha256(pinned.config.encode()).hexdigest()
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"its header is incomplete: {error!r}") from error
        if config_hash != pinned.config_hash or backup.position.n != pointer.n:
            raise ValueError("its header contradicts itself")
        return backup


def _header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is damaged: its header is unreadable ({error})") from error
    if not isinstance(header, dict):
        raise ValueError("it is damaged: its header is unreadable")
    if header.get("format") != FORMAT:
        raise ValueError(
            f"it has format {header.get('format')!r}, this version reads {FORMAT}: upgrade "
            "online-svm"
        )
    return header


class NoSuchSnapshot(BadConfiguration):
    """The feed has no snapshot yet."""


@dataclass(frozen=True, slots=True)
class SavedBackup:
    """A backup, and the reason if it lacks answers."""

    backup: Backup
    behind: int = 0  # entries answered before the backup was requested that it lacks
    reason: str | None = None  # why no newer snapshot exists; None if no answer is missing


def backup_of(store: Store) -> Backup:
    """Return a backup of a feed at its newest snapshot; its worker may be running.

    Raises NoSuchSnapshot if the feed has none; BadConfiguration if its semantics are no longer
    supported; InvalidStoredSnapshot if the snapshot is damaged.
    """
    for _ in range(_ATTEMPTS):
        state = store.state()
        if state is None or state.snapshot is None:
            break
        data = store.get_snapshot(state.snapshot)
        if data is not None:
            feed = store.keys.feed
            check_supported(feed, state.pinned)
            table = readable_convention(store)
            backup = Backup(
                feed, state.epoch, state.pinned, state.snapshot, data, state.retention, table
            )
            _ = backup.position  # raises if the snapshot is damaged
            return backup
    raise NoSuchSnapshot(
        f"feed {store.keys.feed!r} has no snapshot: a worker leaves one when it stops, and every "
        "10,000 entries, or --replay-budget"
    )


def current_backup(
    store: Store, seconds: float, waiting: Callable[[float], None] = lambda _: None
) -> SavedBackup:
    """Return a backup of the present state of a feed, after a request to its worker if necessary.

    `waiting` is called with the seconds waited so far. If the worker stores no snapshot within
    `seconds` (0 sends no request), the newest stored one is used. Raises NoSuchSnapshot, with the
    reason, if none is stored.
    """
    state = store.state()
    if not _lacks_answers(state):
        return SavedBackup(backup_of(store))
    if "predictor" not in stored_groups(store.keys.feed, state.pinned):
        raise NoSuchSnapshot(
            f"feed {store.keys.feed!r} has no snapshot: it is a combination. Back up its sources, "
            "and combine them again"
        )
    reason = _wait_for_snapshot(store, state.position.cursor, seconds, waiting)
    try:
        saved = backup_of(store)
    except NoSuchSnapshot as error:
        if reason is None:
            raise
        raise NoSuchSnapshot(f"feed {store.keys.feed!r} has no snapshot: {reason}") from error
    return SavedBackup(saved, max(0, state.position.seq - saved.position.seq), reason)


def request_ahead(store: Store, seconds: float) -> None:
    """Request the snapshot that a later `current_backup` needs.

    So the workers of many feeds store their snapshots while other feeds are saved.
    """
    with suppress(WorkerError):  # `current_backup` raises it again
        state = store.state()
        if _lacks_answers(state):
            _request(store, state.position.cursor, seconds)


def _lacks_answers(state: FeedState | None) -> TypeGuard[FeedState]:
    """Return whether a feed has answers that its newest snapshot does not hold."""
    return state is not None and state.position.seq > 0 and not _holds(state, state.position.cursor)


def _holds(state: FeedState, cursor: bytes) -> bool:
    newest = state.snapshot
    return newest is not None and parse_id(newest.cursor) >= parse_id(cursor)


def _wait_for_snapshot(
    store: Store, cursor: bytes, seconds: float, waiting: Callable[[float], None]
) -> str | None:
    """Request a snapshot that holds the answers up to an ID; return the reason if none comes."""
    feed, began = store.keys.feed, time.monotonic()
    refused = _request(store, cursor, seconds)
    if refused is not None:
        return refused
    found = store.snapshot_request()
    requested = found if found is not None and _ID.fullmatch(found) else cursor
    while (elapsed := time.monotonic() - began) < seconds:
        state = store.state()
        if state is None or _holds(state, requested):
            store.delete(store.keys.wanted)
            return None
        waiting(elapsed)
        time.sleep(POLL_SECONDS)
    return (
        f"its worker left none within {seconds:g} s: it may wait for a refit, replay, or have set "
        f"the feed aside; see online-svm status {feed}"
    )


def _request(store: Store, cursor: bytes, seconds: float) -> str | None:
    """Write a request unless one exists; return the reason if no worker would follow it."""
    if seconds <= 0:
        return "its worker was not asked for one (--timeout 0)"
    if holder(store) is None:
        return (
            "no worker is at work that could leave one; start one: online-svm worker "
            f"{store.keys.feed}"
        )
    try:
        store.request_snapshot(cursor, seconds)
    except AccessDenied:
        return "this user may not ask the worker for one; deploy/redis/README.md names who may"
    return None
