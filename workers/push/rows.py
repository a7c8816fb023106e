"""Rows to push: turn columns and cells of a source into features, label, id and probability."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import orjson

from online_svm.errors import InvalidExample
from online_svm.stream.cells import is_number, time_of
from workers.errors import BadConfiguration

Format = Literal["csv", "jsonl", "libsvm", "arff"]
Features = Sequence[Any] | Mapping[str, Any]

MISSING = ("", "?")
"""Texts that stand for a missing value in any table."""


class BadSource(BadConfiguration):
    """A source of examples that does not exist or cannot be read."""


@dataclass(frozen=True, slots=True)
class Row:
    """One example to push: features; optionally label, producer's id, probability and slices.

    `time` is in milliseconds.
    """

    x: Features
    y: str | None = None
    id: str | None = None
    p: str | None = None
    s: Mapping[str, Any] | None = None
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """The options for reading a source.

    Attributes
    ----------
    format : str or None
        By default the one that the file's extension names; JSON lines for standard input.
    label : str or None
        Column of the label. By default the last one; `y` in JSON lines.
    labelled : bool
        Whether there are labels. Without, every column is a feature.
    header : bool
        Whether the first line of a CSV file names its columns.
    features : int or None
        Width of a LIBSVM source. By default its largest index, which needs the whole source.
    data_dir : path or None
        Directory of the benchmark sets.
    prob : str or None
        Column of an annotator's probability, for rows without a label. A row with both is sent, and
        the feed rejects it.
    drop : tuple of str
        Columns to leave out.
    id : str or None
        Column of the producer's id; `id` in JSON lines that are entries.
    slices : tuple of str
        Columns of text that are sent as slices and are no features; `s` in JSON lines that are
        entries.
    na : tuple of str
        Further texts that stand for a missing value, in addition to the empty one and ``?``.
    time : str or None
        Column of the time of an example; `time` in JSON lines that are entries.
    named : bool
        Whether features keep their names, so that they may be texts.
    labels_only : bool
        Whether the source holds labels of earlier examples by id: every other column is left out.
    """

    format: Format | None = None
    label: str | None = None
    labelled: bool = True
    header: bool = True
    features: int | None = None
    data_dir: Path | None = None
    prob: str | None = None
    drop: tuple[str, ...] = ()
    id: str | None = None
    slices: tuple[str, ...] = ()
    na: tuple[str, ...] = ()
    time: str | None = None
    named: bool = True
    labels_only: bool = False

    @property
    def missing(self) -> frozenset[str]:
        """Texts that stand for a missing value."""
        return frozenset((*MISSING, *self.na))


@dataclass(slots=True)
class Layout:
    """The columns that a reader found; filled in when the first row is read.

    Attributes
    ----------
    label, id, prob, time : str or None
        Name of the column.
    slices : list of str
        Columns that are sent as slices.
    dropped : list of str
        Columns that are not sent.
    label_is_last : bool
        Whether that column is the label because it is the last, and none was named.
    """

    label: str | None = None
    id: str | None = None
    prob: str | None = None
    time: str | None = None
    slices: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    label_is_last: bool = False

    def features(self, names: Sequence[str]) -> list[str]:
        """Return the columns that are features."""
        others = {self.label, self.id, self.prob, self.time, *self.slices, *self.dropped}
        return [name for name in names if name not in others]


def label_text(value: object) -> str | None:
    """Return a label as text, as it is sent.

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


def find_layout(names: Sequence[str], reading: Reading, layout: Layout) -> None:
    """Find the role of each column of a table.

    Raises
    ------
    BadSource
        If a named column does not exist, is named twice, or has no name.
    """
    if len(set(names)) != len(names):
        raise BadSource("two columns have the same name")
    special = [("probability", reading.prob), ("id", reading.id)]
    if not reading.labels_only:  # there every column but two is left out
        special.append(("time", reading.time))
    special += [("slice", name) for name in reading.slices]
    special += [("column to leave out", name) for name in reading.drop]
    for what, name in special:
        if name is not None and name not in names:
            raise _no_column(name, what, names)
    taken = {reading.prob, reading.id, reading.time, *reading.slices, *reading.drop}
    layout.label = _label_of([name for name in names if name not in taken], names, reading)
    layout.label_is_last = reading.labelled and reading.label is None
    layout.prob, layout.id, layout.dropped = reading.prob, reading.id, list(reading.drop)
    layout.slices, layout.time = list(reading.slices), reading.time
    if reading.labels_only:
        layout.dropped = layout.features(names)
    if "" in layout.features(names):
        raise BadSource(
            f"column {list(names).index('') + 1} has no name: name it, or leave it out: --drop ''"
        )


def _label_of(others: Sequence[str], names: Sequence[str], reading: Reading) -> str | None:
    """Return the name of the label's column."""
    if not reading.labelled:
        return None
    if not names:
        raise BadSource("the source is empty")
    if not others:
        raise BadSource("no column is left for the label")
    label = reading.label or others[-1]
    if label not in others:
        without = "; push --no-label takes a source without labels"
        raise _no_column(label, "label", others, "" if reading.labels_only else without)
    return label


def _no_column(name: str, what: str, names: Sequence[str], hint: str = "") -> BadSource:
    there = ", ".join(names)[:200]
    return BadSource(f"no column {name!r} for the {what}; there are {there}{hint}")


def refuse_columns(reading: Reading, what: str) -> None:
    """Raise BadSource if the options name a column, but the source has no names."""
    if reading.prob is not None:
        raise BadSource(f"{what} has no column {reading.prob!r} for the probability")
    if reading.id is not None:
        raise BadSource(f"{what} has no column {reading.id!r} for the id")
    if reading.time is not None:
        raise BadSource(f"{what} has no column {reading.time!r} for the time")
    if reading.slices:
        raise BadSource(f"{what} has no column {reading.slices[0]!r} for the slice")
    if reading.drop:
        raise BadSource(f"{what} has no column {reading.drop[0]!r} to leave out")


def with_targets(
    x: Features, y: object, probability: object, reading: Reading, id_: object = None
) -> Row:
    """Return a row; an empty label, probability or id counts as missing."""
    missing = reading.missing
    p, label, id_text = (_filled(value, missing) for value in (probability, y, id_))
    # A label is sent unchanged, with any spaces around it.
    return Row(x, label_text(y) if label is not None and p is None else label, id_text, p)


def slices_of(columns: Mapping[str, Any], reading: Reading) -> dict[str, str] | None:
    """Return the values of the slices of a row, without those that are missing; None without any.

    Examples
    --------
    >>> slices_of({"country": "DE", "age": ""}, Reading(slices=("country", "age")))
    {'country': 'DE'}
    """
    texts = {name: _filled(columns.get(name), reading.missing) for name in reading.slices}
    return {name: text for name, text in texts.items() if text is not None} or None


def _filled(value: object, missing: frozenset[str]) -> str | None:
    """Return a cell as text, or None if it is empty."""
    text = None if isinstance(value, float) and math.isnan(value) else label_text(value)
    return None if text is None or text.strip() in missing else text.strip()


def milliseconds(value: object, reading: Reading) -> int:
    """Return the time of an example.

    Raises
    ------
    BadSource
        If it is none.

    Examples
    --------
    >>> milliseconds("1970-01-01 00:00:01", Reading(time="at"))
    1000
    """
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
    """Return a cell as it is sent: a text that reads as a number as that number, none as null.

    What is read as a number is what a feed reads as one, so which of the two is sent changes no
    answer.

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

    Raises
    ------
    ValueError
        If it is neither.
    """
    if isinstance(value, str):
        text = value.strip()
        if text in missing:
            return None
        value = float(text)
        if "_" in text or value in (math.inf, -math.inf):
            raise ValueError("no finite number")
    return None if isinstance(value, float) and math.isnan(value) else value  # type: ignore[return-value]  # readers yield text or numbers
