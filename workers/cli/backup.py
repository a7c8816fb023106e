"""`backup`: record feeds in files, once or continuously."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from workers.cli.common import Json, RedisOptions, note, opt, show_json
from workers.errors import BadConfiguration, InvalidStoredSnapshot, StateLost, writing
from workers.text import counted

if TYPE_CHECKING:
    from workers.broker.store import Store
    from workers.recording.backup import Saved
    from workers.recording.recorder import BackupOptions
    from workers.stop import Stop

SUFFIX = ".sqlite"
"""Suffix of the files in a directory of backups, which are named after the feeds."""

MAX_WAIT_SECONDS = 3600.0  # largest --timeout
NOTE_SECONDS = 5.0  # time between two lines about waiting for a worker
_POLL_SECONDS = 0.5  # time between two looks at a feed that has not begun
_FOLLOW = "Continuously (--follow)"  # panel of the help


@dataclass(frozen=True, slots=True)
class WhatOptions:
    """What is recorded, and what is kept of it."""

    all_feeds: Annotated[
        Path | None,
        Option("--all", metavar="DIR", help="Every listed feed, each in DIR/FEED.sqlite."),
    ] = None
    keep: Annotated[
        str | None,
        opt("TIME", "Drop what is so much older than the last answer: 90d, 12h."),
    ] = None
    by: Annotated[
        str | None,
        opt("month", "A file for each month of UTC: loans.sqlite becomes loans-2026-03.sqlite."),
    ] = None
    accept_gap: Annotated[
        bool, opt("--accept-gap", "Go on where entries were trimmed before they came here.")
    ] = False
    timeout: Annotated[
        float,
        Option(
            min=0.0,
            max=MAX_WAIT_SECONDS,
            help="Seconds to wait for the worker to leave a snapshot of now; 0 does not ask it.",
        ),
    ] = 60.0


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """Options of a continuous backup."""

    follow: Annotated[
        bool,
        opt("--follow", "Go on with what comes, until Ctrl-C or SIGTERM.", rich_help_panel=_FOLLOW),
    ] = False
    every: Annotated[
        float,
        Option(
            metavar="SECONDS",
            min=0.0,
            help="Write what is new after so long, at the latest.",
            rich_help_panel=_FOLLOW,
        ),
    ] = 30.0
    group: Annotated[
        str | None,
        Option(
            help="Consumer group of the answers that is moved behind what is on disk; with "
            "--follow default downstream, else that if no other consumer has it. A worker with "
            "--downstream block trims nothing before the group downstream was.",
            rich_help_panel=_FOLLOW,
        ),
    ] = None
    take_group: Annotated[
        bool,
        opt(
            "--take-group",
            "Take that group from a file that was given up.",
            rich_help_panel=_FOLLOW,
        ),
    ] = False


def backup(
    feed: Annotated[str | None, Argument(help="Name of the feed.")] = None,
    file: Annotated[Path | None, Argument(metavar="[FILE]", help="Where to.")] = None,
    *,
    what: WhatOptions,
    following: FollowOptions,
    redis: RedisOptions,
    json: Json = False,
) -> None:
    """Record a feed in one file: settings, input, answers, reports, alarms, events, snapshots.

    Again, the command adds only what is new. The file is an SQLite database; `restore`, `verify`,
    `fork`, `backtest`, `report`, `explain`, `export` and OnlineClassifier.load read it.

    With --all the exit code is 1 if a feed has no backup then; the others are recorded all the
    same.
    """
    is_one = feed is not None and file is not None
    if is_one == (what.all_feeds is not None) or (feed is None) != (file is None):
        raise BadConfiguration("give the name of a feed and a file, or --all DIR")
    if what.all_feeds is not None and (following.follow or following.group):
        raise BadConfiguration("--follow and --group are of one feed: run a process for each")
    options = _options(what, following)
    url = redis.url()
    if feed is None or file is None:
        assert what.all_feeds is not None
        lacking = _save_all(url, what.all_feeds, what.timeout, options, json)
        if lacking:
            note(f"{counted(lacking, 'feed')} without a backup")
            raise typer.Exit(1)
    elif following.follow:
        _follow(url, feed, file, following.every, options, json)
    else:
        _save(url, feed, file, what.timeout, options, json)


def _options(what: WhatOptions, following: FollowOptions) -> "BackupOptions":
    from workers.admin.notes import duration
    from workers.feed.retention import DOWNSTREAM
    from workers.recording.recorder import BackupOptions

    if what.by not in (None, "month"):
        raise BadConfiguration(f"--by {what.by!r}: expected month")
    keep_ms = None if what.keep is None else 1000 * duration(what.keep, "--keep")
    group = following.group or (DOWNSTREAM if following.follow else None)
    return BackupOptions(group, following.take_group, what.accept_gap, keep_ms, what.by == "month")


def _save_all(
    url: str, directory: Path, timeout: float, options: "BackupOptions", as_json: bool
) -> int:
    """Record every listed feed; return the number of failures."""
    from workers.broker.store import Store
    from workers.reading.registry import listed
    from workers.recording.backup import request_ahead

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
            _save(url, name, directory / f"{name}{SUFFIX}", timeout, options, as_json)
        except (BadConfiguration, StateLost, InvalidStoredSnapshot) as error:
            note(f"{name}: {error}")
            lacking += 1
    return lacking


def _save(
    url: str, feed: str, file: Path, timeout: float, options: "BackupOptions", as_json: bool
) -> None:
    from workers.broker.store import Store
    from workers.recording.backup import backup as record

    with Store(url, feed) as store:
        saved = record(store, file, options, timeout, _WaitNotes(feed))
    _tell(feed, saved, as_json)


def _follow(
    url: str, feed: str, file: Path, every: float, options: "BackupOptions", as_json: bool
) -> None:
    from workers.broker.store import Store
    from workers.recording.backup import follow
    from workers.stop import Stop, signals

    stop = Stop()
    with signals(stop), Store(url, feed, stop) as store:
        store.retry_forever()
        if _has_begun(store, stop):
            note(f"recording feed {feed!r} in {file}")
            _tell(feed, follow(store, file, stop, options, every), as_json)


def _has_begun(store: "Store", stop: "Stop") -> bool:
    """Wait until a feed has a state; return False if a stop was requested first."""
    if store.state() is None:
        note(f"waiting for feed {store.keys.feed!r} to begin")
        while store.state() is None:
            if stop.wait(_POLL_SECONDS):
                return False
    return True


def _tell(feed: str, saved: "Saved", as_json: bool) -> None:
    if as_json:
        done, snapshot = saved.done, saved.snapshot
        show_json(
            {
                "feed": feed, "file": str(saved.file), "seq": saved.position.seq,
                "n": saved.position.n, "snapshot_n": None if snapshot is None else snapshot.n,
                "answers": done.answers, "input": done.inputs, "input_missing": done.missing,
            }
        )  # fmt: skip
        return
    for line in describe(feed, saved):
        note(line)


def describe(feed: str, saved: "Saved") -> list[str]:
    """Return the result of a backup as lines of text.

    Examples
    --------
    >>> from workers.feed.position import Position
    >>> from workers.recording.backup import Saved
    >>> from workers.recording.recorder import Recorded
    >>> at, done = Position(b"7-0", 7, 6), Recorded(7, 7, 0)
    >>> describe("mail", Saved(Path("mail.sqlite"), at, at, done))
    ["backup of feed 'mail' at seq 7, n 6 (input up to 7-0) in mail.sqlite: 7 answers added"]
    >>> describe("mail", Saved(Path("mail.sqlite"), at, None, done, "no worker"))[1]
    'its model lacks the last 7 answers: there is no newer snapshot, no worker'
    """
    at, done = saved.position, saved.done
    text = (
        f"backup of feed {feed!r} at seq {at.seq:,}, n {at.n:,} (input up to "
        f"{at.cursor.decode()}) in {saved.file}: {counted(done.answers, 'answer')} added"
    )
    if done.missing:
        text += f"; the input of {done.missing:,} of them was no longer kept"
    lines = [text]
    behind = at.seq - (0 if saved.snapshot is None else saved.snapshot.seq)
    if behind and saved.reason is not None:
        lines.append(
            f"its model lacks the last {counted(behind, 'answer')}: there is no newer snapshot, "
            f"{saved.reason}"
        )
    return lines


class _WaitNotes:
    """Prints that the command waits for the worker: at once, then every `NOTE_SECONDS` seconds."""

    def __init__(self, feed: str) -> None:
        self._feed, self._due = feed, 0.0

    def __call__(self, elapsed: float) -> None:
        if elapsed >= self._due:
            self._due += NOTE_SECONDS
            note(f"waiting for a snapshot of feed {self._feed!r} ({elapsed:.0f} s)")
