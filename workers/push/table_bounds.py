"""The bounds of a table: titles above its header, totals and remarks below its rows."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from workers.push.cell_text import number_of, times_of
from workers.push.reading import BadSource

MAX_TITLES = 10  # lines above a header
_MAX_HELD = 5  # rows at the end of a table that may be no examples
_MAX_SHOWN = 40  # characters of a cell in a message

_TOTAL = re.compile(
    r"(?:(?:zwischen|gesamt|end)?summe|(?:end|schlu(?:ss|ß))?saldo|gesamt|insgesamt|(?:sub|grand )?"
    r"total[ei]?|totaal|sum|somme|suma|soma|razem|anzahl|average|mittelwert|durchschnitt)\b",
    re.IGNORECASE,
)
"""The first cell of a row that adds up the others."""

Record = tuple[int, Sequence[Any]]  # line of a source, and its cells


def is_blank(cell: object) -> bool:
    """Return whether a cell has nothing but blanks."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def filled(cells: Sequence[object]) -> int:
    """Return the number of cells that are not blank."""
    return sum(not is_blank(cell) for cell in cells)


def header_at(rows: Sequence[Sequence[object]]) -> int:
    """Return the index of the header in the first rows of a table; 0 if it is not clear.

    The header is another row than the first one only if it names every column, is followed by
    rows of its width with numbers or times, and the rows above it fill much fewer cells.

    Examples
    --------
    >>> header_at([["Statement"], ["From:", "2025-01-01"], ["day", "sum", "kind"], ["1", "2", "x"]])
    2
    """
    for at in range(1, min(MAX_TITLES, len(rows) - 2) + 1):
        if _names_columns(rows[at], rows[at + 1 :]) and all(
            _is_title(row, rows[at]) for row in rows[:at]
        ):
            return at
    return 0


def _names_columns(names: Sequence[object], later: Sequence[Sequence[object]]) -> bool:
    count = filled(names)
    cells = [str(cell).strip() for cell in names[:count]]
    if count < 2 or len({*cells}) < count or any(map(_is_value, [*names[:count], *cells])):
        return False
    ends = len(later) - 1 if len(later) > 1 else 1  # the last row may be a total
    if any(len(row) != len(names) or filled(row[count:]) for row in later[:ends]):
        return False
    return any(2 * sum(_is_value(row[i]) for row in later[:ends]) > ends for i in range(count))


def _is_title(row: Sequence[object], names: Sequence[object]) -> bool:
    count, columns = filled(row), filled(names)
    return 2 * count <= columns or (len(row) != len(names) and count < columns)


def _is_value(cell: object) -> bool:
    if not isinstance(cell, str):
        return cell is not None
    text = cell.strip()
    return text == "" or number_of(text) is not None or times_of(text) is not None


def rows_within(
    records: Iterator[Record], width: int, named: int, left_out: list[str]
) -> Iterator[Record]:
    """Yield the rows of a table, each with the `named` first cells of the `width` in its header.

    Totals and remarks at the end are left out, and described in `left_out`. Raises BadSource for
    a row of another width, for a cell without a name, and for a total between other rows.
    """
    held: list[Record] = []
    before: Sequence[Any] = ()  # the last row that is an example
    for at, cells in records:
        is_plain = (
            len(cells) == named == width and None not in cells and "" not in cells
            and not (isinstance(cells[0], str) and _TOTAL.match(cells[0]))
        )  # fmt: skip
        if not is_plain and len(held) < _MAX_HELD and _may_be_no_example(cells, width, before):
            held.append((at, cells))
            continue
        for each in held:
            yield _checked(each, width, named, before)
        held.clear()
        yield (at, cells) if is_plain else _checked((at, cells), width, named, before)
        before = cells
    for at, cells in held:
        first = next(str(cell).strip() for cell in cells if not is_blank(cell))
        left_out.append(f"line {at}, {first[:_MAX_SHOWN]!r}")


def _may_be_no_example(cells: Sequence[object], width: int, before: Sequence[object]) -> bool:
    return _is_total(cells, width, before) or (
        width > 2 and filled(cells) == 1 and not is_blank(cells[0]) and not _is_value(cells[0])
    )


def _is_total(cells: Sequence[object], width: int, before: Sequence[object]) -> bool:
    """Return whether a row names a total, and else has numbers: few, or below other numbers."""
    present = [(i, cell) for i, cell in enumerate(cells) if not is_blank(cell)]
    if len(present) < 2 or not all(_is_value(cell) for _, cell in present[1:]):
        return False
    i, first = present[0]
    if not isinstance(first, str) or _TOTAL.match(first.strip()) is None:
        return False
    is_below_values = i < len(before) and _is_value(before[i]) and not is_blank(before[i])
    return 2 * len(present) <= width + 1 or is_below_values


def _checked(record: Record, width: int, named: int, before: Sequence[object]) -> Record:
    at, cells = record
    reason = ""
    if _is_total(cells, width, before):
        reason = "a total between other rows: delete it"
    elif len(cells) not in (named, width):
        reason = f"not {width} columns, as the first line has"
    elif filled(cells[named:]):
        reason = f"column {named + 1} has no name: name it, or leave it out: --drop ''"
    if not reason:
        return at, cells[:named]
    error = BadSource(reason)
    error.line = at
    raise error


def first_line_is_data(names: Sequence[str]) -> bool:
    """Return whether the names of a table look like values; integers that rise by 1 do not."""
    values = [name.strip() for name in names if name.strip() and _is_value(name)]
    if not values or 2 * len(values) < len(names):
        return False
    whole = [int(name) for name in values if name.isdecimal()]
    return len(whole) < len(values) or whole != [*range(whole[0], whole[0] + len(whole))]
