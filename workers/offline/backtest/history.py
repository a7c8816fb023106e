"""A history in a temporary file, and the kept input of a feed as a history.

The source is read only once, because standard input cannot be read again and a feed may grow. In
the file an entry is its number of parts, then the length and the bytes of each part; numbers have
32 bits, little-endian. The first part is the ID, which may be empty; the others are the fields.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from workers.admin.erased_streams import erased_of
from workers.admin.fork import unbroken_input
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration
from workers.feed.erased import Missing
from workers.feed.position import parse_id
from workers.feed.stored_settings import stored_settings
from workers.reading.registry import NoSuchFeed

Entry = tuple[bytes, list[bytes]]

BATCH_ENTRIES = 256  # entries of a batch, as by default in a worker
BATCH_BYTES = 1 << 26  # bytes after which a batch ends, likewise

_NUMBER = struct.Struct("<I")

_START = b"0-0"


@dataclass(frozen=True, slots=True)
class Recording:
    """A history in a file."""

    path: Path
    entries: int
    digest: str  # SHA-256 of the fields of the entries, in order, hexadecimal


def record(entries: Iterable[Entry], path: Path) -> Recording:
    """Write entries (ID and ``[name, value, ...]``) to a new file.

    The digest does not depend on the IDs. Raises BadConfiguration if there are no entries, or no
    room for them.
    """
    count, digest = 0, sha256()
    source = iter(entries)
    with path.open("xb") as target:
        for entry_id, fields in source:
            digest.update(_framed(fields))
            try:
                target.write(_framed((entry_id, *fields)))
            except OSError as error:
                raise BadConfiguration(
                    f"{path}: cannot be written: {error.strerror or error}; set TMPDIR to a "
                    "directory with room"
                ) from None
            count += 1
    if not count:
        raise BadConfiguration("the history has no entries; there is nothing to answer")
    return Recording(path, count, digest.hexdigest())


def read(path: Path, count: int = BATCH_ENTRIES) -> Iterator[list[Entry]]:
    """Yield the entries in batches of at most `count`."""
    with path.open("rb") as source:
        batch: list[Entry] = []
        begin = 0
        while head := source.read(_NUMBER.size):
            (parts,) = _NUMBER.unpack(head)
            fields = []
            for _ in range(parts):
                (length,) = _NUMBER.unpack(source.read(_NUMBER.size))
                fields.append(source.read(length))
            batch.append((fields[0], fields[1:]))
            if len(batch) == count or source.tell() - begin >= BATCH_BYTES:
                yield batch
                batch, begin = [], source.tell()
        if batch:
            yield batch


def _framed(fields: Sequence[bytes]) -> bytes:
    parts = [_NUMBER.pack(len(fields))]
    for part in fields:
        parts += [_NUMBER.pack(len(part)), part]
    return b"".join(parts)


class FeedHistory:
    """The kept input of a feed, without entries that are pushed later.

    After `entries` has ended, `missing` has the entries that the feed answered and no longer keeps.
    Raises NoSuchFeed if the feed has no input.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last = store.newest_id(store.keys.input)
        if self._last == _START:
            raise NoSuchFeed(
                f"feed {store.keys.feed!r} has no input to answer: push to it, or name a file or a "
                "data set"
            )
        self._state = store.state()
        self.missing = Missing(0)

    def settings(self, given: WorkerSettings) -> WorkerSettings:
        """Return the given settings, with stored values of the feed for all others.

        Raises BadConfiguration for a combination, or for settings that are no longer supported.
        """
        if self._state is None:
            return given
        feed = self._store.keys.feed
        stored = stored_settings(feed, self._state.pinned)
        if stored is None:
            raise BadConfiguration(f"feed {feed!r} is a combination: backtest its sources")
        return given.over(*stored)

    def entries(self) -> Iterator[Entry]:
        """Yield the entries; raise InputLost if a worker trimmed entries before they were read."""
        state, answered = self._state, 0
        cursor = _START if state is None else state.position.cursor
        for page in unbroken_input(self._store, _START, self._last, _trimmed):
            for entry_id, fields in page:
                answered += parse_id(entry_id) <= parse_id(cursor)
                yield entry_id, fields
        if state is not None:
            count = state.position.seq - answered
            self.missing = Missing.of(erased_of(self._store), cursor, count)


def _trimmed(feed: str, _after: bytes) -> str:
    return (
        f"feed {feed!r} gave up input before it was read: stop its worker meanwhile, or start it "
        "with --keep-input"
    )
