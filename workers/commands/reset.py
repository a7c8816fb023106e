"""`reset`: begin a feed anew."""

from typing import Annotated

import typer

from workers.commands.common import Config, Feed, Redis, Yes, confirm, feed_store, note


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reset")(reset)


def reset(
    feed: Feed,
    redis: Redis = None,
    config: Config = None,
    with_input: Annotated[
        bool, typer.Option("--input", help="Delete the input too, not only what came of it.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Even if a worker holds the feed; it will exit.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete the answers and the state of a feed; its input is then answered from the start."""
    from workers.feeds import reset as forget

    what = "its input, answers and state" if with_input else "its answers and state"
    confirm(f"Reset feed {feed!r}: delete {what} for good?", yes)
    with feed_store(feed, redis, config) as store:
        gone = forget(store, with_input, force)
    if gone:
        note(f"feed {feed!r} was reset: {gone} keys deleted")
    else:
        note(f"no feed {feed!r}: nothing to delete")
