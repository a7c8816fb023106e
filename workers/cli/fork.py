"""`fork`: answer the same input under another configuration."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from workers.cli.common import Config, Feed, Redis, feed_store, note, redis_url
from workers.config.text_values import text_of
from workers.plural import counted

if TYPE_CHECKING:
    from workers.admin.fork import Fork
    from workers.feed.stored_settings import Renewed


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
    from workers.admin import fork as forking
    from workers.broker.store import Store
    from workers.cli.progress import PlainProgress
    from workers.config import settings
    from workers.errors import Unavailable
    from workers.feed.stored_settings import renewed_settings

    given = settings.load({}, config)  # check the settings before anything is copied
    url = redis_url(redis, config)
    flag = f" --config {config}" if config else ""
    with feed_store(feed, url) as store:
        state = store.state()
        renewed = None if state is None else renewed_settings(given, feed, state.agreement)
        name = to or _free_name(url, feed)
        with Store(url, name) as target:
            entries = store.length(store.keys.input)
            try:
                made = forking.fork(store, target, PlainProgress(entries, "copied"))
            except (Unavailable, KeyboardInterrupt):
                note(f"to go on with the copy: online-svm fork {feed} --to {name}{flag}")
                raise
            if renewed is not None:
                forking.begin(target, renewed.settings)
                note(carried(feed, renewed))
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


def carried(feed: str, renewed: "Renewed") -> str:
    """Return which settings the new feed has from one whose semantics were given up.

    Examples
    --------
    >>> from workers.config.settings import WorkerSettings
    >>> from workers.feed.stored_settings import Changed, Renewed
    >>> kept = {"committee": Changed("single", None), "max_classes": Changed(None, 100)}
    >>> told = carried("f", Renewed(WorkerSettings(), kept)).split("; ")
    >>> told[0]
    "it has the settings of 'f', with the defaults of then: committee single, max_classes none"
    >>> told[1].partition(" FILE ")[2]
    'with committee = "default", max_classes = 100'
    """
    if not renewed.kept:
        return f"it has the settings of {feed!r}"
    then = ", ".join(f"{name} {text_of(kept.then)}" for name, kept in renewed.kept.items())
    now = ", ".join(f"{name} = {_toml(name, kept.now)}" for name, kept in renewed.kept.items())
    return (
        f"it has the settings of {feed!r}, with the defaults of then: {then}; for those of now, or "
        f"some of them: online-svm fork {feed} --to OTHER --config FILE with {now}"
    )


def _toml(name: str, value: Any) -> str:
    """Return a value as the settings file has it."""
    if isinstance(value, bool | int | float):
        return str(value).lower()
    # Unset, it is the default one wherever the other settings allow a committee.
    return '"default"' if (name, value) == ("committee", None) else f'"{text_of(value)}"'


def _free_name(url: str, feed: str) -> str:
    from workers.broker.store import Store

    number = 2
    while True:
        name = f"{feed}-{number}"
        with Store(url, name) as store:
            if not store.types():
                return name
        number += 1
