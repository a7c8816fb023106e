"""What the commands share: their options, and the way to Redis. Light: it imports on demand."""

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workers.store import Store

Feed = Annotated[str, typer.Argument(help="Name of the feed.", show_default=False)]
Redis = Annotated[
    str | None,
    typer.Option(
        "--redis",
        metavar="URL",
        help="URL of Redis; default the embedded server of this user.",
        show_default=False,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="TOML file with settings.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def redis_url(given: str | None, config: Path | None = None) -> str:
    """Return the URL of Redis: the flag, the environment, the file, else the embedded server.

    The same order as for every setting; done by hand because the settings take a quarter of a
    second to load, which `status` and `tail` should not wait for.
    """
    url = given or os.environ.get("ONLINE_SVM_REDIS") or _url_in(config)
    return url or embedded_url()


def embedded_url() -> str:
    """Start the embedded server unless it runs, say where it is, and return its URL."""
    from workers.embedded import ensure

    server = ensure()
    note(f"embedded Redis in {server.directory}{' (started)' if server.was_started else ''}")
    return server.url


def _url_in(config: Path | None) -> str | None:
    import tomllib

    from workers.errors import BadConfiguration

    named = config or os.environ.get("ONLINE_SVM_CONFIG")
    if not named:
        return None
    try:
        values = tomllib.loads(Path(named).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise BadConfiguration(f"{named}: {error}") from None
    url = values.get("redis", values.get("worker", {}).get("redis"))
    return url if isinstance(url, str) else None


@contextmanager
def feed_store(feed: str, redis: str | None, config: Path | None = None) -> "Iterator[Store]":
    """Open the store of a feed, for a command that only looks or changes it from outside."""
    from workers.store import Store

    with Store(redis_url(redis, config), feed) as store:
        yield store


def note(text: str) -> None:
    """Tell the user something that is not the result: on standard error."""
    print(text, file=sys.stderr, flush=True)


def confirm(question: str, yes: bool) -> None:
    """Go on only if the user agrees; where nobody can be asked, ask for --yes.

    Raises
    ------
    BadConfiguration
        If there is no terminal to ask on.
    """
    from workers.errors import BadConfiguration

    if yes:
        return
    if not sys.stdin.isatty():
        raise BadConfiguration(f"{question} Say --yes: there is no terminal to ask on")
    typer.confirm(question, abort=True)
