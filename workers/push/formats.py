"""Readers of the file formats: CSV, JSON lines, LIBSVM and ARFF."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TextIO, cast

import orjson

from workers.push.reading import BadSource, Format, Reading
from workers.push.rows import (
    Layout,
    Row,
    find_layout,
    label_text,
    milliseconds,
    plain,
    refuse_columns,
    slices_of,
    with_score,
    with_targets,
)
from workers.push.tables import csv_table, numbers, table_rows, with_slices_and_time
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
        + sum(map(bool, (reading.labelled, reading.prob, reading.id, reading.time)))
        + len(reading.scores)
    )
    if columns > limit:
        raise BadSource(f"more than {limit} columns: a feed takes at most {MAX_FEATURES} features")


def _json_rows(lines: Lines, reading: Reading, layout: Layout) -> Iterator[Row]:
    """Read objects in the form of an input entry (with `x`), or flat ones.

    Values are sent unchanged; the feed rejects those that it cannot use.
    """
    layout.label = (reading.label or "y") if reading.labelled else None
    layout.prob, layout.id, layout.dropped = reading.prob, reading.id, list(reading.drop)
    layout.slices, layout.time = list(reading.slices), reading.time
    layout.scores = reading.scores
    for line in lines:
        if line.strip():
            item = orjson.loads(line)
            if not isinstance(item, dict):
                raise ValueError("a line must be a JSON object")
            yield _json_row(item, reading)


_ENTRY_KEYS = "x, y, p, id, s, time, score and score_version"


def _json_row(item: dict[str, Any], reading: Reading) -> Row:
    name, is_entry = reading.label or "y", isinstance(item.get("x"), list | dict)
    prob = reading.prob or ("p" if is_entry else None)
    id_name = reading.id or ("id" if is_entry else None)
    p = None if prob is None else item.pop(prob, None)
    sent = None if id_name is None else item.pop(id_name, None)
    if reading.label is not None and name not in item and p is None:
        raise BadSource(f"no {name!r} for the label")
    y = item.pop(name, None) if reading.labelled else None
    s = slices_of(item, reading) or (item.pop("s", None) if is_entry else None)
    time_name = reading.time or ("time" if is_entry else None)
    at = None if time_name is None or time_name not in item else item.pop(time_name)
    if reading.time is not None and at is None and not reading.labels_only:
        raise BadSource(f"no {reading.time!r} for the time")
    scores = (reading.score, reading.score_version)
    if is_entry:
        scores = (scores[0] or "score", scores[1] or "score_version")
    scored = with_score(Row({}), item, reading, scores)
    for dropped in (*reading.drop, *reading.slices, *filter(None, scores)):
        item.pop(dropped, None)
    x = item.pop("x") if is_entry else item
    if is_entry and item:
        raise BadSource(f"unknown keys beside {_ENTRY_KEYS}: {', '.join(item)[:200]}")
    features = {} if reading.labels_only else _json_features(x, reading)
    row = _json_targets(features, y, p, sent, reading)
    if at is not None and not reading.labels_only:
        row = replace(row, time=milliseconds(at, reading))
    if not reading.labels_only:
        row = replace(row, score=scored.score, score_version=scored.score_version)
    return row if s is None else replace(row, s=s)


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
    """Return a row; a label is missing if it is null or a text of --na, not if it is empty."""
    row = with_targets(x, y, p, reading, None)
    label = label_text(y)
    is_label = row.p is None and label is not None and label not in reading.na
    return Row(x, label if is_label else row.y, None if sent is None else str(sent), row.p)


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
    table: Any = iter_arff(buffer, target=None)
    try:
        for x, _ in table:
            if wanted is None:
                find_layout(names, reading, layout)
                wanted = layout.features(names)
            # river's reader omits missing values; they are sent as null.
            if reading.named:
                features = {name: plain(x.get(name), reading.missing) for name in wanted}
            else:
                features = numbers(
                    x, (row for row, _ in table), wanted, reading.missing, lines.number
                )
            y, p, id_ = (x.get(name) for name in (layout.label, layout.prob, layout.id))
            text = y.strip(" '\"") if isinstance(y, str) else y
            row = with_targets(features, text, p, reading, id_)
            yield with_slices_and_time(row, x, x, reading)
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
    "jsonl": _json_rows,
    "libsvm": _libsvm_rows,
    "arff": _arff_rows,
}
"""Functions that yield the rows of a file, and fill in the roles of its columns."""
