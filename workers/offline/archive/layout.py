"""The directory of an archive: its identity, its lock, and its parts.

A part is ``DIR/feed=F/kind=K/day=D/part-ID.parquet``. ID is its first entry, so it keeps its name
when rows are added. D is the day (UTC) of the times in the entry IDs.
"""

import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from workers.errors import BadConfiguration, writing
from workers.feed.keys import is_feed_name
from workers.feed.position import parse_id
from workers.feed.state import PinnedConfig

KINDS = ("input", "labels", "reports", "alarms", "answers")
"""Kinds of rows in the order of writing: the other rows of an answer are on disk before it."""

ENTRY_KINDS = ("input", "labels", "answers")
"""Kinds whose rows are about one entry. The others hold sums over many entries, so an erasure
leaves them."""

IDENTITY = "archive.json"
LOCK = ".archive.lock"

LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999; the IDs of a producer may be later, and get its day."""

_FEED = "feed="
_PART = re.compile(r"part-([0-9]{1,20})-([0-9]{1,20})\.parquet")
_TEMPORARY = re.compile(r"\.part-[0-9-]{3,41}\.parquet\.[0-9a-f]{8}\.tmp")

ARCHIVE_FORMAT = 1  # version of the layout and the columns
MAX_IDENTITY_BYTES = 1 << 24  # bytes of the file, at most


def feed_directory(root: Path, feed: str) -> Path:
    """Return the directory of a feed's archive; `FeedKeys` makes names safe in paths."""
    return root / f"{_FEED}{feed}"


def day_of(entry_id: bytes) -> str:
    """Return the day of an entry, in UTC."""
    time = min(parse_id(entry_id)[0], LAST_MS)
    return datetime.fromtimestamp(time // 1000, UTC).date().isoformat()


def part_name(first: bytes) -> str:
    """Return the name of the part that begins with an entry."""
    return f"part-{first.decode()}.parquet"


def first_of(part: Path) -> bytes:
    """Return the ID of the first entry of a part, from its name."""
    found = _PART.fullmatch(part.name)
    assert found is not None, part
    return f"{found[1]}-{found[2]}".encode()


def kind_of(part: Path) -> str:
    """Return the kind of the rows of a part."""
    return part.parent.parent.name.removeprefix("kind=")


def parts(directory: Path, kind: str, day: str = "*") -> list[Path]:
    """Return the parts of a kind, of a day or of all days, in the order of their entries."""
    paths = (directory / f"kind={kind}").glob(f"day={day}/part-*.parquet")
    named = (path for path in paths if _PART.fullmatch(path.name))
    return sorted(named, key=lambda part: parse_id(first_of(part)))


def temporaries(directory: Path) -> Iterator[Path]:
    """Yield the unfinished files of an archiver that was killed."""
    for path in directory.glob("kind=*/day=*/.part-*.tmp"):
        if _TEMPORARY.fullmatch(path.name):
            yield path


def is_archive(path: Path) -> bool:
    """Return whether a directory is the archive of a feed, or holds archives of feeds."""
    return path.is_dir() and ((path / IDENTITY).is_file() or any(_feeds_below(path)))


def place_of(root: Path, feed: str) -> Path:
    """Return the directory of a feed's archive, which may be new, below `root`.

    It is `root` itself if only that is an archive.
    """
    own = feed_directory(root, feed)
    return root if (root / IDENTITY).is_file() and not (own / IDENTITY).is_file() else own


def find(path: Path, feed: str | None = None) -> Path:
    """Return the archive at a path: the path itself, the feed's below it, or the only one below it.

    Raises BadConfiguration if there is none, or more than one.
    """
    if (path / IDENTITY).is_file():
        return path
    if feed is not None and (feed_directory(path, feed) / IDENTITY).is_file():
        return feed_directory(path, feed)
    found = sorted(_feeds_below(path)) if path.is_dir() else []
    if len(found) == 1:
        return found[0]
    if not found:
        raise BadConfiguration(f"{path}: is no archive; online-svm export FEED --to DIR writes one")
    names = ", ".join(archive.name for archive in found[:5])
    raise BadConfiguration(
        f"{path}: holds the archives of several feeds; name one of them: {names}"
    )


def _feeds_below(path: Path) -> Iterator[Path]:
    for below in path.glob(f"{_FEED}*"):
        if is_feed_name(below.name[len(_FEED) :].encode()) and (below / IDENTITY).is_file():
            yield below


class Identity(BaseModel):
    """The contents of `archive.json`."""

    model_config = ConfigDict(extra="forbid")

    format: int
    feed: str
    archive: str
    config: str
    config_hash: str
    environment: str | None = None

    @property
    def pinned(self) -> PinnedConfig:
        """The settings that are fixed for the feed."""
        return PinnedConfig(self.config, self.config_hash)


def read_identity(directory: Path) -> Identity | None:
    """Return the identity of an archive; None if there is no archive.

    Raises BadConfiguration if the file cannot be read, or has another format.
    """
    path = directory / IDENTITY
    try:
        with path.open("rb") as source:
            text = source.read(MAX_IDENTITY_BYTES)
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
    """Raise BadConfiguration for another format, before the other fields are checked."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return
    if isinstance(found, dict) and found.get("format", ARCHIVE_FORMAT) != ARCHIVE_FORMAT:
        raise BadConfiguration(
            f"{path}: has format {found['format']!r:.60}, this version knows {ARCHIVE_FORMAT}: "
            "upgrade online-svm"
        )


def claim(directory: Path, feed: str, pinned: PinnedConfig) -> Identity:
    """Return the identity of an archive, after creating the archive unless it exists.

    Raises BadConfiguration if it is of another feed or another configuration, or cannot be written.
    """
    found = read_identity(directory)
    if found is None:
        found = Identity(
            format=ARCHIVE_FORMAT, feed=feed, archive=secrets.token_hex(8), config=pinned.config,
            config_hash=pinned.config_hash,
        )  # fmt: skip
        _write(directory / IDENTITY, found.model_dump_json(indent=1, exclude_none=True).encode())
    if found.feed != feed or found.config_hash != pinned.config_hash:
        raise BadConfiguration(
            f"{directory}: is the archive of a feed {found.feed!r} that was begun with another "
            "configuration: archive to another directory"
        )
    return found


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Lock an archive within the block, or until this process ends, so that no other writes it.

    Raises BadConfiguration if another process has locked it, or the directory cannot be written.
    """
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
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
    with writing(path):
        try:
            with partial.open("wb") as target:
                target.write(data)
                target.flush()
                os.fsync(target.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
