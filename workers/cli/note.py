"""`note`: note what happened to a feed, so that the page and the report mark it."""

from typing import Annotated

import typer

from workers.cli.common import Config, Feed, Redis, feed_store
from workers.cli.common import note as tell


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("note")(note)


def note(
    feed: Feed,
    text: Annotated[
        str, typer.Argument(help="What happened, such as 'deployed v2'.", show_default=False)
    ],
    at: Annotated[
        int | None,
        typer.Option(
            "--at",
            metavar="N",
            min=0,
            help="Examples learned before it happened; default those that are learned now.",
            show_default=False,
        ),
    ] = None,
    redis: Redis = None,
    config: Config = None,
) -> None:
    """Note what happened to a feed: the page and the report mark it in their plots."""
    from workers.admin import attention

    with feed_store(feed, redis, config) as store:
        if at is not None:
            attention.check_reached(store, at)
        n = attention.note(store, text, at)
    tell(f"{feed}: noted at example {n:,}")
