"""Tables of named columns in any file, and the reader of CSV."""

import csv
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from online_svm.stream.cells import is_number
from workers.push.cell_reader import GAPS, CellReader, SecondHeader
from workers.push.columns import not_numbers
from workers.push.reading import BadHeader, BadSource, Reading
from workers.push.rows import (
    Layout,
    Row,
    find_layout,
    number,
    plain,
    slices_of,
    time_column,
    with_targets,
)
from workers.push.table_bounds import (
    Bounds,
    Record,
    first_line_is_data,
    header_at,
    rows_within,
)
from workers.push.times import TimeColumn
from workers.push.workbook import Uncomputed
from workers.text import counted

Item = TypeVar("Item")

_MAX_EXAMINED_CELLS = 1_000_000
_MAX_TITLE_SHOWN = 40  # characters of a line above a header
EXAMINED_LINES = 40
"""Lines by which the separator and the header are found."""

_MAX_SNIFFED_LENGTH = 1 << 16  # characters of the first line, beyond which it alone is examined
_SEPARATORS = ",;\t|^~¦"
_SEPARATOR_LINE = re.compile(r"sep=(.)\s*")  # the first line of a CSV file of Excel
_AS_FORMULA = re.compile('="(.*)"')  # a text as some programs protect it from Excel
_SEPARATOR_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "blank"}


class Table(NamedTuple):
    """A table whose header has been read."""

    names: Sequence[str]
    records: Iterator[Record]
    has_header: bool = True
    may_wait: bool = False  # whether the next row may come much later
    line: int | None = None  # of the header
    places: Sequence[str] | None = None  # the letters of the columns of a sheet


def look_ahead(items: Iterator[Item], count: int) -> tuple[list[Item], Iterator[Item]]:
    """Return the first items, and all; an error on the way is raised after the items before it."""
    head: list[Item] = []
    failure = None
    try:
        head.extend(islice(items, count))
    except Exception as error:
        failure = error

    def whole() -> Iterator[Item]:
        yield from head
        if failure is not None:
            raise failure
        yield from items

    return head, whole()


def csv_table(
    lines: Iterator[tuple[int, str]],
    reading: Reading,
    layout: Layout,
    check_width: Callable[[int], None],
    may_wait: bool,
) -> Table:
    """Find the separator and the quote of numbered lines, and read the header."""
    head, every = look_ahead(lines, 1)
    if not may_wait and head and len(head[0][1]) <= _MAX_SNIFFED_LENGTH:
        head, every = look_ahead(every, EXAMINED_LINES)
    separator, quote = None, '"'
    if head and (found := _SEPARATOR_LINE.fullmatch(head[0][1].removeprefix("\ufeff"))):
        separator, head = found[1], head[1:]
        next(every)
    separator, quote, titles = _dialect([line for _, line in head], separator, reading.header)
    if above := [next(every)[1] for _ in range(titles)]:
        layout.form.append(titles_text(titles, above[0].strip()))
    at, is_over = 0, False

    def texts() -> Iterator[str]:
        nonlocal at, is_over
        for number_, line in every:
            at = number_
            yield line
        is_over = True

    def record() -> list[str] | None:
        begin = at + 1
        try:
            cells = next(parsed, None)
        except csv.Error as error:
            raise _at(at, error) from None
        if is_over and cells is not None:  # the reader looked for the end of a quoted cell
            reason = (
                "a quote is opened and not closed, so that later rows are in one cell: close it"
            )
            raise _at(begin, BadSource(reason))
        return cells

    def records() -> Iterator[Record]:
        while (cells := record()) is not None:
            yield at, [_unwrapped(cell) for cell in cells] if has_formulas else cells

    has_formulas = any('="' in line for _, line in head)
    parsed = csv.reader(
        texts(), delimiter=separator, quotechar=quote, skipinitialspace=separator == " "
    )
    first = record() or []
    try:
        check_width(len(first))
    except BadSource as error:
        raise _at(at, error) from None
    layout.form.append(f"separator {_SEPARATOR_NAMES.get(separator, separator)}")
    if reading.header:
        names: Sequence[str] = first
        return Table(names, records(), True, may_wait, at)
    names = [f"x{i}" for i in range(1, len(first) + 1)]
    rest = records()
    whole = iter(()) if not first else _chained((at, first), rest)
    return Table(names, whole, False, may_wait)


def _chained(first: Record, rest: Iterator[Record]) -> Iterator[Record]:
    yield first
    yield from rest


def _at(line: int, error: Any) -> Any:
    error.line = line
    return error


def _unwrapped(cell: str) -> str:
    found = _AS_FORMULA.fullmatch(cell)
    return cell if found is None else found[1]


def titles_text(count: int, first: str) -> str:
    """Return what a person reads of the lines above a header."""
    lines = counted(count, "line")
    return f"{lines} above the header left out, from {first[:_MAX_TITLE_SHOWN]!r}"


def _dialect(lines: Sequence[str], separator: str | None, has_header: bool) -> tuple[str, str, int]:
    """Return the separator and the quote by which the most lines are as wide as the header.

    The last number is how many lines are above the header.
    """
    text = "".join(lines)
    found = []
    for each in separator or _SEPARATORS:
        quotes = '"'
        if '"' not in text and re.search(
            rf"(?m)(^|{re.escape(each)})'[^'\n]*'($|[\r{re.escape(each)}])", text
        ):
            quotes = "'\""
        found += [(*_agreement(lines, each, quote, has_header), each, quote) for quote in quotes]
    best = max(found, key=lambda one: one[0])
    if separator is None and best[0][0] == 0 and lines and " " in lines[0].strip():
        return " ", '"', 0
    return best[2], best[3], best[1]


def _agreement(
    lines: Sequence[str], separator: str, quote: str, has_header: bool
) -> tuple[tuple[int, int, int], int]:
    """Return whether the header is split, how many others agree, the columns; and its line."""
    reader = csv.reader(lines, delimiter=separator, quotechar=quote)
    rows, ends = list[list[str]](), [0]
    try:
        for row in reader:
            rows.append(row)
            ends.append(reader.line_num)
    except csv.Error:
        return (0, 0, 0), 0
    at = header_at(rows) if has_header else 0
    width = len(rows[at]) if rows else 0
    return (int(width > 1), sum(len(row) == width for row in rows[at + 1 :]), width), ends[at]


def table_rows(table: Table, reading: Reading, layout: Layout) -> Iterator[Row]:
    """Yield the rows of a table; its first ones decide how the cells of each column are read."""
    names = [name.strip() for name in table.names]
    if "" not in reading.drop:  # separators after the last name
        names = names[: max((i for i, name in enumerate(names, 1) if name), default=0)]
    if table.has_header and first_line_is_data(names):
        layout.form.append("the names look like values: --no-header if the first line is a row")
    try:
        find_layout(names, reading, layout, table.places)
    except BadSource as error:
        raise BadHeader(str(error), table.line) from None
    label = names.index(layout.label) if layout.label else None
    bounds = Bounds(
        table.names, len(names), label, table.has_header, table.may_wait, layout.left_out
    )
    within = rows_within(table.records, bounds)
    wanted = layout.features(names)
    cells = layout.cells = CellReader(reading)
    count = min(reading.examined, max(1, _MAX_EXAMINED_CELLS // max(1, len(names))))
    head, records = look_ahead(within, count)
    score = None if reading.labels_only else reading.score
    read = [*wanted, *(name for name in (layout.time, score) if name is not None)]
    columns = {name: [row[i] for _, row in head] for i, name in enumerate(names)}
    try:
        cells.learn({name: columns[name] for name in read})
    except SecondHeader as error:
        raise _at(head[0][0], error) from None
    # Beside + the sign - is a label.
    labels = {str(value).strip() for value in columns.get(layout.label or "", ())}
    no_label = GAPS - {"-"} if "+" in labels else GAPS
    times = time_column(reading, layout)
    for at, record in records:
        x = dict(zip(names, record, strict=True))
        try:
            if table.places is not None:
                _refuse_uncomputed(x, layout)
            values = {name: cells.read(name, x[name]) for name in read}
            features: Any = {name: values[name] for name in wanted}
            if not table.has_header:
                later = () if table.may_wait else _read_later(records, names, wanted, cells)
                features = numbers(features, later, wanted, reading.missing, at)
            y = x.get(layout.label) if layout.label else None
            if isinstance(y, str):
                y = None if y.strip().lower() in no_label else y.strip()
            row = with_targets(features, y, reading, x.get(layout.id) if layout.id else None)
            row = with_slices_and_time(row, x, values, reading, times)
        except BadSource as error:
            raise _at(at, error) from None
        yield row


def _refuse_uncomputed(cells: Mapping[str, Any], layout: Layout) -> None:
    """Raise BadSource if a cell that is sent is a formula without a value."""
    for name, cell in cells.items():
        if isinstance(cell, Uncomputed) and name not in layout.dropped:
            raise BadSource(
                f"{name} is a formula that was never computed, in cell {cell.place}: open the "
                f"workbook in a spreadsheet program and save it, or --drop {shlex.quote(name)}"
            )


def _read_later(
    records: Iterator[Record], names: Sequence[str], wanted: Sequence[str], cells: CellReader
) -> Iterator[dict[str, Any]]:
    """Yield the features of later rows."""
    for _, record in records:
        x = dict(zip(names, record, strict=True))
        yield {name: cells.read(name, x[name]) for name in wanted}


def _check_score(name: str, raw: object, value: object) -> None:
    """Raise BadSource for a score that no feed takes, or that may be a hundredth of itself."""
    if isinstance(value, str) and value.strip() and not is_number(value.strip()):
        raise BadSource(f"{name} is {value[:40]!r}, no score: write a probability such as 0.9")
    if isinstance(raw, str) and isinstance(value, float) and {"%", "‰"} & {*raw}:
        raise BadSource(
            f"{name} is {raw[:40]!r}: write a probability as a number from 0 to 1, not in per cent"
        )


def numbers(
    x: Mapping[str, Any],
    later: Iterable[Mapping[str, Any]],
    names: Sequence[str],
    missing: frozenset[str],
    line: int,
) -> list[float | None]:
    """Return the features of a row as numbers; None for a gap.

    Raises NotNumbers if one is a text; `later` rows are examined for its message.
    """
    try:
        return [number(x.get(name), missing) for name in names]
    except ValueError:
        raise not_numbers(x, later, names, missing, line) from None


def with_slices_and_time(
    row: Row,
    cells: Mapping[str, Any],
    values: Mapping[str, Any],
    reading: Reading,
    times: TimeColumn,
) -> Row:
    """Add the slices, from the cells as written, and score and time of a row, from its values."""
    if reading.slices:
        row = replace(row, s=slices_of(cells, reading))
    if reading.labels_only:
        return row
    if (name := reading.score) is not None:
        _check_score(name, cells[name], values[name])
        row = replace(row, score=plain(values[name], reading.missing))
    if reading.time is None:
        return row
    return replace(row, time=times.milliseconds(values.get(reading.time)))
