"""`backup`: save the present state of feeds to files, for `restore`."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from workers.cli.common import RedisOptions, note, opt, replacing_bytes
from workers.errors import BadConfiguration, InvalidStoredSnapshot, StateLost, writing
from workers.text import counted

BACKUP_SUFFIX = ".backup"
"""Suffix of the files in a directory of backups, which are named after the feeds."""

MAX_WAIT_SECONDS = 3600.0  # largest --timeout
NOTE_SECONDS = 5.0  # time between two lines about waiting for a worker


def backup(
    out: Annotated[
        Path,
        opt("FILE", "Where to; with --all a directory, which has FEED.backup of each feed then."),
    ],
    feed: Annotated[str | None, Argument(help="Name of the feed.")] = None,
    all_feeds: Annotated[bool, opt("--all", "Every listed feed.")] = False,
    timeout: Annotated[
        float,
        Option(
            min=0.0,
            max=MAX_WAIT_SECONDS,
            help="Seconds to wait for the worker to leave a snapshot of now; 0 does not ask it.",
        ),
    ] = 60.0,
    *,
    redis: RedisOptions,
) -> None:
    """Save a backup of a feed, or of each, as it is now; `restore FEED FILE` reads it.

    A worker at work is asked for a snapshot. Without one, the newest that is kept is saved, and how
    many answers it lacks is told.

    The exit code is 1 if a feed has no backup then; the others are saved all the same.
    """
    if (feed is None) != all_feeds:
        raise BadConfiguration("give the name of a feed, or --all")
    url = redis.url()
    if feed is not None:
        _save(url, feed, out, timeout)
    elif lacking := _save_all(url, out, timeout):
        note(f"{counted(lacking, 'feed')} without a backup")
        raise typer.Exit(1)


def _save_all(url: str, directory: Path, timeout: float) -> int:
    """Save every listed feed; return the number of failures."""
    from workers.admin.backup import request_ahead
    from workers.broker.store import Store
    from workers.reading.registry import listed

    with Store(url, "any") as store:
        names, others = listed(store)
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        with Store(url, name) as store:
            request_ahead(store, timeout)
    lacking = len(others)
    for name in names:
        try:
            _save(url, name, directory / f"{name}{BACKUP_SUFFIX}", timeout)
        except (BadConfiguration, StateLost, InvalidStoredSnapshot) as error:
            note(f"{name}: {error}")
            lacking += 1
    return lacking


def _save(url: str, feed: str, out: Path, timeout: float) -> None:
    from workers.admin.backup import current_backup
    from workers.broker.store import Store

    with Store(url, feed) as store:
        saved = current_backup(store, timeout, _WaitNotes(feed))
    with writing(out), replacing_bytes(out, overwrite=True) as target:
        target.writelines(saved.backup.pieces())
    position = saved.backup.position
    note(
        f"backup of feed {feed!r} at seq {position.seq:,}, n {position.n:,} (input up to "
        f"{position.cursor.decode()}) saved to {out}"
    )
    if saved.reason is not None:
        lacking = counted(saved.behind, "answer")
        note(f"it lacks the last {lacking}: there is no newer snapshot, {saved.reason}")


class _WaitNotes:
    """Prints that the command waits for the worker: at once, then every `NOTE_SECONDS` seconds."""

    def __init__(self, feed: str) -> None:
        self._feed, self._due = feed, 0.0

    def __call__(self, elapsed: float) -> None:
        if elapsed >= self._due:
            self._due += NOTE_SECONDS
            note(f"waiting for a snapshot of feed {self._feed!r} ({elapsed:.0f} s)")
