"""Tables of named columns in any file: CSV, spreadsheets, Parquet."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from zipfile import BadZipFile

from online_svm.stream.cells import is_number
from workers.push.cell_reader import CellReader
from workers.push.columns import not_numbers
from workers.push.reading import BadSource, Reading
from workers.push.rows import (
    Layout,
    Row,
    find_layout,
    milliseconds,
    number,
    slices_of,
    with_score,
    with_targets,
)
from workers.push.table_bounds import Record, filled, first_line_is_data, header_at, rows_within
from workers.text import counted

Item = TypeVar("Item")

_MAX_EXAMINED_CELLS = 1_000_000
_MAX_TITLE_SHOWN = 40  # characters of a line above a header
_SNIFFED = 40  # lines by which the separator and the header are found
_MAX_SNIFFED_LENGTH = 1 << 16  # characters of the first line, beyond which it alone is examined
_SEPARATORS = ",;\t|^~¦"
_SEPARATOR_LINE = re.compile(r"sep=(.)\s*")  # the first line of a CSV file of Excel
_AS_FORMULA = re.compile('="(.*)"')  # a text as some programs protect it from Excel
_SEPARATOR_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "blank"}
_NO_LABEL = frozenset(("n/a", "#n/a", "na", "nan", "null", "-", "--", "–", "—"))
"""Texts in lower case that stand for no label, unless + is a label, and - thus may be."""


class Table(NamedTuple):
    """A table whose header has been read."""

    names: Sequence[str]
    records: Iterator[Record]
    has_header: bool = True
    may_wait: bool = False  # whether the next row may come much later


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
        head, every = look_ahead(every, _SNIFFED)
    separator, quote = None, '"'
    if head and (found := _SEPARATOR_LINE.fullmatch(head[0][1].removeprefix("\ufeff"))):
        separator, head = found[1], head[1:]
        next(every)
    separator, quote, titles = _dialect([line for _, line in head], separator, reading.header)
    if above := [next(every)[1] for _ in range(titles)]:
        layout.form.append(_titles_text(titles, above[0].strip()))
    at = 0

    def texts() -> Iterator[str]:
        nonlocal at
        for number_, line in every:
            at = number_
            yield line

    def records() -> Iterator[Record]:
        try:
            for cells in parsed:
                yield at, [_unwrapped(cell) for cell in cells] if has_formulas else cells
        except csv.Error as error:
            raise _at(at, error) from None

    has_formulas = any('="' in line for _, line in head)
    parsed = csv.reader(
        texts(), delimiter=separator, quotechar=quote, skipinitialspace=separator == " "
    )
    first = next(parsed, [])
    try:
        check_width(len(first))
    except BadSource as error:
        raise _at(at, error) from None
    layout.form.append(f"separator {_SEPARATOR_NAMES.get(separator, separator)}")
    if reading.header:
        names: Sequence[str] = first
        return Table(names, records(), True, may_wait)
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


def _titles_text(count: int, first: str) -> str:
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


def xlsx_table(path: Path, layout: Layout) -> Table:
    """Read the first sheet of a workbook. Raises BadSource without the package openpyxl."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise BadSource(
            "a spreadsheet; install online-svm[excel], or save its table as CSV, and push that file"
        ) from None
    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except (BadZipFile, KeyError, ValueError, OSError) as error:
        raise BadSource(f"no Excel workbook: {str(error)[:200]}") from None
    sheets = {sheet.title: [*islice(_filled_rows(sheet), _SNIFFED)] for sheet in book.worksheets}
    title = next((name for name, head in sheets.items() if _is_table(head)), next(iter(sheets)))
    others = [name for name in sheets if name != title]
    layout.form.append(f"sheet {title}" + (f", not read: {', '.join(others)}" if others else ""))
    rows, head = _filled_rows(book[title]), [cells for _, cells in sheets[title]]
    widest = max(map(len, head), default=0)
    if titles := header_at([(*cells, *[None] * (widest - len(cells))) for cells in head]):
        layout.form.append(_titles_text(titles, next(str(c) for c in head[0] if c is not None)))
    first: Sequence[Any] = next(islice(rows, titles, None), (0, ()))[1]
    width = max((i for i, cell in enumerate(first, 1) if cell is not None), default=0)
    names = ["" if cell is None else str(cell) for cell in first[:width]]
    return Table(names, ((at, (*row, *[None] * width)[:width]) for at, row in rows))


def _filled_rows(sheet: Any) -> Iterator[Record]:
    rows = enumerate(sheet.iter_rows(values_only=True), 1)
    return ((at, row) for at, row in rows if any(cell is not None for cell in row))


def _is_table(head: Sequence[Record]) -> bool:
    """Return whether the first rows have a header of at least two columns and a row below."""
    return any(filled(cells) > 1 for _, cells in head[:-1])


def parquet_table(path: Path) -> Table:
    """Read a Parquet file. Raises BadSource without the package pyarrow."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise BadSource("a Parquet file; install online-svm[archive] to read it") from None
    try:
        file = ParquetFile(path)
    except (ArrowException, OSError) as error:
        raise BadSource(f"no Parquet file: {str(error)[:200]}") from None
    names = file.schema_arrow.names

    def records() -> Iterator[Record]:
        at = 0
        for batch in file.iter_batches(batch_size=1000):
            for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                at += 1
                yield at, cells

    return Table(names, records())


def table_rows(table: Table, reading: Reading, layout: Layout) -> Iterator[Row]:
    """Yield the rows of a table; its first ones decide how the cells of each column are read."""
    names = table.names
    if "" not in reading.drop:  # separators after the last name
        names = names[: max((i for i, name in enumerate(names, 1) if name.strip()), default=0)]
    if table.has_header and first_line_is_data(names):
        layout.form.append("the names look like values: --no-header if the first line is a row")
    find_layout(names, reading, layout)
    within = rows_within(table.records, len(table.names), len(names), layout.left_out)
    wanted = layout.features(names)
    cells = layout.cells = CellReader(reading)
    count = min(reading.examined, max(1, _MAX_EXAMINED_CELLS // max(1, len(names))))
    head, records = look_ahead(within, count)
    score = None if reading.labels_only else reading.score
    others = (layout.prob, layout.time, score)
    read = [*wanted, *(name for name in others if name is not None)]
    columns = {name: [row[i] for _, row in head] for i, name in enumerate(names)}
    cells.learn({name: columns[name] for name in read})
    no_label = frozenset() if "+" in columns.get(layout.label or "", ()) else _NO_LABEL
    must_be_numbers, missing = not (reading.named and table.has_header), reading.missing
    for at, record in records:
        x = dict(zip(names, record, strict=True))
        try:
            values = {name: cells.read(name, x[name]) for name in read}
            features: Any = {name: values[name] for name in wanted}
            if must_be_numbers:
                later = () if table.may_wait else _read_later(records, names, wanted, cells)
                features = numbers(features, later, wanted, missing, at)
            if not table.has_header:
                features = list(features.values())
            y = x.get(layout.label) if layout.label else None
            if isinstance(y, str):
                y = None if y.strip().lower() in no_label else y.strip()
            p = _probability(x[layout.prob], values[layout.prob]) if layout.prob else None
            row = with_targets(features, y, p, reading, x.get(layout.id) if layout.id else None)
            row = with_slices_and_time(row, x, values, reading)
        except BadSource as error:
            raise _at(at, error) from None
        yield row


def _read_later(
    records: Iterator[Record], names: Sequence[str], wanted: Sequence[str], cells: CellReader
) -> Iterator[dict[str, Any]]:
    """Yield the features of later rows."""
    for _, record in records:
        x = dict(zip(names, record, strict=True))
        yield {name: cells.read(name, x[name]) for name in wanted}


def _probability(raw: object, value: object) -> object:
    """Return a probability as it is written, if that is a number of JSON."""
    return raw if isinstance(raw, str) and is_number(raw.strip()) and value == float(raw) else value


def numbers(
    x: Mapping[str, Any],
    later: Iterable[Mapping[str, Any]],
    names: Sequence[str],
    missing: frozenset[str],
    line: int,
) -> dict[str, Any]:
    """Return the features of a row as numbers; None for a gap.

    Raises NotNumbers if one is a text; `later` rows are examined for its message.
    """
    try:
        return {name: number(x.get(name), missing) for name in names}
    except ValueError:
        raise not_numbers(x, later, names, missing, line) from None


def with_slices_and_time(
    row: Row, cells: Mapping[str, Any], values: Mapping[str, Any], reading: Reading
) -> Row:
    """Add the slices, from the cells as written, and score and time of a row, from its values."""
    if reading.slices:
        row = replace(row, s=slices_of(cells, reading))
    if reading.labels_only:
        return row
    names = (reading.score, reading.score_version)
    row = with_score(row, {**cells, **values}, reading, names)
    if reading.time is None:
        return row
    return replace(row, time=milliseconds(values.get(reading.time), reading))
