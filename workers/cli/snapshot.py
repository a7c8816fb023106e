"""`snapshot`: save a backup of a feed to a file."""

from pathlib import Path
from typing import Annotated

import typer

from workers.cli.common import Config, Feed, Redis, feed_store, note, replacing_bytes, writing


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("snapshot")(snapshot)


def snapshot(
    feed: Feed,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Where to.", show_default=False)
    ],
    redis: Redis = None,
    config: Config = None,
) -> None:
    """Save a backup of a feed at its newest snapshot to a file, for `restore`."""
    from workers.admin.restore import backup_of

    with feed_store(feed, redis, config) as store:
        backup = backup_of(store)
    with writing(out), replacing_bytes(out, overwrite=True) as target:
        target.writelines(backup.pieces())
    position = backup.position
    note(
        f"backup of feed {feed!r} at seq {position.seq:,}, n {position.n:,} (input up to "
        f"{position.cursor.decode()}) saved to {out}"
    )
