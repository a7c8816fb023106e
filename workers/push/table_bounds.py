"""The bounds of a table: titles above its header, totals and remarks below its rows."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from workers.push.cell_text import number_of, times_of
from workers.push.reading import BadSource

MAX_CELL_CHARACTERS = 1 << 17
"""Largest number of characters in a cell of a sheet or a Parquet file; Excel takes 32,767."""

_MAX_SHORT = 200  # characters of a text that need not be counted
MAX_TITLES = 10  # lines above a header
_MAX_HELD = 20  # rows at the end of a table that may be no examples
_MAX_SHOWN = 40  # characters of a cell in a message

_TOTAL = re.compile(
    r"(?:(?:zwischen|gesamt|teil|end|jahres|monats)?summen?|(?:gesamt|ins?gesamt)(?:betrag|ergebnis)?"
    r"|(?:end|anfangs|schlu(?:ss|ß)|gesamt)?saldo|übertrag|(?:(?:sub|grand|net|gross)[ -]?)?totals?"
    r"|(?:sub)?tota(?:le|li|al|aal)|(?:eind|sub)totaal|totaal|sum|somme|suma|soma|summa|razem|celkem"
    r"|összesen|yhteensä|toplam|итого|всего|σύνολο|合计|合計|总计|小计|小計|anzahl|average|mean"
    r"|mittelwert|durchschnitt|moyenne|promedio|gemiddelde|(?:closing |opening )?balance|i alt"
    r"|(?:carried|brought) forward|Σ)\b",
    re.IGNORECASE,
)
"""The word of a row that adds up the others."""

_RULER = re.compile("[-=_*~#+.–—]{2,}")

Record = tuple[int, Sequence[Any]]  # line of a source, and its cells


class LongTexts:
    """Bounds the long texts of a file of `size` bytes that stores a repeated one once."""

    def __init__(self, size: int) -> None:
        self._characters_left = (64 << 20) + 50 * size

    def take(self, text: str) -> str:
        """Return a text. Raises BadSource if it is too long for a cell, or all long ones are."""
        if len(text) > _MAX_SHORT:
            self._characters_left -= len(text)
            if len(text) > MAX_CELL_CHARACTERS or self._characters_left < 0:
                raise BadSource(
                    f"a text of {len(text):,} characters, more than a cell of a table of this size "
                    "has: leave its column out with --drop, or save the table as CSV"
                )
        return text


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
    for is_sound in (True, False):  # a header with a fault is found, so that this can be named
        for at in range(1, min(MAX_TITLES, len(rows) - 2) + 1):
            if _names_columns(rows[at], rows[at + 1 :], is_sound) and all(
                _is_title(row, rows[at]) for row in rows[:at]
            ):
                return at
    return 0


def _names_columns(
    names: Sequence[object], later: Sequence[Sequence[object]], is_sound: bool
) -> bool:
    """Return whether a row names the columns below, if `is_sound` each by a name of its own."""
    count = max((i for i, cell in enumerate(names, 1) if not is_blank(cell)), default=0)
    present = [cell for cell in names if not is_blank(cell)]
    cells = [str(cell).strip() for cell in present]
    if len(cells) < 2 or 2 * len(cells) <= count or any(map(_is_value, [*present, *cells])):
        return False
    if is_sound and len({*cells}) < count:
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


@dataclass(frozen=True, slots=True)
class Bounds:
    """What tells the rows of a table that are no examples from the others."""

    names: Sequence[str]  # of the header, also without a name at its end
    named: int  # cells before these
    label: int | None = None  # index of the label
    has_header: bool = True
    may_wait: bool = False  # whether the next row may come much later
    left_out: dict[str, list[int]] = field(default_factory=dict)  # lines by what they are

    def kind(self, record: Record, before: Sequence[object]) -> str:
        """Return what a row is: an example, nothing, the header, at the end, or odd.

        `before` is the last example. An odd row is a title if the header follows, else an example.
        """
        cells = record[1]
        first = cells[0] if cells else None
        is_plain = len(cells) == self.named == len(self.names) and None not in cells
        if is_plain and not isinstance(first, str):
            return "example"
        if is_plain and "" not in cells and not self._may_begin_other_row(str(first)):
            return "example"
        if all(is_blank(cell) or _is_ruler(cell) for cell in cells):
            return "nothing"
        if self._repeats_header(record):
            return "header"
        if self.is_total(cells, before) or self._is_remark(cells):
            return "end"
        is_odd = len(cells) not in (self.named, len(self.names))
        is_odd |= 2 * filled(cells) <= self.named < 2 * filled(before)
        return "odd" if is_odd and not self.may_wait else "example"

    def _may_begin_other_row(self, first: str) -> bool:
        return bool(
            _TOTAL.match(first) or _RULER.fullmatch(first.strip()) or _plain(first) in self._header
        )

    @property
    def _header(self) -> list[str]:
        return _plain_names(tuple(self.names[: self.named])) if self.has_header else []

    def _repeats_header(self, record: Record) -> bool:
        """Return whether a row is the header; raise BadSource if it has its names elsewhere."""
        header = self._header
        texts = [_plain(cell) for cell in record[1] if not is_blank(cell)]
        if texts == [name for name in header if name]:
            return True
        found = [text for text in texts if text in header]
        if len(found) > 1 and 2 * len(found) > max(len(texts), len(header)):
            one, other = found[0][:_MAX_SHOWN], found[1][:_MAX_SHOWN]
            reason = (
                f"{one!r} and {other!r} are names of columns, but this is not the header: push "
            )
            reason += "a second table as its own file; if the first line is a row, say --no-header"
            raise _error(record, reason)
        return False

    def is_total(self, cells: Sequence[object], before: Sequence[object]) -> bool:
        """Return whether a row names a total, and has numbers: few, or below other numbers."""
        present = [(i, cell) for i, cell in enumerate(cells) if not is_blank(cell)]
        words = [(i, cell) for i, cell in present if not _is_value(cell)]
        if len(present) == len(words) or not words:
            return False
        i, word = words[0]
        if not isinstance(word, str) or _TOTAL.match(word.strip()) is None:
            return False
        is_below_values = i < len(before) and _is_value(before[i]) and not is_blank(before[i])
        # Beside another word a total has no label, unless it stands below numbers: a brand's name
        # may have one.
        has_label = any(j == self.label for j, _ in present)
        if len(words) > 1 and has_label and not is_below_values:
            return False
        return 2 * len(present) <= len(self.names) + 1 or is_below_values

    def _is_remark(self, cells: Sequence[object]) -> bool:
        is_first_alone = len(self.names) > 2 and filled(cells) == 1 and not is_blank(cells[0])
        return is_first_alone and not _is_value(cells[0])

    def checked(self, record: Record, before: Sequence[object]) -> Record:
        """Return the cells with a name. Raises BadSource for a total, and for another width."""
        at, cells = record
        reason = ""
        if self.is_total(cells, before):
            reason = "a total between other rows: delete it"
        elif len(cells) not in (self.named, len(self.names)):
            reason = f"not {len(self.names)} columns, as the first line has"
        elif filled(cells[self.named :]):
            reason = f"column {self.named + 1} has no name: name it, or leave it out: --drop ''"
        if reason:
            raise _error(record, reason)
        return at, cells[: self.named]

    def leave_out(self, at: int, what: str) -> None:
        """Note a row that is no example."""
        self.left_out.setdefault(what, []).append(at)


def rows_within(records: Iterator[Record], table: Bounds) -> Iterator[Record]:
    """Yield the rows of a table that are examples, each with the cells that have a name.

    Left out are rows without a value, the header where it stands again, with the totals and titles
    before it, and totals and remarks at the end. Raises BadSource for a row of another width, for a
    cell without a name, for a total between other rows, and for a header of another table.
    """
    held: list[tuple[Record, str]] = []
    before: Sequence[Any] = ()
    for at, cells in records:
        kind = table.kind((at, cells), before)
        if kind == "nothing":
            table.leave_out(at, "without a value")
        elif kind == "header":
            for (line, each), _ in held:
                table.leave_out(line, _shown(each))
            held.clear()
            table.leave_out(at, "the header again")
        elif kind != "example" and len(held) < _MAX_HELD:
            held.append(((at, cells), kind))
        else:
            for record, _ in held:
                yield table.checked(record, before)
            held.clear()
            yield table.checked((at, cells), before)
            before = cells
    for record, kind in held:
        if kind == "end":
            table.leave_out(record[0], _shown(record[1]))
        else:
            yield table.checked(record, before)


def _error(record: Record, reason: str) -> BadSource:
    error = BadSource(reason)
    error.line = record[0]
    return error


def _shown(cells: Sequence[object]) -> str:
    return repr(next(str(cell).strip() for cell in cells if not is_blank(cell))[:_MAX_SHOWN])


def left_out_text(left_out: Mapping[str, Sequence[int]]) -> str:
    """Return which rows are no examples.

    Examples
    --------
    >>> left_out_text({"'Total'": [9], "without a value": [2, 4, 6, 8]})
    "line 9, 'Total'; lines 2, 4, 6 and 1 more, without a value"
    """
    parts = []
    for what, lines in [*left_out.items()][:_MAX_HELD]:
        more = f" and {len(lines) - 3:,} more" if len(lines) > 3 else ""
        shown = ", ".join(map(str, lines[:3]))
        parts.append(f"line{'s' if len(lines) > 1 else ''} {shown}{more}, {what}")
    return "; ".join(parts)


def _is_ruler(cell: object) -> bool:
    return isinstance(cell, str) and _RULER.fullmatch(cell.strip()) is not None


def _plain(cell: object) -> str:
    """Return a name as another export may write it: without case, quotes and marks."""
    return " ".join(str(cell).strip("\ufeff\"' \t").casefold().split())


@cache
def _plain_names(names: tuple[str, ...]) -> list[str]:
    return [_plain(name) for name in names]


def first_line_is_data(names: Sequence[str]) -> bool:
    """Return whether the names of a table look like values; integers that rise by 1 do not."""
    values = [name.strip() for name in names if name.strip() and _is_value(name)]
    if not values or 2 * len(values) < len(names):
        return False
    whole = [int(name) for name in values if name.isdecimal()]
    return len(whole) < len(values) or whole != [*range(whole[0], whole[0] + len(whole))]
