"""Ask the worker that is at work for a snapshot, so that a backup holds what is answered now.

A worker leaves a snapshot when it stops, and after many entries. Between the two, a backup would
lack what was answered since. So `backup` leaves a request in the feed's slot, the worker sees it
within a second or so, and its next commit brings a snapshot. The request expires by itself.
"""

import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeGuard

from workers.admin.backup import Backup
from workers.admin.restore import NoSuchSnapshot, backup_of
from workers.broker.store import Store
from workers.errors import AccessDenied, WorkerError
from workers.feed.agreement import stored_groups
from workers.feed.position import parse_id
from workers.feed.state import FeedState
from workers.reading.registry import holder

_ID = re.compile(rb"[0-9]{1,20}-[0-9]{1,20}")

POLL = 0.05
"""Seconds between two looks whether the snapshot is there."""


@dataclass(frozen=True, slots=True)
class SavedBackup:
    """A backup, and what to say of it.

    Attributes
    ----------
    backup : Backup
    behind : int
        Entries that were answered before it was asked for, and are not in it.
    reason : str or None
        Why there is no newer one; None where nothing is missing.
    """

    backup: Backup
    behind: int = 0
    reason: str | None = None


def current_backup(
    store: Store, seconds: float, waiting: Callable[[float], None] = lambda _: None
) -> SavedBackup:
    """Return a backup of a feed as it is now; its worker is asked for a snapshot if need be.

    Where there is no newer snapshot in the end, the newest that is kept is taken.

    Parameters
    ----------
    store : Store
    seconds : float
        To wait for the worker; with 0 it is not asked.
    waiting : callable
        Called with the seconds so far while the worker is awaited.

    Raises
    ------
    NoSuchSnapshot
        If there is no snapshot, also after the wait; it says why.
    """
    state = store.state()
    if not _lacks_answers(state):
        return SavedBackup(backup_of(store))
    if "predictor" not in stored_groups(store.keys.feed, state.agreement):
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


def ask_ahead(store: Store, seconds: float) -> None:
    """Ask the worker of a feed, if need be, for what `current_backup` will wait for later.

    Where many feeds are saved one after the other, their workers make the snapshots meanwhile.
    """
    with suppress(WorkerError):  # it is met again, and told, where the feed is saved
        state = store.state()
        if _lacks_answers(state):
            _ask(store, state.position.cursor, seconds)


def _lacks_answers(state: FeedState | None) -> TypeGuard[FeedState]:
    """Return whether a feed has answers that its newest snapshot does not hold."""
    return state is not None and state.position.seq > 0 and not _holds(state, state.position.cursor)


def _holds(state: FeedState, cursor: bytes) -> bool:
    newest = state.snapshot
    return newest is not None and parse_id(newest.cursor) >= parse_id(cursor)


def _wait_for_snapshot(
    store: Store, cursor: bytes, seconds: float, waiting: Callable[[float], None]
) -> str | None:
    """Ask for a snapshot that holds the answers up to an ID; return why there is none."""
    feed, began = store.keys.feed, time.monotonic()
    refused = _ask(store, cursor, seconds)
    if refused is not None:
        return refused
    found = store.call("GET", store.keys.wanted)
    wanted = found if found is not None and _ID.fullmatch(found) else cursor
    while (passed := time.monotonic() - began) < seconds:
        now = store.state()
        if now is None or _holds(now, wanted):
            store.call("DEL", store.keys.wanted)
            return None
        waiting(passed)
        time.sleep(POLL)
    return (
        f"its worker left none within {seconds:g} s: it may wait for a refit, replay, or have set "
        f"the feed aside; see online-svm status {feed}"
    )


def _ask(store: Store, cursor: bytes, seconds: float) -> str | None:
    """Leave a request, unless one is there; return why nobody would answer it."""
    if seconds <= 0:
        return "its worker was not asked for one (--timeout 0)"
    if holder(store) is None:
        return (
            "no worker is at work that could leave one; start one: online-svm worker "
            f"{store.keys.feed}"
        )
    try:
        store.call("SET", store.keys.wanted, cursor, "PX", int(1000 * seconds) + 1, "NX")
    except AccessDenied:
        return "this user may not ask the worker for one; deploy/redis/README.md names who may"
    return None
