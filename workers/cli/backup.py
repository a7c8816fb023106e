"""`backup`: save feeds at their newest snapshots to files, for `restore`."""

from pathlib import Path
from typing import Annotated

import typer

from workers.cli.common import Config, Redis, note, redis_url, replacing_bytes, writing
from workers.plural import counted

SUFFIX = ".backup"
"""End of the name of a file in a directory of backups; before it stands the name of the feed."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("backup")(backup)


def backup(
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Where to; with --all a directory, which has FEED.backup of each feed then.",
            show_default=False,
        ),
    ],
    feed: Annotated[
        str | None, typer.Argument(help="Name of the feed.", show_default=False)
    ] = None,
    all_feeds: Annotated[bool, typer.Option("--all", help="Every listed feed.")] = False,
    redis: Redis = None,
    config: Config = None,
) -> None:
    """Save a backup of a feed, or of each, at its newest snapshot; `restore FEED FILE` reads it.

    The exit code is 1 if a feed has no backup then; the others are saved all the same.
    """
    from workers.errors import BadConfiguration

    if (feed is None) != all_feeds:
        raise BadConfiguration("give the name of a feed, or --all")
    url = redis_url(redis, config)
    if feed is not None:
        _save(url, feed, out)
    elif lacking := _save_all(url, out):
        note(f"{counted(lacking, 'feed')} without a backup")
        raise typer.Exit(1)


def _save_all(url: str, directory: Path) -> int:
    """Save every listed feed; return how many could not be."""
    from workers.broker.store import Store
    from workers.errors import BadConfiguration, InvalidStoredSnapshot, StateLost
    from workers.reading.registry import listed

    with Store(url, "any") as store:
        names, others = listed(store)
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    lacking = len(others)
    for name in names:
        try:
            _save(url, name, directory / f"{name}{SUFFIX}")
        except (
            BadConfiguration,
            StateLost,
            InvalidStoredSnapshot,
        ) as error:
            note(f"{name}: {error}")
            lacking += 1
    return lacking


def _save(url: str, feed: str, out: Path) -> None:
    from workers.admin.restore import backup_of
    from workers.broker.store import Store

    with Store(url, feed) as store:
        saved = backup_of(store)
    with writing(out), replacing_bytes(out, overwrite=True) as target:
        target.writelines(saved.pieces())
    position = saved.position
    note(
        f"backup of feed {feed!r} at seq {position.seq:,}, n {position.n:,} (input up to "
        f"{position.cursor.decode()}) saved to {out}"
    )
