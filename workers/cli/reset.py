"""`reset`: delete the answers and the state of a feed."""

from typing import Annotated

import typer

from workers.cli.common import Feed, Force, RedisOptions, Yes, confirm, note
from workers.plural import counted


def reset(
    feed: Feed,
    *,
    redis: RedisOptions,
    with_input: Annotated[
        bool, typer.Option("--input", help="Delete the input too, not only what came of it.")
    ] = False,
    force: Force = False,
    yes: Yes = False,
) -> None:
    """Delete the answers and the state of a feed; its input is then answered from the start."""
    from workers.admin.reset import reset as forget

    what = "its input, answers and state" if with_input else "its answers and state"
    confirm(f"Reset feed {feed!r}: delete {what} for good?", yes)
    with redis.store(feed) as store:
        gone = forget(store, with_input, force)
        note(describe(feed, gone, store.length(store.keys.input)))


def describe(feed: str, gone: int, kept: int) -> str:
    """Return how much was deleted, and how much input is kept.

    Examples
    --------
    >>> describe("mail", 2, 0)
    "feed 'mail' was reset: 2 keys deleted"
    >>> describe("mail", 0, 1)
    "feed 'mail' has no answers and no state to delete; its input is kept (1 entry) unless --input"
    """
    input_kept = f"its input is kept ({counted(kept, 'entry', 'entries')}) unless --input"
    if gone:
        done = f"feed {feed!r} was reset: {counted(gone, 'key')} deleted"
        return f"{done}; {input_kept}" if kept else done
    if kept:
        return f"feed {feed!r} has no answers and no state to delete; {input_kept}"
    return f"no feed {feed!r}: nothing to delete; a worker may begin it anew"
