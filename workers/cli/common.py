"""Options and helpers that commands share, such as finding Redis. Imports are deferred."""

import secrets
import sys
from contextlib import contextmanager
from dataclasses import dataclass
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
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        help="Where the data files are; default $ONLINE_SVM_DATA.",
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Force = Annotated[
    bool, typer.Option("--force", help="Even if a worker holds the feed; it will exit.")
]

EVERY = 2.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True, slots=True)
class RedisOptions:
    """Where a command finds Redis."""

    redis: Redis = None
    config: Config = None

    @property
    def flags(self) -> dict[str, str]:
        """The setting that was given as an option, if any."""
        return {} if self.redis is None else {"redis": self.redis}

    def url(self) -> str:
        """Return the URL; see `redis_url`."""
        return redis_url(self.redis, self.config)

    @contextmanager
    def store(self, feed: str) -> "Iterator[Store]":
        """Open the store of a feed, for a command other than `worker`."""
        from workers.broker.store import Store

        with Store(self.url(), feed) as store:
            yield store


def redis_url(given: str | None, config: Path | None = None) -> str:
    """Return the URL of Redis that `given_url` finds, else that of the running embedded server.

    Raises
    ------
    EmbeddedNotRunning
        If there is neither. Commands that only read feeds start no server.
    """
    return given_url(given, config) or attached_url()


def given_url(given: str | None, config: Path | None = None) -> str | None:
    """Return the URL that `workers.config.settings.load` gives; None for the embedded server."""
    # If only a flag is given, there is nothing to resolve. Loading the models of the settings takes
    # a tenth of a second, and `status` and `tail` need not wait for it.
    if config is None and _is_url(given) and not may_hold_settings():
        return given
    from workers.config.settings import load

    return load({} if given is None else {"redis": given}, config).url


def _is_url(given: str | None) -> bool:
    return given is None or "://" in given


def embedded_url() -> str:
    """Start the embedded server if it is not running, print its URL, and return it."""
    from workers.broker.embedded import ensure

    return _told(ensure())


def attached_url() -> str:
    """Print and return the URL of the embedded server, which must be running.

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
def writing(path: Path) -> "Iterator[None]":
    """Report in one line why the user's file cannot be written.

    Raises
    ------
    BadConfiguration
        With the reason that the system gives.
    """
    from workers.errors import BadConfiguration

    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise BadConfiguration(f"{path}: cannot be written: {error.strerror or error}") from None


def check_picture(option: str, path: Path) -> None:
    """Check that a picture of this name could be written.

    Raises
    ------
    BadConfiguration
        For another kind of file, or a directory that does not exist.
    """
    from workers.errors import BadConfiguration

    if path.suffix.lower() != ".png":
        raise BadConfiguration(f"{option} {path}: give a name that ends in .png")
    if not path.parent.is_dir():
        raise BadConfiguration(f"{option} {path}: there is no directory {path.parent}")


@contextmanager
def replacing(path: Path, overwrite: bool) -> "Iterator[TextIO]":
    """Yield a text file that replaces `path`; see `replacing_bytes`."""
    with (
        replacing_bytes(path, overwrite) as raw,
        TextIOWrapper(raw, encoding="utf-8", newline="") as target,
    ):
        yield target


@contextmanager
def replacing_bytes(path: Path, overwrite: bool) -> "Iterator[BinaryIO]":
    """Yield a file that replaces `path` when everything is written.

    The file is written under another name in the same directory. If the writing fails or is
    interrupted, the old file stays. A device or a pipe is written to directly.

    Raises
    ------
    BadConfiguration
        If the file exists and may not be overwritten.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as target:
            yield target
        return
    _refuse_existing(path, overwrite)
    place = path.resolve()  # replace the target of a symbolic link, not the link
    partial = place.with_name(f".{place.name[:200]}.{secrets.token_hex(4)}.part")
    try:
        with partial.open("xb") as target:
            yield target
        _refuse_existing(path, overwrite)
        partial.replace(place)
    finally:
        partial.unlink(missing_ok=True)


def _refuse_existing(path: Path, overwrite: bool) -> None:
    from workers.errors import BadConfiguration

    if path.exists() and not overwrite:
        raise BadConfiguration(f"{path}: the file is there; choose another, or say --overwrite")


def show(text: str, flush: bool = False) -> None:
    """Print a line of the result, with unprintable characters escaped."""
    print(printable(text), flush=flush)


def show_json(values: object) -> None:
    """Print a result as a line of JSON."""
    import orjson

    print(orjson.dumps(values).decode(), flush=True)


def note(text: str) -> None:
    """Print a line for the user that is not part of the result, on standard error."""
    print(printable(text), file=sys.stderr, flush=True)


def confirm(question: str, yes: bool) -> None:
    """Continue only if the user agrees; without a terminal, require --yes.

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
