"""Options and helpers that commands share, such as finding Redis; with deferred imports."""

import secrets
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import Parameter, Signature
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TextIO

import orjson
import typer
from typer import Argument, Option

from workers.config.environment import may_hold_settings
from workers.errors import BadConfiguration
from workers.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workers.broker.store import Store


def opt(form: str, help: str, **bounds: Any) -> Any:
    """Declare an option by its help and `form`: the flag, as "--json", or what stands for a value.

    Without a flag it has the name of the parameter. `bounds` are as of `typer.Option`.
    """
    if form.startswith("--"):
        return Option(form, help=help, **bounds)
    return Option(metavar=form, help=help, **bounds)


Feed = Annotated[str, Argument(help="Name of the feed.")]
Source = Annotated[
    str,
    Argument(metavar="FEED|FILE", help="Name of the feed, or a file that `backup` has written."),
]
Redis = Annotated[
    str | None,
    Option(
        "--redis", metavar="URL", help="URL of Redis; default the embedded server of this user."
    ),
]
Config = Annotated[Path | None, Option("--config", metavar="FILE", help="TOML file with settings.")]
Json = Annotated[bool, opt("--json", "Print JSON, one object a line.")]
Overwrite = Annotated[bool, opt("--overwrite", "Replace FILE if it is there.")]
Port = Annotated[int, Option(min=0, max=65535, help="Port; 0 is any free one.")]
Yes = Annotated[bool, opt("--yes", "Do not ask.")]
Force = Annotated[bool, opt("--force", "Even if a worker holds the feed; it will exit.")]

Command = Callable[..., None]

PROGRESS_SECONDS = 2.0  # seconds between two lines of progress


def with_settings(command: Command) -> Command:
    """Give a command that takes ``**settings`` an option for each setting, and `--help-all`."""
    # `app` makes the options only if the command is used: loading the settings takes long.
    command.takes_settings = True  # type: ignore[attr-defined]
    return command


def with_parameters(command: Command, parameters: list[Parameter]) -> Command:
    """Declare the parameters of a command that takes ``**given``; return the command."""
    # typer reads both attributes.
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


@dataclass(frozen=True, slots=True)
class RedisOptions:
    """Options for finding Redis."""

    redis: Redis = None
    config: Config = None

    @property
    def flags(self) -> dict[str, str]:
        """The setting `redis`, if it was given as an option."""
        return {} if self.redis is None else {"redis": self.redis}

    def url(self) -> str:
        """Return the given URL, else the URL of the running embedded server.

        Raises EmbeddedNotRunning if neither exists: only `worker` and `push` start a server.
        """
        return self.given_url() or attached_url()

    def given_url(self) -> str | None:
        """Return the URL in the settings; None for the embedded server."""
        # If it can come only from the option, the models of the settings are not loaded, which
        # would take a tenth of a second.
        is_url = self.redis is None or "://" in self.redis
        if self.config is None and is_url and not may_hold_settings():
            return self.redis
        from workers.config.settings import load

        return load(self.flags, self.config).url

    def store(self, feed: str) -> "Store":
        """Return the store of a feed."""
        from workers.broker.store import Store

        return Store(self.url(), feed)

    @contextmanager
    def answered(self, feed: str) -> "Iterator[Store]":
        """Open the store of a feed that exists, and that no earlier version began."""
        from workers.reading.answers import check_known
        from workers.reading.registry import require

        with self.store(feed) as store:
            require(store)
            check_known(store)
            yield store


def embedded_url() -> str:
    """Return the URL of the embedded server; start it if it is not running, and say so."""
    from workers.broker.embedded import ensure

    server = ensure()
    if server.was_started:
        note(f"embedded Redis started{server.other and f': {server.other}'}")
    return server.url


def attached_url() -> str:
    """Return the URL of the embedded server; raise EmbeddedNotRunning if none runs."""
    from workers.broker.embedded import attached

    return attached().url


def check_picture(option: str, path: Path) -> None:
    """Raise BadConfiguration unless the path ends in .png and its directory exists."""
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
    """Yield a file that replaces `path` at the end of the block.

    It is written under another name in the same directory, so that the old file stays if the block
    fails or is interrupted. A device or a pipe is written to directly. Raises BadConfiguration if
    the file exists and may not be overwritten.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as target:
            yield target
        return
    _refuse_existing(path, overwrite)
    resolved = path.resolve()  # replace the target of a symbolic link, not the link
    partial = resolved.with_name(f".{resolved.name[:200]}.{secrets.token_hex(4)}.part")
    try:
        with partial.open("xb") as target:
            yield target
        _refuse_existing(path, overwrite)
        partial.replace(resolved)
    finally:
        partial.unlink(missing_ok=True)


def _refuse_existing(path: Path, overwrite: bool) -> None:
    if path.exists() and not overwrite:
        raise BadConfiguration(f"{path}: the file is there; choose another, or say --overwrite")


def show(text: str) -> None:
    """Print a line of the result, with unprintable characters escaped."""
    print(printable(text))


def show_json(values: object) -> None:
    """Print a result as a line of JSON."""
    print(orjson.dumps(values).decode(), flush=True)


def note(text: str) -> None:
    """Print a line that is not part of the result, on standard error."""
    print(printable(text), file=sys.stderr, flush=True)


def confirm(question: str, yes: bool) -> None:
    """Continue only if the user agrees; raise BadConfiguration without --yes and a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise BadConfiguration(f"{question} Say --yes: there is no terminal to ask on")
    typer.confirm(question, abort=True)
