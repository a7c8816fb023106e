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
    from workers.credentials import FILES, complete

    in_file = _worker_settings(config)
    url = given or os.environ.get("ONLINE_SVM_REDIS") or in_file.get("redis")
    files = {
        name: os.environ.get(f"ONLINE_SVM_{name.upper()}") or in_file.get(name) for name in FILES
    }
    return complete(url, files) or embedded_url()


def embedded_url() -> str:
    """Start the embedded server unless it runs, say where it is, and return its URL."""
    from workers.embedded import ensure

    server = ensure()
    note(f"embedded Redis at {server.url}{' (started)' if server.was_started else ''}")
    return server.url


def _worker_settings(config: Path | None) -> dict[str, str]:
    """Return the texts of the settings file that say where Redis is and how to get in."""
    import tomllib

    from workers.errors import BadConfiguration

    named = config or os.environ.get("ONLINE_SVM_CONFIG")
    if not named:
        return {}
    try:
        values = tomllib.loads(Path(named).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise BadConfiguration(f"{named}: {error}") from None
    table = values.get("worker", {})
    flat = (table if isinstance(table, dict) else {}) | values
    return {name: value for name, value in flat.items() if isinstance(value, str)}


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
