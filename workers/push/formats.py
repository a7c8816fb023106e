"""The lines of a text, and readers of CSV, LIBSVM and ARFF."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO, cast

from workers.push.json_lines import json_rows
from workers.push.reading import BadSource, Format, Reading
from workers.push.rows import (
    Layout,
    Row,
    find_layout,
    plain,
    refuse_columns,
    time_column,
    time_texts,
    with_targets,
)
from workers.push.tables import csv_table, table_rows, with_slices_and_time
from workers.push.text_encoding import Decoder

MAX_LINE_LENGTH = 16 * 2**20
"""Largest number of characters in a line; more than the largest entry of any feed."""

MAX_FEATURES = 100_000
"""Largest number of features of any feed; see `workers.config.settings.Limits`."""

_AS_UTF8 = (
    "save it as UTF-8, or convert it, as from Windows: iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW"
)

_INDEX = re.compile("[0-9]{1,10}")
_ATTRIBUTE = re.compile(r"""\s*@attribute\s+('[^']*'|"[^"]*"|\S+)""", re.IGNORECASE)


class Lines:
    """Iterates over the lines of a text; `number` is the last line read, from 1.

    `decode` returns the text of a line that was split before it was decoded. `may_wait` tells
    whether the next line may come much later.
    """

    def __init__(
        self, source: TextIO, decode: Decoder | None = None, may_wait: bool = False
    ) -> None:
        self._source, self.number = source, 0
        self.decode, self.may_wait = decode, may_wait

    def __iter__(self) -> Iterator[str]:
        """Yield each line with its end.

        Raises BadSource if a line is too long, holds a NUL or cannot be decoded.
        """
        while line := self._next():
            yield line

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Yield each line that is not blank, with its number."""
        return ((self.number, line) for line in self if line.strip())

    def _next(self) -> str:
        self.number += 1
        try:
            line = self._source.readline(MAX_LINE_LENGTH + 1)
            if len(line) > MAX_LINE_LENGTH:
                raise BadSource(f"a line of more than {MAX_LINE_LENGTH:,} characters")
            if self.decode is not None:
                line = self.decode(line)
        except UnicodeDecodeError as error:
            if self.decode is not None:
                known, way = str(self.decode.encoding), "name its encoding, as --encoding cp850"
            else:
                is_utf8 = error.encoding.startswith("utf")
                known, way = "UTF-8" if is_utf8 else "what --encoding names", _AS_UTF8
            raise BadSource(f"not {known} text; {way}") from None
        if "\0" in line:
            raise BadSource(f"a NUL character: this is not UTF-8 text; {_AS_UTF8}")
        # Files are opened without their byte order mark; standard input keeps it.
        return line.removeprefix("\ufeff") if self.number == 1 else line


def _csv_rows(lines: Lines, reading: Reading, layout: Layout) -> Iterator[Row]:
    def check(width: int) -> None:
        _check_width(width, reading)

    table = csv_table(lines.numbered(), reading, layout, check, lines.may_wait)
    for row in table_rows(table, reading, layout):
        layout.encoding = reading.encoding if lines.decode is None else lines.decode.encoding
        yield row


def _check_width(columns: int, reading: Reading) -> None:
    """Raise BadSource if more columns than `MAX_FEATURES` remain as features."""
    limit = (
        MAX_FEATURES
        + len(reading.drop + reading.slices)
        + sum(map(bool, (reading.labelled, reading.id, reading.time, reading.score)))
    )
    if columns > limit:
        raise BadSource(f"more than {limit} columns: a feed takes at most {MAX_FEATURES} features")


def _libsvm_rows(lines: Lines, reading: Reading, layout: Layout) -> Iterator[Row]:
    from river.stream import iter_libsvm

    refuse_columns(reading, "a LIBSVM file")
    layout.label = "the first of a line" if reading.labelled else None
    # river's reader needs a feature in each line, so an empty row gets an explicit zero.
    stripped = (line.split("#")[0].rstrip() for line in lines)
    whole = (line if " " in line else f"{line} 1:0" for line in stripped if line)
    width = reading.features
    bound = width or MAX_FEATURES
    narrow = (_checked_pairs(line, max(bound, MAX_FEATURES)) for line in whole)
    pairs: Any = iter_libsvm(cast(TextIO, narrow), target_type=str)
    checked: Iterator[tuple[dict[int, float], Any]] = ((_by_index(x, bound), y) for x, y in pairs)
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
    """Return a line; raise BadSource, before it is parsed, if it has more than `width` features."""
    count = line.count(":")
    if count > width:
        raise BadSource(f"{count} features in a line: a feed takes at most {width}")
    return line


def _by_index(x: dict[str, float], width: int) -> dict[int, float]:
    """Return the features of a row by index, after checking the indices."""
    features = {}
    for text, value in x.items():
        if not _INDEX.fullmatch(text) or not 1 <= int(text) <= width:
            raise BadSource(
                f"index {text[:40]} is outside 1 to {width}"
                + (", the most features that a feed takes" if width == MAX_FEATURES else "")
            )
        if value - value != 0:
            raise BadSource(f"feature {text} is {value}, not a finite number")
        features[int(text)] = value
    return features


def _arff_rows(lines: Lines, reading: Reading, layout: Layout) -> Iterator[Row]:
    from river.stream import iter_arff
    from scipy.io.arff import ParseArffError

    names: list[str] = []
    buffer = cast(TextIO, _remember_attributes(lines, names, reading))
    wanted = None
    times, texts = time_column(reading, layout), time_texts(reading)
    table: Any = iter_arff(buffer, target=None)
    try:
        for x, _ in table:
            if wanted is None:
                find_layout(names, reading, layout)
                wanted = layout.features(names)
            # river's reader omits missing values; they are sent as null.
            x = {name: texts.read(name, value) for name, value in x.items()}
            features = {name: plain(x.get(name), reading.missing) for name in wanted}
            y, id_ = (x.get(name) for name in (layout.label, layout.id))
            row = with_targets(features, y.strip(" '\"") if isinstance(y, str) else y, reading, id_)
            yield with_slices_and_time(row, x, x, reading, times)
    except ParseArffError as error:
        raise BadSource(str(error)) from error
    except RuntimeError as error:  # a StopIteration in river's generator
        raise BadSource("the file ends before @data") from error


def _remember_attributes(lines: Iterable[str], names: list[str], reading: Reading) -> Iterator[str]:
    """Yield the lines but empty ones and comments; append the names of attributes to `names`."""
    for line in lines:
        if found := _ATTRIBUTE.match(line):
            names.append(found[1].strip("'\""))
            _check_width(len(names), reading)
        if line.strip() and not line.startswith("%"):
            yield line


READERS: dict[Format, Callable[[Lines, Reading, Layout], Iterator[Row]]] = {
    "csv": _csv_rows,
    "jsonl": json_rows,
    "libsvm": _libsvm_rows,
    "arff": _arff_rows,
}
"""Functions that yield the rows of a file, and fill in the roles of its columns."""
