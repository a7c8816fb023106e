"""What the commands share: their options, and the way to Redis. Light: it imports on demand."""

import secrets
import sys
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, TextIO

import typer

from workers.config.environment import may_hold_settings
from workers.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workers.broker.embedded import Embedded
    from workers.broker.store import Store

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
    """Return the URL of Redis that `given_url` finds, else that of the running embedded server.

    Raises
    ------
    EmbeddedNotRunning
        If neither is there: a command that looks at feeds starts no server.
    """
    return given_url(given, config) or attached_url()


def given_url(given: str | None, config: Path | None = None) -> str | None:
    """Return the URL that `workers.config.settings.load` gives; None for the embedded server."""
    # Where a flag is all there is, nothing is left to resolve, and the models of the settings take
    # a tenth of a second to load, which `status` and `tail` need not wait for.
    if config is None and _is_url(given) and not may_hold_settings():
        return given
    from workers.config.settings import load

    return load({} if given is None else {"redis": given}, config).url


def _is_url(given: str | None) -> bool:
    return given is None or "://" in given


def embedded_url() -> str:
    """Start the embedded server unless it runs, say where it is, and return its URL."""
    from workers.broker.embedded import ensure

    return _told(ensure())


def attached_url() -> str:
    """Say where the embedded server is, which must be running, and return its URL.

    Raises
    ------
    EmbeddedNotRunning
        If it is not.
    """
    from workers.broker.embedded import attached

    return _told(attached())


def _told(server: "Embedded") -> str:
    note(f"embedded Redis at {server.url}{' (started)' if server.was_started else ''}")
    return server.url


@contextmanager
def feed_store(feed: str, redis: str | None, config: Path | None = None) -> "Iterator[Store]":
    """Open the store of a feed, for a command that only looks or changes it from outside."""
    from workers.broker.store import Store

    with Store(redis_url(redis, config), feed) as store:
        yield store


@contextmanager
def writing(path: Path) -> "Iterator[None]":
    """Say in one line why a file of the user's choice cannot be written.

    Raises
    ------
    BadConfiguration
        For what the system says against it.
    """
    from workers.errors import BadConfiguration

    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise BadConfiguration(f"{path}: cannot be written: {error.strerror or error}") from None


@contextmanager
def replacing(path: Path, overwrite: bool) -> "Iterator[TextIO]":
    """Yield a text file that takes the place of `path`; see `replacing_bytes`."""
    with (
        replacing_bytes(path, overwrite) as raw,
        TextIOWrapper(raw, encoding="utf-8", newline="") as target,
    ):
        yield target


@contextmanager
def replacing_bytes(path: Path, overwrite: bool) -> "Iterator[BinaryIO]":
    """Yield a file that takes the place of `path` when all is written, and not before.

    It is written beside it: what was there stays if the writing fails or is interrupted. A device
    or a pipe is written to as it is.

    Raises
    ------
    BadConfiguration
        If the file is there and is not to be overwritten.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as target:
            yield target
        return
    _refuse_existing(path, overwrite)
    place = path.resolve()  # what a symbolic link points at is replaced, not the link
    beside = place.with_name(f".{place.name[:200]}.{secrets.token_hex(4)}.part")
    try:
        with beside.open("xb") as target:
            yield target
        _refuse_existing(path, overwrite)
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)


def _refuse_existing(path: Path, overwrite: bool) -> None:
    from workers.errors import BadConfiguration

    if path.exists() and not overwrite:
        raise BadConfiguration(f"{path}: the file is there; choose another, or say --overwrite")


def show(text: str, flush: bool = False) -> None:
    """Print a line of the result; what is not printable in it is escaped."""
    print(printable(text), flush=flush)


def note(text: str) -> None:
    """Tell the user something that is not the result: on standard error, on one line."""
    print(printable(text), file=sys.stderr, flush=True)


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
