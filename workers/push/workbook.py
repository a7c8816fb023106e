"""Read the sheets of an .xlsx workbook piece by piece, within bounds.

The readers of libraries trust a workbook: a row number of 999,999,999,999 makes as many empty
rows, and the tree of a part takes 25 times the part's size. Here the sizes are checked before a
part is unpacked, and a part is never held whole.
"""

import posixpath
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import IO, Any, NamedTuple
from xml.parsers import expat
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from workers.push.reading import BadSource
from workers.push.table_bounds import MAX_CELL_CHARACTERS, LongTexts, Record

MAX_ROWS, MAX_COLUMNS = 1 << 20, 1 << 14  # of a sheet in Excel

_MAX_DEPTH = 64  # elements within one another
_MAX_TOKEN_BYTES = 1 << 20  # a tag, with its attributes
_MAX_FORMAT_CHARACTERS = 255  # as in Excel
_BLOCK_BYTES = 1 << 16
_FLAG_ENCRYPTED = 1

_CELL = re.compile("([A-Za-z]{1,3})([0-9]{1,7})")
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")

_DAMAGED = (
    BadZipFile, zlib.error, expat.ExpatError, OSError, EOFError, NotImplementedError,
    RuntimeError, ValueError, LookupError, struct.error, OverflowError,
)  # fmt: skip
"""What zipfile, expat and the conversion of texts raise for a damaged workbook."""


class Uncomputed(NamedTuple):
    """The place of a formula without a value: the program that wrote it computes none."""

    place: str


class Sheet(NamedTuple):
    """A sheet of a workbook."""

    name: str
    is_hidden: bool
    part: str  # of the archive


class Workbook:
    """The sheets of a workbook. Raises BadSource if it is none, is damaged, or unpacks to too much.

    Parameters
    ----------
    file : binary file
        It must stay open while rows are read.
    """

    def __init__(self, file: IO[bytes]) -> None:
        from openpyxl.utils.datetime import MAC_EPOCH, WINDOWS_EPOCH

        with _damage_named("no Excel workbook"):
            self._archive = ZipFile(file)
            size = file.seek(0, 2)
            # A cell of a sheet in which all are alike takes two bytes, and is two elements.
            self._elements_left = 2_000_000 + 2 * size
            self._characters_left = (32 << 20) + 8 * size
            self._long = LongTexts(size)
            self._parts = {info.filename: info for info in self._archive.infolist()}
            book = self._related("", "/officeDocument")[0][1]
            self.sheets, self._epoch = list[Sheet](), WINDOWS_EPOCH
            parts = dict(self._related(book, "/worksheet"))
            for name, attributes, _ in self._elements(book):
                if name == "workbookPr" and attributes.get("date1904") in ("1", "true"):
                    self._epoch = MAC_EPOCH
                elif name == "sheet" and (part := parts.get(attributes.get("id", ""))):
                    is_hidden = attributes.get("state", "visible") != "visible"
                    self.sheets.append(Sheet(attributes["name"], is_hidden, part))
            self._formats = [
                kind for _, part in self._related(book, "/styles") for kind in self._styles(part)
            ]
            self._strings = [
                text for _, part in self._related(book, "/sharedStrings")
                for text in self._texts(part)
            ]  # fmt: skip

    def rows(self, sheet: Sheet) -> Iterator[Record]:
        """Yield the rows of a sheet that are not empty, with their numbers.

        A cell is a number, a bool, a text, a date, a time, a timedelta, None or `Uncomputed`.
        """
        with _damage_named(f"sheet {sheet.name} is damaged"):
            yield from self._rows(sheet)

    def _rows(self, sheet: Sheet) -> Iterator[Record]:
        number, cells, column = 0, list[Any](), 0
        kind, style, value, has_formula = "n", 0, "", False
        for name, attributes, text in self._elements(sheet.part):
            if name == "/v":
                value = text
            elif name == "c":
                column = _column(attributes["r"]) if "r" in attributes else column + 1
                if column > MAX_COLUMNS:
                    raise ValueError(f"a cell in column {column:,}")
                kind, value, has_formula = attributes.get("t", "n"), "", False
                style = int(attributes.get("s", 0))
            elif name == "/c":
                if value or has_formula:
                    cells += [None] * (column - len(cells))
                    cells[column - 1] = (
                        self._value(kind, style, value) if value
                        else Uncomputed(f"{column_name(column)}{number}")
                    )  # fmt: skip
            elif name == "/f":
                has_formula = True
            elif name == "/t":
                value += text
            elif name == "row":
                number, cells, column = _row_number(attributes.get("r"), number), [], 0
            elif name == "/row" and any(cell is not None for cell in cells):
                yield number, cells

    def _value(self, kind: str, style: int, text: str) -> Any:
        """Return the value of a cell, as its type and its number format say."""
        if kind == "s":
            return self._long.take(self._strings[int(text)])
        if kind == "b":
            return text == "1" or text == "true"
        if kind == "d":
            from openpyxl.utils.datetime import from_ISO8601

            return from_ISO8601(text)
        if kind != "n":
            return _unescaped(text)
        number = int(text) if text.isdecimal() and len(text) < 16 else float(text)
        if style and style < len(self._formats) and (form := self._formats[style]):
            return _time(number, self._epoch, form)
        return number

    def _styles(self, part: str) -> Iterator[str]:
        """Yield for each cell format "time", "duration", or nothing for another one."""
        from openpyxl.styles.numbers import BUILTIN_FORMATS, is_date_format, is_timedelta_format

        codes, is_of_cells = dict(BUILTIN_FORMATS), False
        for name, attributes, _ in self._elements(part):
            if name == "numFmt":
                codes[int(attributes["numFmtId"])] = attributes.get("formatCode", "")
            elif name.endswith("cellXfs"):
                is_of_cells = name == "cellXfs"
            elif name == "xf" and is_of_cells:
                code = codes.get(int(attributes.get("numFmtId", 0)), "")
                if len(code) > _MAX_FORMAT_CHARACTERS or not is_date_format(code):
                    yield ""
                else:
                    yield "duration" if is_timedelta_format(code) else "time"

    def _texts(self, part: str) -> Iterator[str]:
        """Yield the shared texts, without their pronunciation."""
        text, is_spoken = "", False
        for name, _, found in self._elements(part):
            if name.endswith("rPh"):
                is_spoken = name == "rPh"
            elif name == "/t" and not is_spoken:
                text += found
            elif name == "/si":
                self._characters_left -= len(text)
                if self._characters_left < 0:
                    raise BadSource(f"{part} has more text than a table of this size: save it anew")
                yield _unescaped(text)
                text = ""

    def _related(self, part: str, kind: str) -> list[tuple[str, str]]:
        """Return the ids and names of the parts of a kind that a part refers to."""
        folder, name = posixpath.split(part)
        found = []
        for element, attributes, _ in self._elements(f"{folder}/_rels/{name}.rels".lstrip("/")):
            if element == "Relationship" and attributes["Type"].endswith(kind):
                target = posixpath.normpath(posixpath.join("/", folder, attributes["Target"]))
                found.append((attributes["Id"], target.lstrip("/")))
        return found

    def _elements(self, part: str) -> Iterator[tuple[str, Mapping[str, str], str]]:
        """Yield the begins of a part's elements with attributes, and the ends, as /name, with text.

        Names are without their prefix.
        """
        info = self._parts[part]
        # An XML part of an ordinary workbook unpacks to 5 to 20 times its size.
        most = (32 << 20) + 20 * info.compress_size
        if info.file_size > most or info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise BadSource(
                f"{part} unpacks to {info.file_size:,} bytes, more than a table of this size: save "
                "the table as CSV, and push that file"
            )
        if info.flag_bits & _FLAG_ENCRYPTED:
            raise BadSource("it is encrypted: save it without a password")
        with self._archive.open(info) as source:
            for event in _events(source):
                self._elements_left -= 1
                if self._elements_left < 0:
                    raise BadSource(f"{part} has more elements than a table of this size has cells")
                yield event


def _events(source: IO[bytes]) -> Iterator[tuple[str, Mapping[str, str], str]]:
    """Yield begins and ends of XML elements, as `Workbook._elements` does."""
    found: list[tuple[str, Mapping[str, str], str]] = []
    text, depth = list[str](), 0
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MAX_DEPTH:
            raise ValueError(f"more than {_MAX_DEPTH} elements within one another")
        text.clear()
        if any(":" in key for key in attributes):
            attributes = {key.rpartition(":")[2]: value for key, value in attributes.items()}
        found.append((name.rpartition(":")[2], attributes, ""))

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        found.append((f"/{name.rpartition(':')[2]}", {}, "".join(text)))
        text.clear()

    def characters(some: str) -> None:
        text.append(some)
        if len(some) * len(text) > MAX_CELL_CHARACTERS and sum(map(len, text)) > (
            MAX_CELL_CHARACTERS
        ):
            raise ValueError(f"a text of more than {MAX_CELL_CHARACTERS:,} characters")

    def doctype(*_: object) -> None:
        raise ValueError("a document type, which no workbook has")

    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = characters, doctype
    fed = 0
    while block := source.read(_BLOCK_BYTES):
        parser.Parse(block, False)
        fed += len(block)
        if fed - parser.CurrentByteIndex > _MAX_TOKEN_BYTES:
            raise ValueError(f"a tag of more than {_MAX_TOKEN_BYTES:,} bytes")
        yield from found
        found.clear()
    parser.Parse(b"", True)
    yield from found


@contextmanager
def _damage_named(what: str) -> Iterator[None]:
    """Raise BadSource for an error that a damaged workbook causes."""
    try:
        yield
    except BadSource:
        raise
    except _DAMAGED as error:
        reason = f"no part {error}" if isinstance(error, KeyError) else str(error)
        raise BadSource(f"{what}: {reason[:200]}") from None


def column_name(number: int) -> str:
    """Return the letters of a column.

    Examples
    --------
    >>> [column_name(number) for number in (1, 26, 27, 16384)]
    ['A', 'Z', 'AA', 'XFD']
    """
    name = ""
    while number:
        number, letter = divmod(number - 1, 26)
        name = chr(ord("A") + letter) + name
    return name


def _column(cell: str) -> int:
    found = _CELL.fullmatch(cell)
    if found is None:
        raise ValueError(f"a cell named {cell[:40]!r}")
    number = 0
    for letter in found[1].upper():
        number = 26 * number + ord(letter) - ord("A") + 1
    return number


def _row_number(text: str | None, before: int) -> int:
    number = before + 1 if text is None else int(text)
    if not before < number <= MAX_ROWS:
        raise ValueError(f"row {number:,} after row {before:,}; a sheet has {MAX_ROWS:,} rows")
    return number


def _unescaped(text: str) -> str:
    """Return a text with _x000D_ and the like as characters."""
    if "_x" not in text:
        return text
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def _time(number: float, epoch: datetime, form: str) -> Any:
    """Return a number as a time or a duration; as it is if no time is that far away."""
    from openpyxl.utils.datetime import from_excel

    try:
        return from_excel(number, epoch, timedelta=form == "duration")
    except (OverflowError, ValueError):
        return number
