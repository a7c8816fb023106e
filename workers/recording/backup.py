"""Backup: add what is new of a feed to its file, once or continuously.

A worker stores a snapshot when it stops, and after many entries. A file with an older one is
complete, since it has the input after it. But `OnlineClassifier.load` and `worker --from` begin
with the newest snapshot. So `backup` writes a request to a key of the feed. The worker sees it
within about a second, and its next commit stores a snapshot. The request expires.
"""

import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeGuard

from online_svm.storage.recording import BUSY_SECONDS, opened
from workers.broker.store import Store
from workers.errors import AccessDenied, WorkerError
from workers.feed.pinned_config import check_supported
from workers.feed.position import Position, parse_id
from workers.feed.state import FeedState
from workers.log import Logger
from workers.reading.answers import answer
from workers.reading.registry import feed_state, holder
from workers.recording.file import reporting
from workers.recording.recorder import Acknowledgement, BackupOptions, Recorded, Recorder
from workers.stop import Stop

_ID = re.compile(rb"[0-9]{1,20}-[0-9]{1,20}")
POLL_SECONDS = 0.05  # time between two reads of the state while a snapshot is awaited

DEFAULT_SECONDS = 30.0  # longest time that answers wait to be recorded while a feed is followed
_FOLLOW_SECONDS = 0.5  # time between two looks at a followed feed
_LAST_MS = 253_370_764_799_999  # the last millisecond of the year 9998; later IDs get its month
_TRUNCATE_SECONDS = 60.0  # time between two truncations of the write-ahead log

log = Logger("online_svm.recording")


@dataclass(frozen=True, slots=True)
class Saved:
    """The result of a backup."""

    file: Path  # the last one that was written
    position: Position  # of the file
    snapshot: Position | None  # newest snapshot of the feed; None without any
    done: Recorded  # added rows
    reason: str | None = None  # why there is no newer snapshot, if one was waited for


def backup(
    store: Store,
    path: Path,
    options: BackupOptions = BackupOptions(),  # noqa: B008  (it is frozen)
    seconds: float = 0.0,
    waiting: Callable[[float], None] = lambda _: None,
) -> Saved:
    """Add to a file what is new of a feed; its worker may be running.

    The worker is asked for a snapshot and awaited for `seconds`; `waiting` is called with the
    seconds waited so far.

    Raises BadConfiguration if the feed has no answers, or the file cannot be written or is not of
    this feed; InputLost if answers were trimmed before they were recorded.
    """
    reason = _awaited_snapshot(store, seconds, waiting)
    done = Recorded()
    for place, until_ms, before in _files(store, path, options):
        with recording(store, place, options, until_ms, before) as recorder:
            recorder.acknowledge()  # first, because it raises if another file has the group
            position = recorder.record()
            snapshot = recorder.put_snapshot()
            recorder.acknowledge()
            done.add(recorder.done)
    return Saved(place, position, snapshot, done, reason)


def follow(
    store: Store,
    path: Path,
    stop: Stop,
    options: BackupOptions = BackupOptions(),  # noqa: B008
    every: float = DEFAULT_SECONDS,
) -> Saved:
    """Record a feed until a stop is requested.

    After the first round the file has a write-ahead log, so that readers and this writer do not
    wait for one another. Raises as `backup`.
    """
    done = Recorded()
    for place, until_ms, before in _files(store, path, options):
        with recording(store, place, options, until_ms, before) as recorder:
            recorder.acknowledge()
            position = recorder.record()
            recorder.put_snapshot()
            recorder.acknowledge()
            if not recorder.is_full:
                position = _follow_file(place, recorder, stop, every)
            snapshot = recorder.put_snapshot()
            done.add(recorder.done)
        if stop.requested:
            break
    return Saved(place, position, snapshot, done)


def _follow_file(path: Path, recorder: Recorder, stop: Stop, every: float) -> Position:
    """Record until a stop is requested, or the file is full; return its position."""
    if not begin_log(recorder.file):
        log.warning(
            "this file system has no shared memory: readers and the backup wait for one another",
            file=str(path),
        )
    since = truncated = time.monotonic()
    while not stop.wait(_FOLLOW_SECONDS) and not recorder.is_full:
        if not recorder.is_due(time.monotonic() - since, every):
            continue
        _until_admitted(path, stop, recorder.record)
        recorder.acknowledge()
        since = time.monotonic()
        if since - truncated >= _TRUNCATE_SECONDS:
            _until_admitted(path, stop, recorder.put_snapshot)
            truncate_log(recorder.file)
            truncated = since
    position = recorder.record()
    recorder.acknowledge()
    return position


def _files(
    store: Store, path: Path, options: BackupOptions
) -> Iterator[tuple[Path, int | None, dict[str, str]]]:
    """Yield the files to write, in order: path, end in ms, facts of the file before.

    Without months that is the path itself. With months it is the newest file, and once it has all
    answers of its month, the next.
    """
    if not options.by_month:
        yield path, None, {}
        return
    found = sorted(path.parent.glob(f"{path.stem}-[0-9][0-9][0-9][0-9]-[0-9][0-9]{path.suffix}"))
    place, facts = (found[-1] if found else _of_month(path, _first_ms(store))), dict[str, str]()
    while True:
        year, month = map(int, place.stem[-7:].split("-"))
        end = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
        yield place, int(1000 * end.timestamp()), facts
        with reporting(place), opened(place) as file:
            facts = dict(file.execute("SELECT name, value FROM facts"))
        state = store.state()
        if state is None or facts["cursor"] == state.position.cursor.decode():
            return
        following = store.first_entry(store.keys.out, facts["cursor"].encode())
        if following is None or _of_month(path, parse_id(following[0])[0]) == place:
            return
        place = _of_month(path, parse_id(following[0])[0])


def _first_ms(store: Store) -> int:
    """Return the time of the first answer to record by months.

    Where earlier ones were trimmed, the digest is first known at the present end, and a file cannot
    end before that: then it is the time of the last answer.
    """
    first, state = store.first_entry(store.keys.out), store.state()
    if first is not None and answer(first).get("seq") == 0:
        return parse_id(first[0])[0]
    return 0 if state is None else parse_id(state.position.cursor)[0]


def _of_month(path: Path, ms: int) -> Path:
    month = datetime.fromtimestamp(min(ms, _LAST_MS) // 1000, UTC)
    return path.with_name(f"{path.stem}-{month:%Y-%m}{path.suffix}")


@contextmanager
def recording(
    store: Store,
    path: Path,
    options: BackupOptions,
    until_ms: int | None = None,
    before: dict[str, str] | None = None,
) -> Iterator[Recorder]:
    """Open the file of a feed for writing; at the end it has a rollback journal again."""
    # Before a file is made: the configuration, and the group, which a new file may not take.
    check_supported(store.keys.feed, feed_state(store).pinned)
    if options.group is not None and not path.exists():
        consumer = (before or {}).get("consumer", "")
        Acknowledgement(store, options.group, consumer, options.takes_group).check()
    with reporting(path), opened(path, "rw") as file:
        end_log(file)  # of a killed writer; a reader may hold it
        yield Recorder(store, path, file, options, until_ms, before)
        end_log(file)


def begin_log(file: sqlite3.Connection) -> bool:
    """Give a file a write-ahead log; return False if its file system has no shared memory."""
    try:
        (mode,) = file.execute("PRAGMA journal_mode = WAL").fetchone()
        file.execute("SELECT count(*) FROM facts").fetchone()  # maps the shared memory
    except sqlite3.OperationalError as error:
        if not getattr(error, "sqlite_errorname", "").startswith(("SQLITE_IOERR", "SQLITE_CANT")):
            raise
        end_log(file)
        return False
    return bool(mode == "wal")


def truncate_log(file: sqlite3.Connection) -> None:
    """Move the write-ahead log into the file; a reader of older pages puts that off to the next."""
    _wait_for_others(file, 0.0)
    file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    _wait_for_others(file, BUSY_SECONDS)


def end_log(file: sqlite3.Connection) -> None:
    """Return to a rollback journal, unless another process has the file open."""
    with suppress(sqlite3.OperationalError):
        _wait_for_others(file, 0.0)
        file.execute("PRAGMA journal_mode = DELETE").fetchone()
    _wait_for_others(file, BUSY_SECONDS)


def _wait_for_others(file: sqlite3.Connection, seconds: float) -> None:
    file.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")


def _until_admitted(path: Path, stop: Stop, write: Callable[[], object]) -> None:
    """Write; while another process has the file locked, wait, and say so once."""
    is_told = False
    while True:
        try:
            write()
        except sqlite3.OperationalError as error:
            if not getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
                raise
            if not is_told:
                log.warning("another process has the file locked; waiting", file=str(path))
            is_told = True
            if stop.wait(_FOLLOW_SECONDS):
                raise
        else:
            return


def _awaited_snapshot(store: Store, seconds: float, waiting: Callable[[float], None]) -> str | None:
    """Wait for a snapshot of the present state; return the reason if none comes."""
    state = store.state()
    if not _lacks_answers(state):
        return None
    return _wait_for_snapshot(store, state.position.cursor, seconds, waiting)


def request_ahead(store: Store, seconds: float) -> None:
    """Request the snapshot that a later `backup` needs.

    So the workers of many feeds store their snapshots while other feeds are saved.
    """
    with suppress(WorkerError):  # `backup` raises it again
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
