"""Read examples from files, standard input and named data sets.

Named features keep their names, so that the order of columns may differ between two files. Tables
without names, sparse files and the benchmark sets of `workers.push.datasets`, whose columns have a
fixed order, are sent as arrays.
"""

import csv
import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from workers.push.columns import NotNumbers
from workers.push.formats import READERS, Lines
from workers.push.rows import BadSource, Format, Layout, Reading, Row, label_text, refuse_columns

__all__ = ["BadSource", "Layout", "Reading", "Row", "label_text", "rows"]

_EXTENSIONS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".svmlight": "libsvm",
    ".arff": "arff",
}
_SPREADSHEETS = frozenset((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers"))

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
        opened = lambda: sys.stdin  # noqa: E731  (a function, as for a file)
        format_ = reading.format or "jsonl"
        return _read("standard input", opened, format_, reading, layout, hint)
    path = Path(source)
    if path.is_file():
        format_ = reading.format or _format_of(path)
        return _read(source, lambda: _open(path), format_, reading, layout)
    _check_named(source, path)
    if reading.label is not None:
        raise BadSource(f"a data set by name has its own label; leave out --label {reading.label}")
    return _named_rows(source, reading, layout)


def _check_named(name: str, path: Path) -> None:
    """Raise BadSource unless there is a data set of this name."""
    from workers.push.datasets import NAMES

    if name in NAMES:
        return
    if path.is_dir():
        raise BadSource(f"{name}: a directory; name a file in it")
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


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _format_of(path: Path) -> Format:
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix.lower() in _SPREADSHEETS:
        raise BadSource(f"{path}: a spreadsheet; save its table as CSV (UTF-8), and push that file")
    if suffix.lower() not in _EXTENSIONS:
        raise BadSource(f"{path}: say what it is with --format csv, jsonl, libsvm or arff")
    return _EXTENSIONS[suffix.lower()]


def _read(
    name: str,
    source: Callable[[], TextIO],
    format_: Format,
    reading: Reading,
    layout: Layout,
    hint: str = "",
) -> Iterator[Row]:
    """Open a source and yield its rows; if the first has another format, the error has the hint."""
    count, lines = 0, None
    try:
        with source() as text:
            lines = Lines(text)
            for count, row in enumerate(READERS[format_](lines, reading, layout), 1):  # noqa: B007  (the error names the row)
                yield row
    except NotNumbers as error:
        raise BadSource(f"{name}, line {error.line}, row {count + 1}: {error}") from None
    except BadSource as error:
        raise _at(name, lines, count + 1, str(error)) from None
    except (ValueError, KeyError, IndexError, csv.Error, StopIteration) as error:
        reason = str(error)[:200] + hint * (count == 0)
        raise _at(name, lines, count + 1, f"not {format_}: {reason}") from error
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)[:200]
        raise _at(name, lines, count + 1, f"cannot be read: {reason}") from error


def _at(name: str, lines: Lines | None, row: int, reason: str) -> BadSource:
    """Return an error that names the line and the row, with line breaks in the reason removed."""
    reason = " ".join(reason[:_MAX_REASON].split())
    if lines is None:
        return BadSource(f"{name}: {reason}")
    return BadSource(f"{name}, line {lines.number}, row {row}: {reason}")


def _named_rows(name: str, reading: Reading, layout: Layout) -> Iterator[Row]:
    from workers.push import datasets as data

    refuse_columns(reading, "a data set by name")
    layout.label = "its own" if reading.labelled else None
    if name in data.NAMES:
        dataset = data.load(name, reading.data_dir)
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
