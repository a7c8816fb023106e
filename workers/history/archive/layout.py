"""Places of the files of an archive: ``DIR/feed=F/kind=K/day=D/part-ID.parquet``.

A part is named after its first entry, so it keeps its name when rows are added to it. Day is the
day in UTC of the milliseconds in the entry IDs.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from workers.errors import BadConfiguration
from workers.feed.keys import is_feed_name
from workers.feed.position import parse_id

KINDS = ("input", "labels", "reports", "alarms", "answers")
"""Kinds of rows, in the order in which they are written: answers last, so that what belongs to an
answer is there before it."""

OF_ENTRIES = ("input", "labels", "answers")
"""Kinds whose rows are of one entry; the others hold sums over many, and no entry is erased from
them."""

IDENTITY = "archive.json"
LOCK = ".archive.lock"

LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999; later ones, which a producer may choose, share its day."""

_FEED = "feed="
_PART = re.compile(r"part-([0-9]{1,20})-([0-9]{1,20})\.parquet")
_TEMPORARY = re.compile(r"\.part-[0-9-]{3,41}\.parquet\.[0-9a-f]{8}\.tmp")


def feed_directory(root: Path, feed: str) -> Path:
    """Return where the archive of a feed is; a feed's name is safe in a path, see `FeedKeys`."""
    return root / f"{_FEED}{feed}"


def day_of(entry_id: bytes) -> str:
    """Return the day of an entry.

    Examples
    --------
    >>> day_of(b"1763800000000-0"), day_of(b"18446744073709551615-7")
    ('2025-11-22', '9999-12-31')
    """
    time = min(parse_id(entry_id)[0], LAST_MS)
    return datetime.fromtimestamp(time // 1000, UTC).date().isoformat()


def part_name(first: bytes) -> str:
    """Return the name of the part that begins with an entry."""
    return f"part-{first.decode()}.parquet"


def first_of(part: Path) -> bytes:
    """Return the ID of the first entry of a part; it is in the name.

    Examples
    --------
    >>> first_of(Path("day=2025-11-22/part-1763800000000-0.parquet"))
    b'1763800000000-0'
    """
    found = _PART.fullmatch(part.name)
    assert found is not None, part
    return f"{found[1]}-{found[2]}".encode()


def kind_of(part: Path) -> str:
    """Return the kind of the rows of a part.

    Examples
    --------
    >>> kind_of(Path("feed=mail/kind=labels/day=2025-11-22/part-1763800000000-0.parquet"))
    'labels'
    """
    return part.parent.parent.name.removeprefix("kind=")


def parts_of_day(directory: Path, kind: str, day: str) -> list[Path]:
    """Return the parts of one kind and day, in the order of their entries."""
    return _sorted((directory / f"kind={kind}" / f"day={day}").glob("part-*.parquet"))


def parts(directory: Path, kind: str) -> list[Path]:
    """Return the parts of one kind, in the order of their entries."""
    return _sorted((directory / f"kind={kind}").glob("day=*/part-*.parquet"))


def temporaries(directory: Path) -> Iterator[Path]:
    """Yield files that an archiver left when it died; no row of them counts."""
    for path in directory.glob("kind=*/day=*/.part-*.tmp"):
        if _TEMPORARY.fullmatch(path.name):
            yield path


def is_archive(path: Path) -> bool:
    """Return whether a directory is an archive: of one feed, or of several by name."""
    return path.is_dir() and ((path / IDENTITY).is_file() or any(_feeds_below(path)))


def place_of(root: Path, feed: str) -> Path:
    """Return where the archive of a feed is below `root`, or is to be: there, or `root` itself."""
    own = feed_directory(root, feed)
    return root if (root / IDENTITY).is_file() and not (own / IDENTITY).is_file() else own


def find(path: Path, feed: str | None = None) -> Path:
    """Return the directory of one feed: the given one, the feed's below it, or the only one there.

    Raises
    ------
    BadConfiguration
        If there is none, or more than one.
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
    names = ", ".join(each.name for each in found[:5])
    raise BadConfiguration(
        f"{path}: holds the archives of several feeds; name one of them: {names}"
    )


def _sorted(found: Iterable[Path]) -> list[Path]:
    own = (path for path in found if _PART.fullmatch(path.name))
    return sorted(own, key=lambda part: parse_id(first_of(part)))


def _feeds_below(path: Path) -> Iterator[Path]:
    for each in path.glob(f"{_FEED}*"):
        if is_feed_name(each.name[len(_FEED) :].encode()) and (each / IDENTITY).is_file():
            yield each
