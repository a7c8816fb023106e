"""Rows to push: convert the cells of a source to features, label, id, probability and time."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import orjson

from online_svm.stream.cells import is_number
from workers.push.cell_reader import CellReader
from workers.push.reading import BadSource, Reading
from workers.push.times import TimeColumn, TimeTexts

Features = Sequence[Any] | Mapping[str, Any]

_MIN_INEXACT = 2.0**53  # see `label_text`
_ROUNDED = re.compile(r"[0-9][.,][0-9]+[eE]\+[0-9]{2}")  # 1,23457E+15, as Excel shows a long id


@dataclass(frozen=True, slots=True)
class Row:
    """An example to push."""

    x: Features
    y: str | None = None  # label
    id: str | None = None  # of the producer
    p: str | None = None  # an annotator's probability of the second class
    s: Mapping[str, Any] | None = None  # slices
    time: int | None = None  # milliseconds since 1970
    score: Any = None  # of another model: a number, or one a class
    score_version: str | int | None = None


@dataclass(slots=True)
class Layout:
    """The roles of the columns of a source; a reader fills them in with the first row."""

    label: str | None = None
    id: str | None = None
    time: str | None = None
    slices: list[str] = field(default_factory=list)  # columns that are sent as slices
    score: str | None = None
    dropped: list[str] = field(default_factory=list)  # columns that are not sent
    label_is_last: bool = False  # whether the last column is the label because none was named
    cells: CellReader | None = None  # how the cells of a table are read
    times: TimeColumn | None = None  # how the times of the examples are read
    form: list[str] = field(default_factory=list)  # separator and the like, for people
    encoding: str | None = None  # of text that is not Unicode
    open_outcomes: int = 0  # rows of a file of labels that have none yet
    left_out: dict[str, list[int]] = field(default_factory=dict)  # lines that are no examples

    def features(self, names: Sequence[str]) -> list[str]:
        """Return the columns that are features."""
        others = {self.label, self.id, self.time, self.score, *self.slices, *self.dropped}
        return [name for name in names if name not in others]


def label_text(value: object) -> str | None:
    """Return a label as the text to send.

    Raises BadSource for a float of 2^53 or more, which sheets, frames and JSON parsers make of a
    long integer: its last digits may differ from the source.

    Examples
    --------
    >>> [label_text(value) for value in ("a", True, 3, 1.0, 0.5, None)]
    ['a', 'true', '3', '1', '0.5', None]
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, date):  # a datetime, too
        return value.isoformat()
    if isinstance(value, time | timedelta):
        return str(value)
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, float) and value.is_integer():
        if abs(value) >= _MIN_INEXACT:
            raise BadSource(f"{value:g} has more digits than a number keeps: send it as a text")
        value = int(value)
    return orjson.dumps(value).decode()


def find_layout(
    names: Sequence[str],
    reading: Reading,
    layout: Layout,
    places: Sequence[str] | None = None,
) -> None:
    """Find the role of each column of a table; `places` are the letters of columns of a sheet.

    Raises BadSource if a named column does not exist, is named twice, or has no name.
    """
    at: dict[str, str] = {}
    for column, place in zip(names, places or map(str, range(1, len(names) + 1)), strict=False):
        if column in at and column and column not in reading.drop:
            where = f"{at[column]} and {place}"
            raise BadSource(f"two columns have the same name {column[:40]!r}, {where}: rename one")
        at.setdefault(column, place)
    special = [("id", reading.id)]
    if not reading.labels_only:
        special += [("time", reading.time), ("score", reading.score)]
    special += [("slice", name) for name in reading.slices]
    special += [("column to leave out", name) for name in reading.drop]
    special += [("column of text", name) for name in reading.texts]
    for role, name in special:
        if name is not None and name not in names:
            raise _no_column(name, role, names)
    used = {reading.id, reading.time, reading.score, *reading.slices, *reading.drop}
    layout.label = _label_column([name for name in names if name not in used], names, reading)
    layout.label_is_last = reading.labelled and reading.label is None
    set_roles(reading, layout)
    if reading.labels_only:
        layout.dropped = layout.features(names)
    if "" in layout.features(names):
        raise BadSource(f"column {at['']} has no name: name it, or leave it out: --drop ''")


def set_roles(reading: Reading, layout: Layout) -> None:
    """Note the roles of the columns that the options name, but for the label."""
    layout.id, layout.time, layout.score = reading.id, reading.time, reading.score
    layout.dropped, layout.slices = list(reading.drop), list(reading.slices)


def _label_column(others: Sequence[str], names: Sequence[str], reading: Reading) -> str | None:
    """Return the column of the label, among the `others`, which have no other role."""
    if not reading.labelled:
        return None
    if not names:
        raise BadSource("the source is empty")
    if not others:
        raise BadSource("no column is left for the label")
    label = reading.label or others[-1]
    if label not in others:
        hint = "; push --no-label takes a source without labels"
        raise _no_column(label, "label", others, "" if reading.labels_only else hint)
    return label


def _no_column(name: str, role: str, names: Sequence[str], hint: str = "") -> BadSource:
    known = ", ".join(names)[:200]
    return BadSource(f"no column {name!r} for the {role}; there are {known}{hint}")


def refuse_columns(reading: Reading, source: str) -> None:
    """Raise BadSource if the options name a column; the source has no names of columns."""
    given = [("for the id", reading.id), ("for the score", reading.score)]
    given += [("for the time", reading.time), *(("for the slice", name) for name in reading.slices)]
    given += [("to leave out", name) for name in reading.drop]
    for use, name in (*given, *(("of text", name) for name in reading.texts)):
        if name is not None:
            raise BadSource(f"{source} has no column {name!r} {use}")


def with_targets(x: Features, y: object, reading: Reading, id_: object) -> Row:
    """Return a row; an empty label or id counts as missing."""
    label, sent = (filled(value, reading.missing) for value in (y, id_))
    if sent is not None:
        refuse_rounded(sent)
    # A label is sent with the spaces around it.
    return Row(x, None if label is None else label_text(y), sent)


def refuse_rounded(id_: object) -> None:
    """Raise BadSource for an id that has lost digits: those of several examples may be equal."""
    if isinstance(id_, str) and _ROUNDED.fullmatch(id_):
        raise BadSource(f"the id {id_} has lost digits: export its column as text")
    if isinstance(id_, float):
        label_text(id_)


def slices_of(columns: Mapping[str, Any], reading: Reading) -> dict[str, str] | None:
    """Return the slices of a row, without missing values; None if all are missing."""
    texts = {name: filled(columns.get(name), reading.missing) for name in reading.slices}
    return {name: text for name, text in texts.items() if text is not None} or None


def filled(value: object, missing: frozenset[str]) -> str | None:
    """Return a cell as stripped text; None if it is missing."""
    text = None if isinstance(value, float) and math.isnan(value) else label_text(value)
    return None if text is None or text.strip() in missing else text.strip()


def time_column(reading: Reading, layout: Layout) -> TimeColumn:
    """Return the reader of the times of a source, and note it in the layout."""
    known = None if reading.known is None else reading.known.time_unit
    layout.times = TimeColumn(reading.time, reading.time_unit or known)
    return layout.times


def time_texts(reading: Reading) -> TimeTexts:
    """Return the reader of times of a source whose other texts are sent as they are."""
    known = None if reading.known is None else reading.known.zone
    return TimeTexts(reading.zone or known)


def plain(value: object, missing: frozenset[str]) -> object:
    """Return the value to send for a cell: a number if its text is one, null if it is missing.

    A feed reads the same texts as numbers, so the conversion changes no answer.

    Examples
    --------
    >>> [plain(text, frozenset({""})) for text in ("39", " 2.50", "007", "red", "")]
    [39.0, 2.5, '007', 'red', None]
    """
    if not isinstance(value, str):
        return None if isinstance(value, float) and math.isnan(value) else value
    text = value.strip()
    if text in missing:
        return None
    return float(text) if is_number(text) else text


def number(value: object, missing: frozenset[str]) -> float | None:
    """Return a cell as a number, or None if it is missing.

    Raises ValueError if it is neither.
    """
    if isinstance(value, str):
        text = value.strip()
        if text in missing:
            return None
        value = float(text)
        if "_" in text or value in (math.inf, -math.inf):
            raise ValueError("no finite number")
    return None if isinstance(value, float) and math.isnan(value) else value  # type: ignore[return-value]  # readers yield text or numbers
