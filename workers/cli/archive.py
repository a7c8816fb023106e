"""`archive`: write what a feed answers to Parquet files, each entry once."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.common import Config, Feed, Json, Redis, note, redis_url, show_json
from workers.plural import counted

if TYPE_CHECKING:
    from workers.broker.store import Store
    from workers.history.archive.archiver import Archived
    from workers.stop import Stop

_POLL = 0.5  # seconds between two looks at a feed that has not begun


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("archive")(archive)


def archive(
    feed: Feed,
    to: Annotated[
        Path,
        typer.Option(
            "--to", metavar="DIR", help="The archive; it goes on with one.", show_default=False
        ),
    ],
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with what comes, until Ctrl-C or SIGTERM.")
    ] = False,
    every: Annotated[
        float,
        typer.Option(
            "--every",
            metavar="SECONDS",
            min=0.0,
            help="With --follow: write what is new after so long, at the latest.",
        ),
    ] = 30.0,
    group: Annotated[
        str,
        typer.Option(
            "--group",
            help="Consumer group of the answers that is moved behind what is on disk. A worker "
            "with --downstream block --downstream-group NAME trims nothing before that.",
        ),
    ] = "archive",
    accept_gap: Annotated[
        bool,
        typer.Option(
            "--accept-gap", help="Go on where entries were trimmed before they came here."
        ),
    ] = False,
    redis: Redis = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Write answers, labels, reports, alarms and input of a feed as Parquet files by day.

    Each entry is written once, whatever happens: the files say where to go on. Needs pyarrow
    (pip install 'online-svm[archive]').
    """
    from workers.broker.store import Store
    from workers.history.archive.archiver import Archiver
    from workers.history.archive.identity import locked
    from workers.history.archive.layout import feed_directory
    from workers.history.archive.parquet import arrow
    from workers.stop import Stop, signals

    arrow()  # before anything is waited for
    stop = Stop()
    with signals(stop), Store(redis_url(redis, config), feed, stop) as store:
        directory = feed_directory(to, feed)
        if follow and not _has_begun(store, stop):
            return
        with locked(directory):
            archiver = Archiver(store, directory, group, accept_gap)
            if follow:
                store.be_patient()
            try:
                archiver.run(stop, follow, every)
            finally:
                done = archiver.done
                if not json:
                    note(describe(done, directory))
    if json:
        show_json({"feed": feed, "directory": str(directory)} | _plain(done))


def describe(done: "Archived", directory: Path) -> str:
    """Return what was added, as text.

    Examples
    --------
    >>> from workers.history.archive.archiver import Archived
    >>> describe(Archived(2, 1, 1), Path("cold/feed=mail"))
    '2 answers added to cold/feed=mail; the input of 1 of them was no longer kept'
    """
    text = f"{counted(done.answers, 'answer')} added to {directory}"
    if done.missing:
        text += f"; the input of {done.missing:,} of them was no longer kept"
    return text


def _plain(done: "Archived") -> dict[str, int]:
    return {"answers": done.answers, "input": done.inputs, "input_missing": done.missing}


def _has_begun(store: "Store", stop: "Stop") -> bool:
    """Wait until a feed has a state; return False if a stop was requested before."""
    store.be_patient()
    while store.state() is None:
        if stop.wait(_POLL):
            return False
    return True
