"""Read examples from files, standard input and named data sets.

Named features keep their names, so that the order of columns may differ between two files. Tables
without names, sparse files and the benchmark sets of `workers.push.datasets`, whose columns have a
fixed order, are sent as arrays.
"""

import csv
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from workers.push.cell_reader import Undecided
from workers.push.columns import NotNumbers
from workers.push.formats import READERS, Lines
from workers.push.reading import BadHeader, BadSource, Format, Reading
from workers.push.rows import Layout, Row, label_text, refuse_columns
from workers.push.tables import table_rows
from workers.push.text_encoding import Unpacked, opened
from workers.text import printable

__all__ = ["BadSource", "Layout", "Reading", "Row", "label_text", "rows"]

_EXTENSIONS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".svmlight": "libsvm",
    ".arff": "arff",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".parquet": "parquet",
}
_MAX_COUNTED = 1 << 30  # bytes of a file whose lines are counted
_BINARY = ("xlsx", "parquet")
_SPREADSHEETS = frozenset((".xls", ".xlsb", ".ods", ".numbers"))
_ARCHIVES = frozenset((".zip", ".7z", ".rar", ".tar", ".tgz", ".bz2", ".xz", ".zst"))
_UNPACK = "an archive: unpack it, and push a file in it"

_OTHER_KINDS = {
    b"PK\x03\x04": f"{_UNPACK} (the name of an Excel workbook ends in .xlsx)",
    b"\x1f\x8b": "compressed by gzip: give it a name that ends in .gz",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet (.xls), or one with a password: save its table as "
    ".xlsx or CSV, without a password",
    b"PAR1": "a Parquet file: push it with --format parquet",
    b"SQLite format 3": "an SQLite file: export a table of it as CSV",
    b"%PDF-": "a PDF document: get its table as CSV",
    b"BZh": _UNPACK, b"\xfd7zXZ": _UNPACK, b"\x28\xb5\x2f\xfd": _UNPACK, b"7z\xbc\xaf": _UNPACK,
}  # fmt: skip
"""What files with these first bytes are."""

_FIRST_BYTES = {"xlsx": b"PK", "parquet": b"PAR1"}  # that a format has

_FORMAT_HINT = "; standard input is read as JSON lines, else --format csv, libsvm or arff"
_MAX_REASON = 600  # characters of a reason: some readers quote the whole line


def rows(source: str, reading: Reading, layout: Layout | None = None) -> Iterator[Row]:
    """Return the examples of a source; fill in the roles of its columns in `layout`.

    A source is a path, ``-`` for standard input, the name of a benchmark set
    (`workers.push.datasets.NAMES`) or of a data set that comes with river (``Phishing``,
    ``ImageSegments``, ``Bananas``). Raises BadSource if there is no such source, or if a row cannot
    be read; the message names the line and the row.
    """
    layout = Layout() if layout is None else layout
    if source == "-":
        hint = "" if reading.format else _FORMAT_HINT
        format_ = reading.format or "jsonl"
        if format_ in _BINARY:
            raise BadSource(f"standard input cannot be {format_}: push the file by its name")
        found = _read("standard input", _standard_input, format_, reading, layout, hint)
        return _with_label_case(found, reading)
    path = Path(source)
    if path.is_file():
        format_ = reading.format or _format_of(path)
        if reading.sheet is not None and format_ != "xlsx":
            raise BadSource(f"{source}: --sheet names a sheet of a workbook; this is {format_}")
        return _with_label_case(_file_rows(path, format_, reading, layout), reading)
    _check_named(source, path)
    if reading.label is not None:
        raise BadSource(f"a data set by name has its own label; leave out --label {reading.label}")
    return _named_rows(source, reading, layout)


def row_count(path: Path, skipped: int) -> int | None:
    """Return about how many rows a file of lines has after the skipped ones; None: not known."""
    if not path.is_file() or path.stat().st_size > _MAX_COUNTED:
        return None
    if path.suffix == ".gz" or _EXTENSIONS.get(path.suffix.lower()) in _BINARY:
        return None
    with path.open("rb") as source:
        lines = sum(block.count(b"\n") for block in iter(lambda: source.read(1 << 20), b""))
    return max(0, lines - skipped)


def _check_named(name: str, path: Path) -> None:
    """Raise BadSource unless there is a data set of this name."""
    from workers.push.datasets import NAMES

    if name in NAMES:
        return
    if path.is_dir():
        raise BadSource(f"{name}: a directory; name a file in it")
    if path.exists():
        raise BadSource(
            f"{name}: a pipe or a device: push it as standard input, with - --format csv < {name}"
        )
    if looks_like_a_path(name):
        within = "" if path.is_absolute() else f" in {Path.cwd()}"
        raise BadSource(f"{name}: no such file{within}")
    if comes_with_river(name):
        return
    raise BadSource(
        f"{name}: no such file, and no data set of that name; known: {', '.join(NAMES)}, "
        "Phishing, ImageSegments, Bananas"
    )


def looks_like_a_path(source: str) -> bool:
    """Return whether a text is the name of a file rather than of a data set."""
    return "/" in source or Path(source).suffix != ""


def _file_rows(path: Path, format_: Format, reading: Reading, layout: Layout) -> Iterator[Row]:
    """Yield the rows of a file. Raises BadSource also if the file changes meanwhile."""
    with _unchanged(path), path.open("rb") as file:
        _check_kind(path, file, format_)
        if format_ in _BINARY:
            yield from _binary_rows(path, file, format_, reading, layout)
        elif path.suffix == ".gz":
            yield from _read(str(path), lambda: Unpacked(file).checked(), format_, reading, layout)
        else:
            yield from _read(str(path), lambda: file, format_, reading, layout)


@contextmanager
def _unchanged(path: Path) -> Iterator[None]:
    """Raise BadSource at the end of the block, in the place of another one, if the file changed."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise BadSource(f"{path}: cannot be read: {error.strerror}") from None

    def state() -> tuple[int, int]:
        found = os.fstat(file.fileno())
        return found.st_size, found.st_mtime_ns

    with file:
        before = state()
        try:
            yield
        except BadSource:
            if state() == before:
                raise
        changed = state() != before
    if changed:
        raise BadSource(f"{path}: it changed while it was read: push a copy that nobody writes to")


def _check_kind(path: Path, file: IO[bytes], format_: Format) -> None:
    """Raise BadSource if the file is empty, or if its first bytes are those of another format."""
    first = file.read(16)
    file.seek(0)
    if not first:
        raise BadSource(f"{path}: the source is empty")
    own = b"\x1f\x8b" if path.suffix == ".gz" else _FIRST_BYTES.get(format_)
    for start, kind in _OTHER_KINDS.items():
        if first.startswith(start) and not (own and start.startswith(own)):
            raise BadSource(f"{path}: {kind}")


def _standard_input() -> IO[bytes]:
    return sys.stdin.buffer


def _lines(binary: IO[bytes], format_: Format, reading: Reading) -> Lines:
    may_wait = binary is getattr(sys.stdin, "buffer", None)
    if format_ != "csv":
        return Lines(io.TextIOWrapper(binary, encoding="utf-8-sig", newline=""), None, may_wait)
    known = None if reading.known is None else reading.known.encoding
    text, decode = opened(binary, reading.encoding, known)
    return Lines(text, decode, may_wait)


def _with_label_case(found: Iterator[Row], reading: Reading) -> Iterator[Row]:
    """Return the rows with labels in lower case, if the user or the feed wants that."""
    known = None if reading.known is None else reading.known.label_case
    if (reading.label_case or known) != "lower":
        return found
    return (replace(row, y=row.y and row.y.strip().lower()) for row in found)


def _binary_rows(
    path: Path, file: IO[bytes], format_: Format, reading: Reading, layout: Layout
) -> Iterator[Row]:
    from workers.push.excel import xlsx_table
    from workers.push.parquet import parquet_table

    try:
        is_sheet = format_ == "xlsx"
        table = xlsx_table(file, reading, layout) if is_sheet else parquet_table(file, reading)
        yield from table_rows(table, reading, layout)
    except BadSource as error:
        at = "" if error.line is None else f", row {error.line}"
        raise BadSource(f"{path}{at}: {printable(str(error))}") from None


def _format_of(path: Path) -> Format:
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix.lower() in _SPREADSHEETS:
        raise BadSource(
            f"{path}: a spreadsheet; save its table as CSV or .xlsx, and push that file"
        )
    if {suffix.lower(), path.suffix.lower()} & _ARCHIVES:
        raise BadSource(f"{path}: {_UNPACK}")
    if _EXTENSIONS.get(suffix.lower()) in _BINARY and path.suffix == ".gz":
        raise BadSource(f"{path}: unpack it first")
    if suffix.lower() not in _EXTENSIONS:
        raise BadSource(f"{path}: say what it is with --format csv, jsonl, libsvm or arff")
    return _EXTENSIONS[suffix.lower()]


def _read(
    name: str,
    source: Callable[[], IO[bytes]],
    format_: Format,
    reading: Reading,
    layout: Layout,
    hint: str = "",
) -> Iterator[Row]:
    """Open a source and yield its rows; if the first has another format, the error has the hint."""
    count, lines = 0, None
    try:
        with source() as binary:
            lines = _lines(binary, format_, reading)
            for count, row in enumerate(READERS[format_](lines, reading, layout), 1):  # noqa: B007  (the error names the row)
                yield row
    except Undecided as error:
        raise BadSource(f"{name}: {error}") from None
    except BadSource as error:
        limit = None if isinstance(error, NotNumbers) else _MAX_REASON
        if isinstance(error, BadHeader):
            count = -1
        raise _at(name, error.line or lines, count + 1, str(error)[:limit]) from None
    except (ValueError, KeyError, IndexError, csv.Error, StopIteration) as error:
        reason = str(error)[:200] + hint * (count == 0)
        line = getattr(error, "line", None) or lines
        raise _at(name, line, count + 1, f"not {format_}: {reason}") from error
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)[:200]
        raise _at(name, lines, count + 1, f"cannot be read: {reason}") from error


def _at(name: str, line: Lines | int | None, row: int, reason: str) -> BadSource:
    """Return an error that names the line and the row; 0: none. The reason becomes one line."""
    reason = printable(" ".join(reason.split()))
    if line is None:
        return BadSource(f"{name}: {reason}")
    at = line if isinstance(line, int) else line.number
    return BadSource(f"{name}, line {at}{f', row {row}' if row else ''}: {reason}")


def _named_rows(name: str, reading: Reading, layout: Layout) -> Iterator[Row]:
    from workers.push import datasets as data

    refuse_columns(reading, "a data set by name")
    layout.label = "its own" if reading.labelled else None
    if name in data.NAMES:
        dataset = data.load(name)
        return (
            Row(x.tolist(), str(y) if reading.labelled else None)
            for x, y in zip(dataset.X, dataset.y, strict=True)
        )
    return _river_rows(name, reading)


def comes_with_river(name: str) -> bool:
    """Return whether river has a data set of this name in a file."""
    return _river_kind(name) is not None


def _river_kind(name: str) -> Any:
    """Return the class of a data set of river; None if there is none of this name."""
    from river import datasets

    kind = getattr(datasets, name, None)
    is_dataset = isinstance(kind, type) and issubclass(kind, datasets.base.FileDataset)
    return kind if is_dataset else None


def _river_rows(name: str, reading: Reading) -> Iterator[Row]:
    kind = _river_kind(name)
    assert kind is not None
    dataset = kind()
    if not dataset.path.exists():
        raise BadSource(f"{name} does not come with river: download it with river first")
    return (Row(x, label_text(y) if reading.labelled else None) for x, y in dataset)
