"""Identity of an archive: the feed, its configuration, and a name of its own."""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from workers.errors import BadConfiguration
from workers.feed.state import Agreement
from workers.history.archive.layout import IDENTITY, LOCK

FORMAT = 1
"""Version of the layout and the columns."""

LARGEST = 1 << 24
"""Bytes of the file, at most."""


class Identity(BaseModel):
    """What stands in `archive.json`.

    Attributes
    ----------
    format : int
    feed : str
    archive : str
        Its own name: consumer of the group that it acknowledges, so that no other archive does.
    config, config_hash, environment : str
        What the feed is bound to.
    """

    model_config = ConfigDict(extra="forbid")

    format: int
    feed: str
    archive: str
    config: str
    config_hash: str
    environment: str

    @property
    def agreement(self) -> Agreement:
        """What the feed is bound to."""
        return Agreement(self.config, self.config_hash, self.environment)


def read_identity(directory: Path) -> Identity | None:
    """Return what an archive is of; None if there is none.

    Raises
    ------
    BadConfiguration
        If the file cannot be read, or a newer version of this program wrote it.
    """
    path = directory / IDENTITY
    try:
        with path.open("rb") as source:
            text = source.read(LARGEST)
        _check_format(path, text)
        found = Identity.model_validate_json(text)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadConfiguration(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValidationError:
        raise BadConfiguration(
            f"{path}: does not say what this archive is of; restore that file, or archive to "
            "another directory"
        ) from None
    return found


def _check_format(path: Path, text: bytes) -> None:
    """Raise BadConfiguration if a newer version wrote it; its other fields may be others."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return
    if isinstance(found, dict) and found.get("format", FORMAT) != FORMAT:
        raise BadConfiguration(
            f"{path}: has format {found['format']!r:.60}, this version knows {FORMAT}: upgrade "
            "online-svm"
        )


def claim(directory: Path, feed: str, agreement: Agreement) -> Identity:
    """Return what an archive is of; begin it if there is none.

    Raises
    ------
    BadConfiguration
        If it is of another feed or another configuration, or cannot be written.
    """
    found = read_identity(directory)
    if found is None:
        found = Identity(
            format=FORMAT, feed=feed, archive=secrets.token_hex(8), config=agreement.config,
            config_hash=agreement.config_hash, environment=agreement.environment,
        )  # fmt: skip
        _write(directory / IDENTITY, found.model_dump_json(indent=1).encode())
    if found.feed != feed or found.config_hash != agreement.config_hash:
        raise BadConfiguration(
            f"{directory}: is the archive of a feed {found.feed!r} that was begun with another "
            "configuration: archive to another directory"
        )
    return found


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold an archive, so that no other process writes it; the end of this one gives it up.

    Raises
    ------
    BadConfiguration
        If another process holds it, or the directory cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise BadConfiguration(f"{directory}: cannot be written: {error.strerror}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadConfiguration(
                f"{directory}: another process writes this archive; one at a time does"
            ) from None
        yield
    finally:
        os.close(descriptor)


def _write(path: Path, data: bytes) -> None:
    partial = path.with_name(f".{path.name}.tmp")
    try:
        with partial.open("wb") as target:
            target.write(data)
            target.flush()
            os.fsync(target.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise BadConfiguration(f"{path}: cannot be written: {error.strerror or error}") from None
