"""The SQLite file of a feed at rest, or of a saved estimator: its schema, its model, its checks.

A file may come from somebody else. So before anything is read, SQLite checks its pages, its schema
must be exactly the one below, functions in a schema are not trusted, and no value may be larger
than `MAX_VALUE_BYTES`. At rest it has a rollback journal, which exists during a transaction only.
"""

import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import ValidationError

from online_svm.config import PredictorConfig, first_error
from online_svm.errors import InvalidSnapshot
from online_svm.storage.state import Header, unpack

APPLICATION_ID = 0x6F73766D  # "osvm" in ASCII
FORMAT = 1  # `user_version`: version of the schema

MAX_VALUE_BYTES = 1 << 29  # as Redis bounds a value
PART_BYTES = 1 << 24  # of a part of a snapshot
BUSY_SECONDS = 30.0  # time to wait for a transaction of another process

_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE snapshots (
  seq INTEGER PRIMARY KEY, n INTEGER, entry TEXT, digest TEXT, sha256 TEXT, recent_ids BLOB);
CREATE TABLE snapshot_parts (part INTEGER PRIMARY KEY, seq INTEGER, predictor BLOB);
CREATE TABLE input (
  seq INTEGER PRIMARY KEY, ms, number, fields TEXT, x TEXT, xb BLOB, y TEXT, id TEXT, "for" TEXT,
  time TEXT, s TEXT, score TEXT, score_version TEXT, p TEXT, traceparent TEXT, other BLOB);
CREATE TABLE forms (
  form INTEGER PRIMARY KEY, text TEXT UNIQUE, n_classes INTEGER, class_0 TEXT, class_1 TEXT,
  guarantee TEXT, reason TEXT);
CREATE TABLE answers (
  seq INTEGER PRIMARY KEY, ms, number, form INTEGER, numbers BLOB, payload TEXT, status TEXT,
  id TEXT, n INTEGER, label TEXT, lower REAL, upper REAL, probability REAL, "set" TEXT, scores,
  svm_label TEXT, category INTEGER, category_size INTEGER, model INTEGER, calibration INTEGER,
  taxonomy INTEGER, action TEXT, expected_cost REAL, label_wanted INTEGER, label_probability REAL,
  imputed INTEGER, code TEXT, about TEXT, first INTEGER, example TEXT, done TEXT,
  traceparent TEXT);
CREATE TABLE reports (seq INTEGER PRIMARY KEY, ms, number, payload TEXT);
CREATE TABLE alarms (seq INTEGER PRIMARY KEY, ms, number, payload TEXT);
CREATE TABLE events (event INTEGER PRIMARY KEY, stream TEXT, ms, number, other BLOB);
CREATE TABLE erased (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
"""
"""docs/operate.md describes the tables.

`seq` counts the entries of the feed. `ms` and `number` are the two parts of an entry ID. They have
no type: from 2^63 on they are text of twenty digits, which SQLite sorts after all numbers.
"""


def _millionths(place: int) -> str:
    """Return the SQL of a number of `numbers`: 20 bits are five hexadecimal digits."""
    digits = f"substr(hex(substr(numbers, {4 * place + 2}, 3)), 2)"
    terms = (
        f"{16 ** (4 - i)} * (instr('0123456789ABCDEF', substr({digits}, {i + 1}, 1)) - 1)"
        for i in range(5)
    )
    return f"({' + '.join(terms)}) / 1e6"


_OF_TWO = (
    "probability_0", "probability_1", "lower_0", "upper_0", "lower_1", "upper_1", "venn_lower_0",
    "venn_upper_0", "venn_lower_1", "venn_upper_1",
)  # fmt: skip
"""The first numbers of an answer with two classes; those of the maps follow."""

_VIEW = f"""
CREATE VIEW two_classes AS
SELECT seq, ms, number, status, id, n, label, probability, lower, upper, class_0, class_1,
  guarantee, reason,
  {", ".join(f"{_millionths(i)} AS {name}" for i, name in enumerate(_OF_TWO))}
FROM answers JOIN forms USING (form)
WHERE n_classes = 2 AND length(numbers) >= 40;
"""

SCHEMA = _TABLES + _VIEW

_HEADER = b"SQLite format 3\0"
_STATEMENTS = [" ".join(text.split()) for text in SCHEMA.split(";") if text.strip()]

_PRAGMAS = (
    "PRAGMA trusted_schema = OFF", "PRAGMA cell_size_check = ON", "PRAGMA mmap_size = 0",
    "PRAGMA temp_store = MEMORY", "PRAGMA secure_delete = ON", "PRAGMA synchronous = EXTRA",
)  # fmt: skip
"""The first three as sqlite.org/security.html advises for files of others."""

Mode = Literal["ro", "rw"]


@contextmanager
def opened(path: Path, mode: Mode = "ro") -> Iterator[sqlite3.Connection]:
    """Open a file whose pages, schema and format are checked first.

    With "rw" a file that does not exist is created, private to the user; so is the content of an
    empty one. Raises InvalidSnapshot, also in the block, if it is damaged or no such file, and if
    it cannot be written; OSError if it cannot be read.
    """
    with naming(path):
        if mode == "rw":
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        _check_header(path, mode)
        connection = _connected(path, mode)
        with closing(connection):
            if mode == "rw" and not _statements(connection):
                _create(connection)
            _check(path, connection)
            yield connection


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn an error of SQLite in the block into InvalidSnapshot, which names the file."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise InvalidSnapshot(f"{path}: {_reason(error)}") from error
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        fault = error.reason if isinstance(error, UnicodeDecodeError) else error
        raise InvalidSnapshot(f"{path}: is damaged: {fault}; take a copy of it") from error


def _reason(error: sqlite3.OperationalError) -> str:
    kind = getattr(error, "sqlite_errorname", None)
    if kind is None:  # raised by Python's module, whose message shows the text
        return "is damaged: a text in it is not UTF-8; take a copy of it"
    if kind.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return (
            f"cannot be read or written: {error}. Its last step was undone: make room, and run "
            "the same command again"
        )
    if kind.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return "another process has it open: stop that first, and run the same command again"
    if kind.startswith("SQLITE_READONLY"):
        return (
            f"cannot be written: {error}. If its last writer was cut off, open it once as a user "
            "who may write it"
        )
    return f"cannot be opened: {error}"


def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> "_Transaction":
    """Return a block whose writes become visible together; any error in it rolls them back."""
    return _Transaction(connection, kind)


class _Transaction:
    def __init__(self, connection: sqlite3.Connection, kind: str) -> None:
        self._connection, self._kind = connection, kind

    def __enter__(self) -> None:
        self._connection.execute(f"BEGIN {self._kind}")

    def __exit__(self, failed: object, *_: object) -> None:
        try:
            if failed is None:
                self._connection.execute("COMMIT")
        finally:  # also of a commit that was refused; a full disk has rolled back already
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


def _check_header(path: Path, mode: Mode) -> None:
    """Raise InvalidSnapshot unless the first bytes are those of such a file.

    They are read before SQLite has the file: closing it afterwards would drop SQLite's locks.
    """
    if path.exists() and not path.is_file():  # the open of a pipe could block
        raise InvalidSnapshot(f"{path}: is no regular file")
    with path.open("rb") as source:
        head = source.read(100)
    if not head and mode == "rw":
        return
    if not head.startswith(_HEADER) or len(head) < 100:
        raise InvalidSnapshot(
            f"{path}: is neither a saved estimator nor a backup of a feed: give one that save() or "
            "online-svm backup has written"
        )
    if int.from_bytes(head[68:72], "big") != APPLICATION_ID:
        raise InvalidSnapshot(f"{path}: is an SQLite file of another program")
    found = int.from_bytes(head[60:64], "big")
    if found != FORMAT:
        raise InvalidSnapshot(
            f"{path}: has format {found}, this version knows {FORMAT}: read it with the version "
            "that wrote it, and fork the feed"
        )


def _connected(path: Path, mode: Mode) -> sqlite3.Connection:
    """Return a connection that trusts nothing in the file."""
    if mode == "ro" and path.with_name(f"{path.name}-journal").exists():
        _recover(path)
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, timeout=BUSY_SECONDS, isolation_level=None, uri=True)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        for pragma in _PRAGMAS:
            connection.execute(pragma)
    except BaseException:
        connection.close()
        raise
    return connection


def _recover(path: Path) -> None:
    """Let SQLite roll back what a killed writer left, which a read-only connection cannot."""
    uri = f"{path.absolute().as_uri()}?mode=rw"
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(uri, uri=True)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()


def _create(connection: sqlite3.Connection) -> None:
    with transaction(connection):
        if not _statements(connection):  # another process may have been faster
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
            for statement in _STATEMENTS:
                connection.execute(statement)


def _check(path: Path, connection: sqlite3.Connection) -> None:
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        fault = " ".join(str(found).split())[:200]
        raise InvalidSnapshot(f"{path}: is damaged: {fault}; take a copy of it")
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    has_log = path.with_name(f"{path.name}-wal").exists()  # which may hold the last pages
    if not has_log and path.stat().st_size < pages * size:
        raise InvalidSnapshot(f"{path}: is damaged: it is cut; take a copy of it")
    if _statements(connection) != _STATEMENTS:
        raise InvalidSnapshot(
            f"{path}: has other tables than this program makes, so it is not read: take a copy "
            "that nobody has changed"
        )


def _statements(connection: sqlite3.Connection) -> list[str]:
    """Return the statements of the schema, with single blanks."""
    rows = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
    return [" ".join(str(sql).split()) for (sql,) in rows]


def put_snapshot(
    connection: sqlite3.Connection, row: tuple[int, int, str, str, str, bytes], predictor: bytes
) -> None:
    """Add a snapshot in a transaction of the caller: its row, and the predictor in parts."""
    connection.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?)", row)
    connection.execute("DELETE FROM snapshot_parts WHERE seq = ?", row[:1])
    data = memoryview(predictor)
    connection.executemany(
        "INSERT INTO snapshot_parts (seq, predictor) VALUES (?, ?)",
        ((row[0], data[at : at + PART_BYTES]) for at in range(0, len(data), PART_BYTES)),
    )


def predictor_of(connection: sqlite3.Connection, seq: int) -> bytes:
    """Return the predictor of a snapshot."""
    parts = connection.execute(
        "SELECT predictor FROM snapshot_parts WHERE seq = ? ORDER BY part", (seq,)
    )
    return b"".join(bytes(part) for (part,) in parts)


_MAX_LENGTH = 1 << 26  # characters of the notes


class SavedModel(NamedTuple):
    """The content of a file."""

    notes: Header | None  # data of the estimator besides the predictor; None for a feed
    snapshot: bytes  # newest snapshot of the predictor

    def write(self, path: Path) -> None:
        """Write a saved model, which replaces a file of that name at the end.

        Raises InvalidSnapshot if there is the record of a feed, or what is no regular file.
        """
        _check_replaceable(path)
        # A name of its own: two processes may save to one path.
        partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
        try:
            with opened(partial, "rw") as connection, transaction(connection):
                facts = {"kind": "estimator", "notes": json.dumps(self.notes)}
                connection.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
                put_snapshot(connection, (0, 0, "0-0", "", "", b""), self.snapshot)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    @classmethod
    def read(cls, path: Path) -> "SavedModel":
        """Read a file.

        Raises InvalidSnapshot if it is no file of this program, is damaged, or holds no model;
        OSError if it cannot be read.
        """
        with opened(path) as connection:
            facts = dict(
                connection.execute(
                    "SELECT name, value FROM facts WHERE name IN ('kind', 'notes') "
                    "AND length(value) < ?",
                    (_MAX_LENGTH,),
                )
            )
            newest = connection.execute("SELECT max(seq) FROM snapshots").fetchone()[0]
            snapshot = b"" if newest is None else predictor_of(connection, newest)
        if facts.get("kind") not in ("estimator", "feed") or not snapshot:
            raise InvalidSnapshot(f"{path}: holds no model yet: back the feed up once more")
        if facts["kind"] == "feed":
            return cls(None, snapshot)
        try:
            notes = json.loads(facts["notes"])
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise InvalidSnapshot(f"{path}: is damaged: its notes are unreadable") from error
        if not isinstance(notes, dict):
            raise InvalidSnapshot(f"{path}: is damaged: its notes are unreadable")
        return cls(notes, snapshot)


def stored_config(snapshot: bytes) -> PredictorConfig:
    """Return the configuration of a predictor from its snapshot.

    Raises InvalidSnapshot if the snapshot is damaged, or of a version with other settings.
    """
    found = unpack(snapshot).header.get("config")
    if not isinstance(found, dict) or "refit_every" not in found:
        raise InvalidSnapshot("the snapshot is not that of a predictor")
    try:
        return PredictorConfig.model_validate(found)
    except ValidationError as error:
        raise InvalidSnapshot(f"made by another version: {first_error(error)}") from None


def _check_replaceable(path: Path) -> None:
    """Raise InvalidSnapshot for the record of a feed, and for a directory or device."""
    if path.exists() and not path.is_file():
        raise InvalidSnapshot(f"{path}: is no regular file")
    kind = None
    with suppress(InvalidSnapshot, OSError), opened(path) as connection:  # any other file may go
        kind = connection.execute("SELECT value FROM facts WHERE name = 'kind'").fetchone()
    if kind == ("feed",):
        raise InvalidSnapshot(f"{path}: is the record of a feed: save to another file")
