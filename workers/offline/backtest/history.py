"""A history in a temporary file, and the kept input of a feed or a recording as a history.

The source is read only once, because standard input cannot be read again and a feed may grow. The
file is a recording with input alone; a row of a table has no entry ID.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from online_svm.storage.recording import opened, transaction
from workers.admin.erased_streams import Missing, erased_of
from workers.broker.feed_reader import FeedReader
from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration
from workers.feed.position import parse_id
from workers.feed.stored_settings import stored_settings
from workers.reading.registry import NoSuchFeed
from workers.recording.answers import INSERT_INPUT, SELECT_INPUT, framed, input_entry, input_row
from workers.recording.file import InvalidRecording, reporting
from workers.recording.fork import unbroken_input

Entry = tuple[bytes, list[bytes]]

BATCH_ENTRIES = 256  # entries of a batch, as by default in a worker
BATCH_BYTES = 1 << 26  # bytes after which a batch ends, likewise

_START = b"0-0"


@dataclass(frozen=True, slots=True)
class RecordedEntries:
    """A history in a file."""

    path: Path
    entries: int
    digest: str  # SHA-256 of the fields of the entries, in order, hexadecimal


def record(entries: Iterable[Entry], path: Path) -> RecordedEntries:
    """Write entries (ID and ``[name, value, ...]``) to a new file.

    The digest does not depend on the IDs. Raises BadConfiguration if there are no entries, or no
    room for them.
    """
    digest, count = sha256(), 0

    def rows() -> Iterator[tuple[object, ...]]:
        nonlocal count
        for entry in entries:
            digest.update(len(entry[1]).to_bytes(4, "little") + framed(entry[1]))
            yield input_row(count, entry)
            count += 1

    try:
        with reporting(path), opened(path, "rw") as file, transaction(file):
            file.executemany(INSERT_INPUT, rows())
    except InvalidRecording as error:
        raise BadConfiguration(f"{error}; set TMPDIR to a directory with room") from None
    if not count:
        raise BadConfiguration("the history has no entries; there is nothing to answer")
    return RecordedEntries(path, count, digest.hexdigest())


def read(path: Path, count: int = BATCH_ENTRIES) -> Iterator[list[Entry]]:
    """Yield the entries in batches of at most `count`."""
    with reporting(path), opened(path) as file:
        batch, size = list[Entry](), 0
        for row in file.execute(f"{SELECT_INPUT} ORDER BY seq"):
            batch.append(input_entry(row))
            size += sum(map(len, batch[-1][1]))
            if len(batch) == count or size >= BATCH_BYTES:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch


class FeedHistory:
    """The kept input of a feed, without entries that are pushed later.

    After `entries` has ended, `missing` has the entries that the feed answered and no longer keeps.
    Raises NoSuchFeed if the feed has no input.
    """

    def __init__(self, store: FeedReader) -> None:
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

        Raises BadConfiguration for settings that are no longer supported.
        """
        if self._state is None:
            return given
        return given.over(*stored_settings(self._store.keys.feed, self._state.pinned))

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
