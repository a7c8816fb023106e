"""Read an archive: its rows in the order of their entries, a page at a time.

`last_archived` checks that it is of the present feed in Redis, not of an earlier feed of its name.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from workers.broker.feed_reader import FeedReader
from workers.broker.streams import Entry
from workers.errors import BadConfiguration
from workers.feed.keys import FIELD
from workers.feed.position import parse_id, previous_id
from workers.feed.state import FeedState
from workers.offline.archive import layout
from workers.offline.archive.layout import Identity, read_identity
from workers.offline.archive.parquet import arrow, last_row, opened
from workers.reading.answers import answer, payload

PAGE_ROWS = 1000  # rows of a page
_BEYOND = (2**64, 0)  # larger than any ID


class FeedWasReset(BadConfiguration):
    """The feed was reset after it was archived, and has other answers."""

    def __init__(self, feed: str, directory: Path) -> None:
        super().__init__(
            f"feed {feed!r} was begun anew after {directory} was written: archive it to another "
            "directory"
        )


class Archive:
    """Reads the archive of a feed.

    `path` is its directory or the one above it, where `feed` selects from several. Raises
    BadConfiguration if there is no archive.
    """

    def __init__(self, path: Path, feed: str | None = None) -> None:
        self.directory = layout.find(path, feed)
        found = read_identity(self.directory)
        assert found is not None  # `find` has checked it
        self.identity: Identity = found
        arrow()  # raises if pyarrow is missing

    def pages(
        self, kind: str, columns: Sequence[str], after: bytes = b"0-0", upto: bytes | None = None
    ) -> Iterator[list[tuple[bytes, tuple[Any, ...]]]]:
        """Yield ID and values of the rows in (after, upto], a page at a time."""
        begin, end = parse_id(after), _BEYOND if upto is None else parse_id(upto)
        files = layout.parts(self.directory, kind)
        firsts = [parse_id(layout.first_of(part)) for part in files]
        nexts = [*firsts[1:], _BEYOND] if files else []
        for part, first, following in zip(files, firsts, nexts, strict=True):
            if following <= begin or first > end:
                continue
            for batch in _batches(part, ("entry", *columns)):
                ids = [text.encode() for text in batch.column(0).to_pylist()]
                values = list(zip(*(c.to_pylist() for c in batch.columns[1:]), strict=True))
                rows = zip(ids, values or [()] * len(ids), strict=True)
                if page := [row for row in rows if begin < parse_id(row[0]) <= end]:
                    yield page

    def inputs(self, after: bytes = b"0-0", upto: bytes | None = None) -> Iterator[list[Entry]]:
        """Yield the input entries in (after, upto], with the bytes of Redis, a page at a time."""
        for page in self.pages("input", ("fields",), after, upto):
            yield [(at, row[0]) for at, row in page]

    def payloads(
        self, kind: str, after: bytes = b"0-0", upto: bytes | None = None
    ) -> Iterator[list[Entry]]:
        """Yield answers, reports or alarms in (after, upto] as entries, with the bytes of Redis."""
        name = FIELD.encode()
        for page in self.pages(kind, ("payload",), after, upto):
            yield [(at, [name, row[0].encode()]) for at, row in page]

    def tail(
        self, kind: str, columns: Sequence[str], count: int, after: bytes, upto: bytes | None
    ) -> list[tuple[bytes, tuple[Any, ...]]]:
        """Return the last `count` rows in (after, upto], reading as few files as possible."""
        found: list[tuple[bytes, tuple[Any, ...]]] = []
        for part in reversed(layout.parts(self.directory, kind)):
            if len(found) >= count:
                break
            begin = max(previous_id(layout.first_of(part)), after, key=parse_id)
            end = previous_id(found[0][0]) if found else upto
            rows = [row for page in self.pages(kind, columns, begin, end) for row in page]
            found = rows[-count:] + found
        return found[-count:]

    def first(self, kind: str) -> bytes | None:
        """Return the ID of the first entry of a kind; None without any."""
        page = next(self.pages(kind, ()), None)
        return None if page is None else page[0][0]

    def first_answer(self) -> tuple[bytes, int | None] | None:
        """Return ID and `seq` of the first answer; None without any."""
        page = next(self.pages("answers", ("seq",)), None)
        return None if page is None else (page[0][0], page[0][1][0])

    @property
    def end(self) -> bytes:
        """The ID of the last answer; b"0-0" without any."""
        last = last_answer(self.directory)
        return b"0-0" if last is None else last[0]


def _batches(part: Path, columns: Sequence[str]) -> Iterator[Any]:
    with opened(part, columns) as source:
        yield from source.iter_batches(batch_size=PAGE_ROWS, columns=list(columns))


def last_answer(directory: Path) -> tuple[bytes, bytes, int | None] | None:
    """Return ID, payload and `seq` of the last answer on disk; None without any."""
    parts = layout.parts(directory, "answers")
    if not parts:
        return None
    entry, text, seq = last_row(parts[-1], ["entry", "payload", "seq"])
    return entry.encode(), text.encode(), seq


def last_archived(store: FeedReader, state: FeedState, directory: Path) -> int | None:
    """Return the `seq` of the last archived answer; None if none is archived.

    A feed that was reset and has answered the same input again has the same answers, so its archive
    can be continued.

    Raises FeedWasReset if the feed has another answer at that ID, has not answered so far, or
    continues with a lower `seq`. Raises BadConfiguration if the archive cannot be read.
    """
    last = last_answer(directory)
    if last is None:
        return None
    entry_id, text, seq = last
    out = store.keys.out
    stored = store.entry(out, entry_id)
    is_other = stored is not None and payload(stored) != text
    is_behind = parse_id(state.position.cursor) < parse_id(entry_id)
    following = store.first_entry(out, after=entry_id)
    next_seq = None if following is None else answer(following).get("seq")
    is_lower = isinstance(next_seq, int) and seq is not None and next_seq <= seq
    if is_other or is_behind or is_lower:
        raise FeedWasReset(store.keys.feed, directory)
    return seq
