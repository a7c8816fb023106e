"""Rows to push: convert the cells of a source to features, label, id, probability and time."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from online_svm.errors import InvalidExample
from online_svm.stream.cells import is_number, time_of
from workers.push.cell_reader import CellReader
from workers.push.reading import BadSource, Reading

Features = Sequence[Any] | Mapping[str, Any]

_MIN_INEXACT = 2.0**63  # see `label_text`


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
    prob: str | None = None
    time: str | None = None
    slices: list[str] = field(default_factory=list)  # columns that are sent as slices
    scores: list[str] = field(default_factory=list)  # columns of a score and its version
    dropped: list[str] = field(default_factory=list)  # columns that are not sent
    label_is_last: bool = False  # whether the last column is the label because none was named
    cells: CellReader | None = None  # how the cells of a table are read
    form: list[str] = field(default_factory=list)  # separator and the like, for people
    encoding: str | None = None  # of text that is not Unicode
    left_out: list[str] = field(default_factory=list)  # rows at the end that are no examples

    def features(self, names: Sequence[str]) -> list[str]:
        """Return the columns that are features."""
        others = {self.label, self.id, self.prob, self.time, *self.slices}
        others |= {*self.scores, *self.dropped}
        return [name for name in names if name not in others]


def label_text(value: object) -> str | None:
    """Return a label as the text to send.

    Raises BadSource for a float of 2^63 or more, into which JSON parsers convert large integers:
    its last digits may differ from the source.

    Examples
    --------
    >>> [label_text(value) for value in ("a", True, 3, 1.0, 0.5, None)]
    ['a', 'true', '3', '1', '0.5', None]
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        if abs(value) >= _MIN_INEXACT:
            raise BadSource(f"{value:g} has more digits than a number keeps: send it as a text")
        value = int(value)
    return orjson.dumps(value).decode()


def find_layout(names: Sequence[str], reading: Reading, layout: Layout) -> None:
    """Find the role of each column of a table.

    Raises BadSource if a named column does not exist, is named twice, or has no name.
    """
    if len(set(names)) != len(names):
        raise BadSource("two columns have the same name")
    special = [("probability", reading.prob), ("id", reading.id)]
    if not reading.labels_only:
        special.append(("time", reading.time))
        special += [("score", name) for name in reading.scores]
    special += [("slice", name) for name in reading.slices]
    special += [("column to leave out", name) for name in reading.drop]
    for role, name in special:
        if name is not None and name not in names:
            raise _no_column(name, role, names)
    used = {reading.prob, reading.id, reading.time, *reading.slices, *reading.drop}
    used.update(reading.scores)
    layout.label = _label_column([name for name in names if name not in used], names, reading)
    layout.label_is_last = reading.labelled and reading.label is None
    layout.prob, layout.id, layout.dropped = reading.prob, reading.id, list(reading.drop)
    layout.slices, layout.time = list(reading.slices), reading.time
    layout.scores = reading.scores
    if reading.labels_only:
        layout.dropped = layout.features(names)
    if "" in layout.features(names):
        raise BadSource(
            f"column {list(names).index('') + 1} has no name: name it, or leave it out: --drop ''"
        )


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
    given = [("for the probability", reading.prob), ("for the id", reading.id)]
    given += [("for the score", name) for name in reading.scores]
    given += [("for the time", reading.time), *(("for the slice", name) for name in reading.slices)]
    for use, name in (*given, *(("to leave out", name) for name in reading.drop)):
        if name is not None:
            raise BadSource(f"{source} has no column {name!r} {use}")


def with_targets(
    x: Features, y: object, probability: object, reading: Reading, id_: object = None
) -> Row:
    """Return a row; an empty label, probability or id counts as missing."""
    p, label, id_text = (
        None if value is None else _filled(value, reading.missing)
        for value in (probability, y, id_)
    )
    # A label is sent with the spaces around it.
    return Row(x, label_text(y) if label is not None and p is None else label, id_text, p)


def slices_of(columns: Mapping[str, Any], reading: Reading) -> dict[str, str] | None:
    """Return the slices of a row, without missing values; None if all are missing."""
    texts = {name: _filled(columns.get(name), reading.missing) for name in reading.slices}
    return {name: text for name, text in texts.items() if text is not None} or None


def with_score(
    row: Row,
    cells: Mapping[str, Any],
    reading: Reading,
    names: tuple[str | None, str | None],
) -> Row:
    """Return a row with its score and the version of that; `names` are their columns."""
    score, version = (None if name is None else cells.get(name) for name in names)
    if isinstance(version, float):
        version = label_text(version)
    return replace(row, score=plain(score, reading.missing), score_version=version or None)


def _filled(value: object, missing: frozenset[str]) -> str | None:
    """Return a cell as stripped text; None if it is missing."""
    text = None if isinstance(value, float) and math.isnan(value) else label_text(value)
    return None if text is None or text.strip() in missing else text.strip()


def milliseconds(value: object, reading: Reading) -> int:
    """Return the time of an example in milliseconds since 1970; BadSource: it is not a time."""
    try:
        found = time_of(value)
    except InvalidExample:
        found = None
    if found is None or found < 0:
        raise BadSource(
            f"{reading.time or 'time'} is {str(value)[:40]!r}, no time: send 2024-01-05T10:30:00Z, "
            "or seconds or milliseconds since 1970"
        )
    return found


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
