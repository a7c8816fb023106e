"""Where examples to push come from: files, standard input, and data sets by name.

Every reader yields `Row`s. Features that have names keep them: the feed then knows its features
by name, and a column that moves between two files does no harm. Tables without names, sparse
files and the benchmark sets of `workers.data` (whose columns never move) become arrays.
"""

import csv
import gzip
import io
import itertools
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TextIO, cast

import orjson

from workers.errors import BadConfiguration

Format = Literal["csv", "jsonl", "libsvm", "arff"]
Features = Sequence[Any] | Mapping[str, Any]

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
_MISSING = frozenset(("", "?"))
_ATTRIBUTE = re.compile(r"""\s*@attribute\s+('[^']*'|"[^"]*"|\S+)""", re.IGNORECASE)


class BadSource(BadConfiguration):
    """A source of examples that is not there, or cannot be read."""


@dataclass(frozen=True, slots=True)
class Row:
    """One example to push: features, and what there is of label, producer's id and probability."""

    x: Features
    y: str | None = None
    id: str | None = None
    p: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read a source.

    Attributes
    ----------
    format : str or None
        By default the one that the file's extension names; JSON lines for standard input.
    label : str or None
        Column of the label. By default the last one; `y` in JSON lines.
    labelled : bool
        Without labels every column is a feature.
    header : bool
        Whether the first line of a CSV file names its columns.
    features : int or None
        Width of a LIBSVM source; by default its largest index, for which it is read whole.
    data_dir : path or None
        Where the benchmark sets are.
    prob : str or None
        Column of an annotator's probability. A row that has one and no label is sent with it;
        what is wrong with one that has both, the feed's answer says.
    """

    format: Format | None = None
    label: str | None = None
    labelled: bool = True
    header: bool = True
    features: int | None = None
    data_dir: Path | None = None
    prob: str | None = None


def rows(source: str, reading: Reading) -> Iterator[Row]:
    """Return the examples of a source.

    Parameters
    ----------
    source : str
        A path, ``-`` for standard input, the name of a benchmark set (`workers.data.NAMES`) or of
        a data set that comes with river (``Phishing``, ``ImageSegments``, ``Bananas``).

    Raises
    ------
    BadSource
        If there is no such source, or a row cannot be read: the message names the row.
    """
    if source == "-":
        hint = "" if reading.format else _ASSUMED
        return _read(lambda: sys.stdin, reading.format or "jsonl", reading, hint)
    path = Path(source)
    if path.is_file():
        return _read(lambda: _open(path), reading.format or _format_of(path), reading)
    _refuse_probability(reading, "a data set by name")
    if reading.label is not None:
        raise BadSource(f"a data set by name has its own label; leave out --label {reading.label}")
    return _named(source, reading)


def label_text(value: object) -> str | None:
    """Return a label as the text the feed will know it by.

    Examples
    --------
    >>> [label_text(value) for value in ("a", True, 3, 1.0, 0.5, None)]
    ['a', 'true', '3', '1', '0.5', None]
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return orjson.dumps(value).decode()


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
    source: Callable[[], TextIO], format_: Format, reading: Reading, hint: str = ""
) -> Iterator[Row]:
    """Open a source and yield its rows; `hint` is told where the first is not of that format."""
    readers = {"csv": _csv_rows, "jsonl": _json_rows, "libsvm": _libsvm_rows, "arff": _arff_rows}
    number = 0
    with source() as lines:
        try:
            for number, row in enumerate(readers[format_](lines, reading), 1):  # noqa: B007  (the error names the row)
                yield row
        except BadSource as error:
            raise BadSource(f"row {number + 1}: {error}") from None
        except (ValueError, KeyError, IndexError, csv.Error, StopIteration) as error:
            told = str(error)[:200] + hint * (number == 0)
            raise BadSource(f"row {number + 1}: not {format_}: {told}") from error


def _csv_rows(lines: TextIO, reading: Reading) -> Iterator[Row]:
    from river.stream import iter_csv

    filled = (line for line in lines if line.strip())
    first = next(filled, "")
    delimiter = max(",;\t ", key=first.count)
    cells = next(csv.reader([first], delimiter=delimiter), [])
    names = cells if reading.header else [f"x{i}" for i in range(1, len(cells) + 1)]
    if len(set(names)) != len(names):
        raise BadSource("two columns have the same name")
    target = _label_of(names, reading)
    prob = _probability_of(names, reading)
    body = filled if reading.header else itertools.chain([first], filled)
    # A cell too many lands under a name that no column has, where it is noticed.
    table: Any = iter_csv(cast(TextIO, body), fieldnames=[*names, None], delimiter=delimiter)
    for x, _ in table:
        if len(x) != len(names):
            raise BadSource(f"not {len(names)} columns, as the first line has")
        y = None if target is None else x.pop(target)
        features = {name: _number(name, value) for name, value in x.items() if name != prob}
        sent = features if reading.header else list(features.values())
        yield _with_targets(sent, y, x.get(prob))


def _label_of(names: Sequence[str], reading: Reading) -> str | None:
    """Return the name of the label's column."""
    if not reading.labelled:
        return None
    if not names:
        raise BadSource("the source is empty")
    others = [name for name in names if name != reading.prob]
    label = reading.label or (others or names)[-1]
    if label not in others:
        raise BadSource(f"no column {label!r} for the label; there are {', '.join(others)[:200]}")
    return label


def _probability_of(names: Sequence[str], reading: Reading) -> str | None:
    """Return the name of the column of probabilities, if there is to be one."""
    if reading.prob is not None and reading.prob not in names:
        there = ", ".join(names)[:200]
        raise BadSource(f"no column {reading.prob!r} for the probability; there are {there}")
    return reading.prob


def _refuse_probability(reading: Reading, what: str) -> None:
    if reading.prob is not None:
        raise BadSource(f"{what} has no column {reading.prob!r} for the probability")


def _with_targets(x: Features, y: object, probability: object, id_: str | None = None) -> Row:
    """Return a row; beside a probability an empty label is none."""
    p = _filled(probability)
    return Row(x, label_text(y) if p is None else _filled(y), id_, p)


def _filled(value: object) -> str | None:
    """Return a cell as text, None where it is empty."""
    text = None if isinstance(value, float) and math.isnan(value) else label_text(value)
    return None if text is None or text.strip() in _MISSING else text.strip()


def _number(name: str, value: object) -> float | None:
    """Return a cell as a number, None where it is missing."""
    if isinstance(value, str):
        text = value.strip()
        if text in _MISSING:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.inf
        if "_" in text or value == math.inf:
            raise BadSource(f"{name} is {text[:40]!r}, not a number: encode it, or leave it out")
    return None if isinstance(value, float) and math.isnan(value) else value  # type: ignore[return-value]  # readers yield text or numbers


def _json_rows(lines: TextIO, reading: Reading) -> Iterator[Row]:
    """Read objects like an input entry (`x`, `y`, `p`, `id`), or flat ones: features and label.

    Values are passed on as they are: what is wrong with them, the feed's answer says.
    """
    for line in lines:
        if line.strip():
            item = orjson.loads(line)
            if not isinstance(item, dict):
                raise ValueError("a line must be a JSON object")
            yield _json_row(item, reading)


def _json_row(item: dict[str, Any], reading: Reading) -> Row:
    name, is_entry = reading.label or "y", isinstance(item.get("x"), list | dict)
    prob = reading.prob or ("p" if is_entry else None)
    p = None if prob is None else item.pop(prob, None)
    if reading.label is not None and name not in item and p is None:
        raise BadSource(f"no {name!r} for the label")
    y = item.pop(name, None) if reading.labelled else None
    if not is_entry:
        return _with_targets(item, y, p)
    x, sent = item.pop("x"), item.pop("id", None)
    if item:
        raise BadSource(f"unknown keys beside x, y, p and id: {', '.join(item)[:200]}")
    return _with_targets(x, y, p, None if sent is None else str(sent))


def _libsvm_rows(lines: TextIO, reading: Reading) -> Iterator[Row]:
    from river.stream import iter_libsvm

    _refuse_probability(reading, "a LIBSVM file")
    # The reader needs one feature a line; an explicit zero is what an empty row means.
    stripped = (line.split("#")[0].rstrip() for line in lines)
    whole = (line if " " in line else f"{line} 1:0" for line in stripped if line)
    pairs: Any = iter_libsvm(cast(TextIO, whole), target_type=str)
    width = reading.features
    if width is None:
        pairs = list(pairs)
        width = max((int(index) for x, _ in pairs for index in x), default=0)
    for x, y in pairs:
        dense = [0.0] * width
        for index, value in x.items():
            if not 1 <= int(index) <= width:
                raise BadSource(f"index {index} is outside 1 to {width}")
            dense[int(index) - 1] = value
        yield Row(dense, y if reading.labelled else None)


def _arff_rows(lines: TextIO, reading: Reading) -> Iterator[Row]:
    from river.stream import iter_arff
    from scipy.io.arff import ParseArffError

    names: list[str] = []
    buffer = cast(TextIO, _remember_attributes(lines, names))
    try:
        for x, _ in iter_arff(buffer, target=None):
            label, prob = _label_of(names, reading), _probability_of(names, reading)
            y = x.get(label)
            text = y.strip(" '\"") if isinstance(y, str) else y
            # The reader leaves a missing value out; the feed must know that it is missing.
            columns = [name for name in names if name not in (label, prob)]
            features = {name: _number(name, x.get(name)) for name in columns}
            yield _with_targets(features, text, None if prob is None else x.get(prob))
    except ParseArffError as error:
        raise BadSource(str(error)) from error
    except RuntimeError as error:  # what a generator makes of the reader's StopIteration
        raise BadSource("the file ends before @data") from error


def _remember_attributes(lines: TextIO, names: list[str]) -> Iterator[str]:
    """Pass on the lines that are not empty and no comment; append the attributes' names."""
    for line in lines:
        if found := _ATTRIBUTE.match(line):
            names.append(found[1].strip("'\""))
        if line.strip() and not line.startswith("%"):
            yield line


def _named(name: str, reading: Reading) -> Iterator[Row]:
    """Return the rows of a data set that is known by name."""
    from workers import data

    if name in data.NAMES:
        dataset = data.load(name, reading.data_dir)
        return (
            Row(x.tolist(), str(y) if reading.labelled else None)
            for x, y in zip(dataset.X, dataset.y, strict=True)
        )
    return _river_rows(name, reading)


def _river_rows(name: str, reading: Reading) -> Iterator[Row]:
    from river import datasets

    kind = getattr(datasets, name, None)
    if not isinstance(kind, type) or not issubclass(kind, datasets.base.FileDataset):
        from workers.data import NAMES

        if Path(name).is_dir():
            raise BadSource(f"{name}: a directory; name a file in it")
        raise BadSource(
            f"{name}: no such file, and no data set of that name; known: {', '.join(NAMES)}, "
            "Phishing, ImageSegments, Bananas"
        )
    dataset = cast(Any, kind)()
    if not dataset.path.exists():
        raise BadSource(f"{name} does not come with river: download it with river first")
    return (Row(x, label_text(y) if reading.labelled else None) for x, y in dataset)
