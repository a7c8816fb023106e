"""`fork`: answer the same input under another configuration."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workers.cli.common import Feed, RedisOptions, note
from workers.config.text_values import option
from workers.plural import counted

if TYPE_CHECKING:
    from workers.admin.fork import Fork


def fork(
    feed: Feed,
    *,
    redis: RedisOptions,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="NAME", help="Name of the new feed; default FEED-2, FEED-3..."
        ),
    ] = None,
) -> None:
    """Copy the kept input of a feed to a new one, to answer it with other settings."""
    from workers.admin import fork as forking
    from workers.broker.store import Store
    from workers.cli.progress import plain_progress
    from workers.config import settings
    from workers.errors import Unavailable
    from workers.feed.stored_settings import lost_settings

    given = settings.load({}, redis.config)  # check the settings before anything is copied
    url = redis.url()
    flag = f" --config {redis.config}" if redis.config else ""
    with Store(url, feed) as store:
        state = store.state()
        lost = None if state is None else lost_settings(feed, state.agreement, given)
        name = to or _free_name(url, feed)
        with Store(url, name) as target:
            entries = store.length(store.keys.input)
            try:
                made = forking.fork(store, target, plain_progress(entries, "copied"))
            except (Unavailable, KeyboardInterrupt):
                note(f"to go on with the copy: online-svm fork {feed} --to {name}{flag}")
                raise
    if lost is not None:
        note(renewed(feed, name, lost))
    note(f"{describe(made)}; to answer: online-svm worker {name}{flag}")
    print(name)


def describe(made: "Fork") -> str:
    """Return how many entries were copied, and how many the new feed lacks.

    Examples
    --------
    >>> from workers.admin.fork import Fork
    >>> describe(Fork(1, 1, 0))
    '1 entry copied'
    >>> describe(Fork(40, 100, 2000))
    '40 entries copied (60 were before); the new feed begins with these, as 2,000 older ones were \
answered and trimmed'
    """
    before = made.total - made.copied
    told = f"{counted(made.copied, 'entry', 'entries')} copied"
    if before:
        told += f" ({before:,} {'was' if before == 1 else 'were'} before)"
    if made.trimmed:
        older = "older one was" if made.trimmed == 1 else "older ones were"
        told += (
            f"; the new feed begins with these, as {made.trimmed:,} {older} answered and trimmed"
        )
    return told


def renewed(feed: str, name: str, lost: Mapping[str, Any]) -> str:
    """Return what became of the settings of a feed of earlier semantics.

    Parameters
    ----------
    feed, name : str
        The feed, and its fork.
    lost : mapping from the name of a setting to its value
        What the feed was set to and its fork is not.

    Examples
    --------
    >>> told = renewed("f", "f-2", {"classes": ["a", "b"], "window": 80}).split("; ")
    >>> told[0]
    "'f' was begun under semantics that are no longer computed"
    >>> told[1], told[2]
    ("'f-2' has its kept input and today's defaults", "'f' was set to --classes a,b --window 80")
    """
    told = (
        f"{feed!r} was begun under semantics that are no longer computed; {name!r} has its kept "
        "input and today's defaults"
    )
    options = " ".join(option(setting, value) for setting, value in lost.items())
    return f"{told}; {feed!r} was set to {options}" if options else told


def _free_name(url: str, feed: str) -> str:
    from workers.broker.store import Store

    number = 2
    while True:
        name = f"{feed}-{number}"
        with Store(url, name) as store:
            if not store.types():
                return name
        number += 1
