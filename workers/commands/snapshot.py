"""`snapshot`: save the newest snapshot of a feed to a file."""

from pathlib import Path
from typing import Annotated

import typer

from workers.commands.common import Config, Feed, Redis, feed_store, note, writing


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
    """Save the newest snapshot of a feed to a file, for a backup."""
    from workers import feeds

    with feed_store(feed, redis, config) as store:
        name, data = feeds.newest_snapshot(store)
    with writing(out):
        out.write_bytes(data)
    note(f"{len(data):,} bytes of {name} saved to {out}")
