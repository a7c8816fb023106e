"""`fork`: the same input under another configuration."""

from typing import Annotated

import typer

from workers.commands.common import Config, Feed, Redis, feed_store, note, redis_url
from workers.counts import counted


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("fork")(fork)


def fork(
    feed: Feed,
    config: Config = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="NAME", help="Name of the new feed; default FEED-2, FEED-3..."
        ),
    ] = None,
    redis: Redis = None,
) -> None:
    """Copy the kept input of a feed to a new one, to answer it with other settings."""
    from workers import feeds, settings
    from workers.store import Store

    settings.load({}, config)  # a file that cannot work is refused before anything is copied
    url = redis_url(redis, config)
    with feed_store(feed, url) as store:
        name = to or _free_name(url, feed)
        with Store(url, name) as target:
            copied = feeds.fork(store, target)
    flag = f" --config {config}" if config else ""
    entries = counted(copied, "entry", "entries")
    note(f"{entries} copied; to answer: online-svm worker {name}{flag}")
    print(name)


def _free_name(url: str, feed: str) -> str:
    from workers.store import Store

    number = 2
    while True:
        name = f"{feed}-{number}"
        with Store(url, name) as store:
            if not store.types():
                return name
        number += 1
