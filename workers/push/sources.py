"""Read examples from files, standard input and named data sets.

Every reader yields `Row`s. Named features keep their names, so the order of columns may differ
between two files. Tables without names, sparse files and the benchmark sets of
`workers.push.datasets` (whose columns have a fixed order) are sent as arrays.
"""

import csv
import gzip
import io
import itertools
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO, cast

import orjson

from workers.push.lines import Lines
from workers.push.rows import (
    BadSource,
    Format,
    Layout,
    Reading,
    Row,
    find_layout,
    label_text,
    number,
    refuse_columns,
    with_targets,
)

__all__ = ["BadSource", "Layout", "Reading", "Row", "label_text", "rows"]

WIDEST = 100_000
"""Largest number of features of any feed; see `workers.config.settings.Limits`."""

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
_ASSUMED = "; standard input is read as JSON lines, else --format csv, libsvm or arff"
_TOLD = 600
"""Characters of what is wrong with a row, at most: some readers quote the line, however long."""

_INDEX = re.compile("[0-9]{1,10}")
_ATTRIBUTE = re.compile(r"""\s*@attribute\s+('[^']*'|"[^"]*"|\S+)""", re.IGNORECASE)


def rows(source: str, reading: Reading, layout: Layout | None = None) -> Iterator[Row]:
    """Return the examples of a source.

    Parameters
    ----------
    source : str
        A path, ``-`` for standard input, the name of a benchmark set
        (`workers.push.datasets.NAMES`) or of a data set that comes with river
        (``Phishing``, ``ImageSegments``, ``Bananas``).
    reading : Reading
    layout : Layout, optional
        Filled in with the roles of the columns.

    Raises
    ------
    BadSource
        If there is no such source, or a row cannot be read: the message names the line and the
        row.
    """
    layout = Layout() if layout is None else layout
    if source == "-":
        hint = "" if reading.format else _ASSUMED
        opened = lambda: sys.stdin  # noqa: E731  (as for a file: opened when it is read)
        format_ = reading.format or "jsonl"
        return _read("standard input", opened, format_, reading, layout, hint)
    path = Path(source)
    if path.is_file():
        format_ = reading.format or _format_of(path)
        return _read(source, lambda: _open(path), format_, reading, layout)
    if reading.label is not None:
        raise BadSource(f"a data set by name has its own label; leave out --label {reading.label}")
    return _named(source, reading, layout)


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _format_of(path: Path) -> Format:
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
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
    """Open a source and yield its rows; if the first has another format, the error adds `hint`."""
    readers = {"csv": _csv_rows, "jsonl": _json_rows, "libsvm": _libsvm_rows, "arff": _arff_rows}
    count, lines = 0, None
    try:
        with source() as text:
            lines = Lines(text)
            for count, row in enumerate(readers[format_](lines, reading, layout), 1):  # noqa: B007  (the error names the row)
                yield row
    except BadSource as error:
        raise _at(name, lines, count + 1, str(error)) from None
    except (ValueError, KeyError, IndexError, csv.Error, StopIteration) as error:
        told = str(error)[:200] + hint * (count == 0)
        raise _at(name, lines, count + 1, f"not {format_}: {told}") from error
    except (OSError, EOFError, zlib.error) as error:
        told = getattr(error, "strerror", None) or str(error)[:200]
        raise _at(name, lines, count + 1, f"cannot be read: {told}") from error


def _at(name: str, lines: Lines | None, row: int, told: str) -> BadSource:
    """Return an error that names the line and the row, on one line: readers quote lines."""
    told = " ".join(told[:_TOLD].split())
    if lines is None:
        return BadSource(f"{name}: {told}")
    return BadSource(f"{name}, line {lines.number}, row {row}: {told}")


def _csv_rows(lines: Iterable[str], reading: Reading, layout: Layout) -> Iterator[Row]:
    from river.stream import iter_csv

    filled = (line for line in lines if line.strip())
    first = next(filled, "")
    delimiter = max(",;\t ", key=first.count)
    cells = next(csv.reader([first], delimiter=delimiter), [])
    _check_width(len(cells), reading)
    names = cells if reading.header else [f"x{i}" for i in range(1, len(cells) + 1)]
    find_layout(names, reading, layout)
    wanted, missing = layout.features(names), reading.missing
    body = filled if reading.header else itertools.chain([first], filled)
    # An extra cell gets the name None, which no column has, so it is noticed.
    table: Any = iter_csv(cast(TextIO, body), fieldnames=[*names, None], delimiter=delimiter)
    for x, _ in table:
        if len(x) != len(names):
            raise BadSource(f"not {len(names)} columns, as the first line has")
        features = {name: number(name, x[name], missing) for name in wanted}
        sent = features if reading.header else list(features.values())
        y, p, id_ = (x.get(name) for name in (layout.label, layout.prob, layout.id))
        yield with_targets(sent, y, p, reading, id_)


def _check_width(columns: int, reading: Reading) -> None:
    """Raise BadSource where too many columns are left when label, id and others are taken out."""
    most = WIDEST + len(reading.drop) + sum(map(bool, (reading.labelled, reading.prob, reading.id)))
    if columns > most:
        raise BadSource(f"more than {most} columns: a feed takes at most {WIDEST} features")


def _json_rows(lines: Iterable[str], reading: Reading, layout: Layout) -> Iterator[Row]:
    """Read objects like an input entry (`x`, `y`, `p`, `id`), or flat ones: features and label.

    Values are sent unchanged; the feed's answer says if one cannot be used.
    """
    layout.label = (reading.label or "y") if reading.labelled else None
    layout.prob, layout.id, layout.dropped = reading.prob, reading.id, list(reading.drop)
    for line in lines:
        if line.strip():
            item = orjson.loads(line)
            if not isinstance(item, dict):
                raise ValueError("a line must be a JSON object")
            yield _json_row(item, reading)


def _json_row(item: dict[str, Any], reading: Reading) -> Row:
    name, is_entry = reading.label or "y", isinstance(item.get("x"), list | dict)
    prob = reading.prob or ("p" if is_entry else None)
    id_name = reading.id or ("id" if is_entry else None)
    p = None if prob is None else item.pop(prob, None)
    sent = None if id_name is None else item.pop(id_name, None)
    if reading.label is not None and name not in item and p is None:
        raise BadSource(f"no {name!r} for the label")
    y = item.pop(name, None) if reading.labelled else None
    for dropped in reading.drop:
        item.pop(dropped, None)
    x = item.pop("x") if is_entry else item
    if is_entry and item:
        raise BadSource(f"unknown keys beside x, y, p and id: {', '.join(item)[:200]}")
    return _json_targets(_json_features(x, reading), y, p, sent, reading)


def _json_features(x: Any, reading: Reading) -> Any:
    """Return the features without dropped columns, and with null for missing values."""
    if isinstance(x, dict):
        return {
            name: None if isinstance(value, str) and value in reading.na else value
            for name, value in x.items()
            if name not in reading.drop
        }
    return [None if isinstance(value, str) and value in reading.na else value for value in x]


def _json_targets(x: Any, y: object, p: object, sent: object, reading: Reading) -> Row:
    """Return a row. In JSON a missing label is null, so any text but those of --na is a label."""
    row = with_targets(x, y, p, reading, None)
    label = label_text(y)
    is_label = row.p is None and label is not None and label not in reading.na
    return Row(x, label if is_label else row.y, None if sent is None else str(sent), row.p)


def _libsvm_rows(lines: Iterable[str], reading: Reading, layout: Layout) -> Iterator[Row]:
    from river.stream import iter_libsvm

    refuse_columns(reading, "a LIBSVM file")
    layout.label = "the first of a line" if reading.labelled else None
    # The reader needs a feature in each line; an explicit zero means the same as an empty row.
    stripped = (line.split("#")[0].rstrip() for line in lines)
    whole = (line if " " in line else f"{line} 1:0" for line in stripped if line)
    width = reading.features
    bound = width or WIDEST
    narrow = (_checked_pairs(line, max(bound, WIDEST)) for line in whole)
    pairs: Any = iter_libsvm(cast(TextIO, narrow), target_type=str)
    checked: Iterator[tuple[dict[int, float], Any]] = ((_placed(x, bound), y) for x, y in pairs)
    if width is None:
        held = list(checked)
        width = max((index for x, _ in held for index in x), default=0)
        checked = iter(held)
    for x, y in checked:
        dense = [0.0] * width
        for index, value in x.items():
            dense[index - 1] = value
        yield Row(dense, y if reading.labelled else None)


def _checked_pairs(line: str, width: int) -> str:
    """Return a line, if it has at most `width` features; checked before they are taken apart."""
    count = line.count(":")
    if count > width:
        raise BadSource(f"{count} features in a line: a feed takes at most {width}")
    return line


def _placed(x: dict[str, float], width: int) -> dict[int, float]:
    """Return the features of a row by index; check the indices before allocating a row."""
    placed = {}
    for text, value in x.items():
        if not _INDEX.fullmatch(text) or not 1 <= int(text) <= width:
            raise BadSource(
                f"index {text[:40]} is outside 1 to {width}"
                + (", the most features that a feed takes" if width == WIDEST else "")
            )
        if value - value != 0:
            raise BadSource(f"feature {text} is {value}, not a finite number")
        placed[int(text)] = value
    return placed


def _arff_rows(lines: Iterable[str], reading: Reading, layout: Layout) -> Iterator[Row]:
    from river.stream import iter_arff
    from scipy.io.arff import ParseArffError

    names: list[str] = []
    buffer = cast(TextIO, _remember_attributes(lines, names, reading))
    wanted, missing = None, reading.missing
    try:
        for x, _ in iter_arff(buffer, target=None):
            if wanted is None:
                find_layout(names, reading, layout)
                wanted = layout.features(names)
            # The reader omits missing values; the feed must be told that they are missing.
            features = {name: number(name, x.get(name), missing) for name in wanted}
            y, p, id_ = (x.get(name) for name in (layout.label, layout.prob, layout.id))
            text = y.strip(" '\"") if isinstance(y, str) else y
            yield with_targets(features, text, p, reading, id_)
    except ParseArffError as error:
        raise BadSource(str(error)) from error
    except RuntimeError as error:  # the reader's StopIteration, inside a generator
        raise BadSource("the file ends before @data") from error


def _remember_attributes(lines: Iterable[str], names: list[str], reading: Reading) -> Iterator[str]:
    """Yield the lines without empty ones and comments; append the names of attributes."""
    for line in lines:
        if found := _ATTRIBUTE.match(line):
            names.append(found[1].strip("'\""))
            _check_width(len(names), reading)
        if line.strip() and not line.startswith("%"):
            yield line


def _named(name: str, reading: Reading, layout: Layout) -> Iterator[Row]:
    """Return the rows of a named data set."""
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
    """Return whether river has a data set of examples under a name.

    Examples
    --------
    >>> comes_with_river("Phishing"), comes_with_river("phishing")
    (True, False)
    """
    return _river_kind(name) is not None


def _river_kind(name: str) -> Any:
    """Return the class of a data set of river; None if it has none of that name."""
    from river import datasets

    kind = getattr(datasets, name, None)
    is_one = isinstance(kind, type) and issubclass(kind, datasets.base.FileDataset)
    return kind if is_one else None


def _river_rows(name: str, reading: Reading) -> Iterator[Row]:
    kind = _river_kind(name)
    if kind is None:
        from workers.push.datasets import NAMES

        if Path(name).is_dir():
            raise BadSource(f"{name}: a directory; name a file in it")
        raise BadSource(
            f"{name}: no such file, and no data set of that name; known: {', '.join(NAMES)}, "
            "Phishing, ImageSegments, Bananas"
        )
    dataset = kind()
    if not dataset.path.exists():
        raise BadSource(f"{name} does not come with river: download it with river first")
    return (Row(x, label_text(y) if reading.labelled else None) for x, y in dataset)
