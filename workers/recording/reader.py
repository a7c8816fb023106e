"""Read a recording as a feed: it answers the commands that read one in Redis.

So `verify`, `fork`, `explain`, `report`, `export` and `backtest` read a file as they read a feed.
Every command is a transaction of its own, so that a reader never keeps a writer waiting for long.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Self, cast

from typing_extensions import override

from online_svm.storage.recording import opened, predictor_of
from workers.broker import commands
from workers.broker.connection import Connection
from workers.broker.feed_reader import PAGE, PAGE_BYTES, FeedReader
from workers.broker.pipeline import Argument
from workers.broker.streams import Entry
from workers.errors import StateLost
from workers.feed.keys import FIELD, FeedKeys
from workers.feed.position import Position
from workers.feed.state import FeedState, PinnedConfig, Pointer
from workers.recording.answers import (
    SELECT_ANSWER,
    SELECT_INPUT,
    Forms,
    entry_id,
    id_columns,
    input_entry,
    payload_entry,
    unframed,
)
from workers.recording.file import InvalidRecording, is_recording, reporting
from workers.session import snapshots

STATE = (
    "format", "epoch", "writer", "cursor", "seq", "n", "digest", "config", "config_hash",
    "retention",
)  # fmt: skip
"""Facts that are fields of the feed's state in Redis, under the same names."""

MAX_FACT = 1 << 22  # characters

_TABLES: dict[str, tuple[str, Callable[[Sequence[Any]], Entry]]] = {
    "input": (SELECT_INPUT, input_entry),
    "reports": ("SELECT ms, number, payload FROM reports", payload_entry),
    "alarms": ("SELECT ms, number, payload FROM alarms", payload_entry),
}
"""Selection of rows, and the function that makes an entry of a row, by table."""


def reading(
    source: str, feed: Callable[[str], AbstractContextManager[FeedReader]]
) -> AbstractContextManager[FeedReader]:
    """Open a recording if `source` is the file of one, else what `feed` opens by this name."""
    return Recording.open(Path(source)) if is_recording(source) else feed(source)


class Recording(FeedReader):
    """The feed in a file; `path` names it in errors. See `Recording.open`."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self.file = path, connection
        facts = self.facts()
        if facts.get("kind") != "feed":
            other = "an estimator, and no feed" if facts else "nothing yet: back the feed up again"
            raise InvalidRecording(f"{path}: holds {other}")
        keys = FeedKeys(facts.get("feed", ""))
        answering = cast(Connection, _Commands(self, keys))  # it has the methods that reading needs
        super().__init__("", keys.feed, connections=(answering, answering))

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[Self]:
        """Open a recording read-only; InvalidRecording, also in the block: it cannot be read."""
        with reporting(path), opened(path) as connection:
            yield cls(path, connection)

    def facts(self) -> dict[str, str]:
        """Return all facts."""
        rows = self.file.execute(
            "SELECT name, value FROM facts WHERE length(value) < ?", (MAX_FACT,)
        )
        return {str(name): str(value) for name, value in rows}

    @override
    def pages(
        self, stream: str, after: bytes, upto: bytes = b"+", count: int = PAGE
    ) -> Iterator[list[Entry]]:
        while page := list(self._page(stream, after, upto, count)):
            yield page
            after = page[-1][0]

    def _page(self, stream: str, after: bytes, upto: bytes, count: int) -> Iterator[Entry]:
        size = 0
        for entry in self.entries(stream, b"(" + after, upto, count):
            yield entry
            size += sum(map(len, entry[1]))
            if size > PAGE_BYTES:
                return

    @override
    def state(self) -> FeedState | None:
        try:
            return super().state()
        except StateLost as error:
            raise InvalidRecording(
                f"{self.path}: is damaged: a row of facts is unreadable; take a copy of it"
            ) from error

    @override
    def get_snapshot(self, pointer: Pointer) -> tuple[bytes, tuple[bytes, ...]] | None:
        row = self.file.execute(
            "SELECT seq, n, entry, digest, recent_ids FROM snapshots WHERE sha256 = ?",
            (pointer.sha256,),
        ).fetchone()
        if row is None:
            return None
        config_hash = self.facts().get("config_hash", "")
        with self.parsing("snapshots"):
            seq, n, entry, digest, recent = row
            position = Position(entry.encode(), seq, n, bytes.fromhex(digest))
            body = b"".join((recent, predictor_of(self.file, seq)))
            return snapshots.encode(self.keys.feed, config_hash, position, body)[1], ()

    def begun(self) -> list[Position]:
        """Return the position before the first answer, if its digest is known, else nothing."""
        cursor, _, digest = self.facts().get("begun", "").partition(" ")
        with self.parsing("facts"):
            return [Position(cursor.encode(), digest=bytes.fromhex(digest))] if cursor else []

    def pointers(self) -> list[Pointer]:
        """Return the pointers to all snapshots, the oldest first."""
        rows = self.file.execute("SELECT n, sha256, entry FROM snapshots ORDER BY seq")
        with self.parsing("snapshots"):
            return [Pointer(n, sha256, entry.encode()) for n, sha256, entry in rows]

    @contextmanager
    def parsing(self, table: str) -> Iterator[None]:
        """Turn an error about a value in the block into InvalidRecording, which names the table."""
        try:
            yield
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidRecording(
                f"{self.path}: is damaged: a row of {table} is unreadable ({error})"
            ) from error


class _Commands:
    """Answers the commands that read a feed from its recording."""

    def __init__(self, recording: Recording, keys: FeedKeys) -> None:
        self._recording, self._file, self._keys = recording, recording.file, keys
        names = ("input", "answers", "reports", "alarms")
        self._tables = dict(zip((keys.input, *keys.outputs), names, strict=False))
        self._selected = _TABLES | {"answers": (SELECT_ANSWER, Forms(self._file).entry)}

    def call(self, name: str, key: str, *rest: Any, **_: Any) -> Any:
        """Return the reply to a command."""
        match name:
            case commands.RANGE:
                return self._range(key, *rest)
            case commands.REVERSED_RANGE:
                last, first, *count = rest
                return self._range(key, first, last, *count, is_reversed=True)
            case commands.LENGTH:
                return self._count(key)
            case commands.KEY_TYPE:
                return (
                    b"hash"
                    if key == self._keys.state
                    else (b"stream" if self._count(key) else b"none")
                )
            case commands.ALL_FIELDS:
                return [part for pair in self._hash(key).items() for part in pair]
            case commands.SOME_FIELDS:
                found = self._hash(key)
                return [found.get(field.encode()) for field in rest]
        raise NotImplementedError(name)

    def send_all(self, sent: Sequence[Sequence[Argument]]) -> list[Any]:
        """Return the replies to commands, for `receive`."""
        return [self.call(*command) for command in sent]  # type: ignore[arg-type]

    def receive(self, reply: Any) -> Any:
        """Return a reply of `send_all`."""
        return reply

    def _hash(self, key: str) -> dict[bytes, bytes]:
        if key == self._keys.erased:
            rows = self._file.execute("SELECT name, value FROM erased")
            return {str(name).encode(): str(value).encode() for name, value in rows}
        if key != self._keys.state:
            return {}
        facts, pointers = self._recording.facts(), self._recording.pointers()
        found = {name: facts[name] for name in STATE if name in facts}
        ends = {"previous": b"", "snapshot": b""}
        if pointers:
            ends["snapshot"] = pointers[-1].encode()
            if not is_whole(facts) or self._hash(self._keys.erased):
                ends["previous"] = pointers[0].encode()
        return {name.encode(): value.encode() for name, value in found.items()} | {
            name.encode(): value for name, value in ends.items()
        }

    def _count(self, key: str) -> int:
        if key in self._tables:
            (count,) = self._file.execute(f"SELECT count(*) FROM {self._tables[key]}").fetchone()
            return int(count)
        return len(self._few(key))

    def _range(
        self, key: str, first: bytes, last: bytes, *count: Any, is_reversed: bool = False
    ) -> list[Entry]:
        limit = int(count[1]) if count else -1
        if key not in self._tables:
            return self._among(self._few(key), first, last, limit, is_reversed)
        table = self._tables[key]
        begin = 0 if first == b"-" else self._seq_from(table, first)
        rest = "" if last == b"+" else f"AND seq < {self._seq_after(table, last)}"
        select, made = self._selected[table]
        rows = self._file.execute(
            f"{select} WHERE seq >= ? {rest} ORDER BY seq {'DESC' if is_reversed else ''} LIMIT ?",
            (begin, limit),
        )
        with self._recording.parsing(table):
            return [made(row) for row in rows]

    def _seq_from(self, table: str, first: bytes) -> int:
        """Return the `seq` from which on IDs are at or after a bound, `(ID` for after."""
        if first.startswith(b"("):
            return self._seq_after(table, first[1:])
        return self._first_seq(table, first, lambda at, bound: at >= bound)

    def _seq_after(self, table: str, last: bytes) -> int:
        return self._first_seq(table, last, lambda at, bound: at > bound)

    def _first_seq(
        self, table: str, at: bytes, holds: Callable[[tuple[Any, Any], tuple[Any, Any]], bool]
    ) -> int:
        """Return the first `seq` whose ID holds for a bound: IDs grow with `seq`, so halve."""
        # Two queries: SQLite scans the table if one asks for both.
        ends = self._file.execute(
            f"SELECT (SELECT min(seq) FROM {table}), (SELECT max(seq) FROM {table})"
        ).fetchone()
        if ends[0] is None:
            return 0
        bound, low, high = _comparable(id_columns(at)), ends[0], ends[1] + 1
        while low < high:
            middle = (low + high) // 2
            row = self._file.execute(
                f"SELECT seq, ms, number FROM {table} WHERE seq >= ? ORDER BY seq LIMIT 1",
                (middle,),
            ).fetchone()
            with self._recording.parsing(table):
                is_behind = row is not None and not holds(_comparable(row[1:]), bound)
            if not is_behind:
                high = middle
            else:
                low = row[0] + 1
        return int(low)

    def _few(self, key: str) -> list[Entry]:
        """Return all entries of a stream that is short: events, times of alarms, the convention."""
        names = {self._keys.events: "events", self._keys.raised: "raised"}
        if key == self._keys.table:
            table = self._recording.facts().get("table")
            return [] if table is None else [(b"0-1", [FIELD.encode(), table.encode()])]
        rows = self._file.execute(
            "SELECT ms, number, other FROM events WHERE stream = ? ORDER BY event",
            (names.get(key),),
        )
        with self._recording.parsing("events"):
            return [(entry_id(ms, number), unframed(other)) for ms, number, other in rows]

    def _among(
        self, entries: list[Entry], first: bytes, last: bytes, limit: int, is_reversed: bool
    ) -> list[Entry]:
        def bound(at: bytes) -> tuple[Any, Any]:
            return _comparable(id_columns(at.removeprefix(b"(")))

        found = [
            entry for entry in entries
            if (first == b"-" or bound(entry[0]) > bound(first)
                or (bound(entry[0]) == bound(first) and not first.startswith(b"(")))
            and (last == b"+" or bound(entry[0]) <= bound(last))
        ]  # fmt: skip
        found = found[::-1] if is_reversed else found
        return found if limit < 0 else found[:limit]


def _comparable(at: Sequence[Any]) -> tuple[int, int]:
    return int(at[0]), int(at[1])


def is_whole(facts: dict[str, str]) -> bool:
    """Return whether input and answers are complete from the first entry of the feed on."""
    return facts.get("input_from") == facts.get("answers_from") == "0"


def pinned_of(facts: dict[str, str]) -> PinnedConfig:
    """Return the configuration of the recorded feed."""
    return PinnedConfig(facts.get("config", ""), facts.get("config_hash", ""))
