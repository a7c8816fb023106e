"""The table of an Excel workbook."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import IO, Any

from workers.push.reading import BadHeader, BadSource, Reading
from workers.push.rows import Layout
from workers.push.table_bounds import Record, filled, header_at, is_blank
from workers.push.tables import EXAMINED_LINES, Table, titles_text
from workers.push.workbook import Sheet, Uncomputed, Workbook, column_name


def xlsx_table(file: IO[bytes], reading: Reading, layout: Layout) -> Table:
    """Read the sheet that --sheet names, else the first visible one with a table.

    Raises BadSource if there is none, or without the package openpyxl.
    """
    try:
        import openpyxl  # noqa: F401  (`Workbook` reads dates with it)
    except ImportError:
        raise BadSource(
            "a spreadsheet; install online-svm[excel], or save its table as CSV, and push that file"
        ) from None
    book = Workbook(file)
    sheet, head = _chosen(book, reading.sheet)
    others = [_shown(each) for each in book.sheets if each != sheet]
    layout.form.append(
        f"sheet {sheet.name}" + (f", not read: {', '.join(others)}" if others else "")
    )
    return _table(book, sheet, head, layout)


def _chosen(book: Workbook, name: str | None) -> tuple[Sheet, list[Record]]:
    """Return a sheet, and its first rows."""
    for sheet in book.sheets:
        if sheet.name == name or (name is None and not sheet.is_hidden):
            head = list(islice(book.rows(sheet), EXAMINED_LINES))
            if name is not None or _is_table(head):
                return sheet, head
    known = ", ".join(map(_shown, book.sheets))[:200]
    if name is not None:
        raise BadSource(f"no sheet {name!r}; there are {known}")
    raise BadSource(f"no visible sheet has a table: name one with --sheet; there are {known}")


def _shown(sheet: Sheet) -> str:
    return f"{sheet.name} (hidden)" if sheet.is_hidden else sheet.name


def _is_table(head: Sequence[Record]) -> bool:
    """Return whether the first rows have a header of at least two columns and a row below."""
    return any(filled(cells) > 1 for _, cells in head[:-1])


def _table(book: Workbook, sheet: Sheet, head: Sequence[Record], layout: Layout) -> Table:
    """Find the header and the columns of a table in the first rows of its sheet."""
    widest = max((len(cells) for _, cells in head), default=0)
    # A table may begin in any column: where most of its rows do.
    firsts = Counter(_first(cells) for _, cells in head if filled(cells) > 1)
    left = max(firsts, key=lambda i: (firsts[i], -i), default=0)
    padded = [_padded(cells, left, widest) for _, cells in head]
    titles = header_at(padded)
    if titles:
        layout.form.append(titles_text(titles, next(str(c) for c in head[0][1] if c is not None)))
    line, cells = head[titles] if head else (None, ())
    end = max((i for i, cell in enumerate(cells, 1) if not is_blank(cell)), default=left)
    beside = {i for _, row in head[titles:] for i in range(end, len(row)) if not is_blank(row[i])}
    if beside:
        where = f"{column_name(min(beside) + 1)} to {column_name(max(beside) + 1)}"
        layout.form.append(f"beside the table, not read: columns {where}")
    names = ["" if cell is None else str(cell) for cell in _padded(cells, left, end)]
    if uncomputed := [cell.place for cell in cells if isinstance(cell, Uncomputed)]:
        raise BadHeader(
            f"the name in cell {uncomputed[0]} is a formula that was never computed", line
        )
    below = islice(book.rows(sheet), titles + 1, None)
    places = [column_name(i) for i in range(left + 1, end + 1)]
    return Table(names, _within(below, left, end, bool(beside)), line=line, places=places)


def _first(cells: Sequence[Any]) -> int:
    return next(i for i, cell in enumerate(cells) if not is_blank(cell))


def _padded(cells: Sequence[Any], begin: int, end: int) -> list[Any]:
    return [*cells[begin:end], *[None] * (end - max(begin, len(cells)))]


def _within(rows: Iterator[Record], begin: int, end: int, beside: bool) -> Iterator[Record]:
    """Yield the cells of a table's columns; a row outside of them is a remark, in its first cell.

    Raises BadSource for a row of the table that has a cell outside of it, unless the cells
    `beside` it are known.
    """
    for line, cells in rows:
        within = _padded(cells, begin, end)
        outside = [
            i for i in chain(range(min(begin, len(cells))), range(end, len(cells)))
            if not is_blank(cells[i]) and not (beside and i >= end)
        ]  # fmt: skip
        if outside and filled(within):
            error = BadSource(
                f"cell {column_name(outside[0] + 1)}{line} is outside of the table, whose columns "
                f"are {column_name(begin + 1)} to {column_name(end)}: name its column, or empty it"
            )
            error.line = line
            raise error
        if outside:
            within[0] = cells[outside[0]]
        if filled(within):
            yield line, within
