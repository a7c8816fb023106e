"""The table of a Parquet file, within bounds.

A page of some bytes may unpack to gigabytes, and a text may stand for each of a billion rows. So
the heads of the pages are read before a page is: they, and not the footer, say what a reader of
pages allocates. Their format is the compact protocol of Thrift.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import IO, Any, NamedTuple

from workers.push.reading import BadSource, Reading
from workers.push.table_bounds import LongTexts, Record
from workers.push.tables import Table

_BATCH_ROWS = 1000
_BATCH_BYTES = 64 << 20  # of texts
_MAGIC = b"PAR1"
_MAX_SCHEMA_ELEMENTS = 200_000  # twice the most features of a feed
_FEW_CHUNKS = 100_000
_MIN_CHUNK_BYTES = 20  # in a footer
_MAX_HEAD_BYTES = 1 << 20  # of a page, with its statistics
_MAX_DEPTH = 16  # structures within one another
_BYTE_ARRAYS_BY_DELTA = (6, 7)  # encodings whose values are longer than their pages say
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_2 = 5, 7, 8  # fields of a page's head
_BYTE_ARRAY = 6  # the type of texts
_ENCODING = {_DATA_PAGE: 2, _DATA_PAGE_2: 4}


class _Truncated(ValueError):
    """A structure is longer than the bytes that were read."""


def parquet_table(file: IO[bytes], reading: Reading) -> Table:
    """Read a Parquet file. Raises BadSource without the package pyarrow."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise BadSource("a Parquet file; install online-svm[archive] to read it") from None
    size, (limit, groups) = file.seek(0, 2), _checked_footer(file)
    try:
        source = pyarrow.parquet.ParquetFile(
            file, pre_buffer=False, thrift_container_size_limit=limit
        )
        wanted = [field for field in source.schema_arrow if field.name not in reading.drop]
        for field in wanted:
            _check_type(field)
        names = [field.name for field in wanted]
        budget = _Budget(size)
        # A group without a row, as pandas writes it for an empty table, has no pages.
        longest = {
            group: _checked_pages(file, chunks, budget)
            for group, chunks in enumerate(groups)
            if any(chunk.values for chunk in chunks)
        }
        records = _records(source, names, longest, LongTexts(size))
        if reading.id is not None and reading.id in names:
            records = _without_rounded(records, source.schema_arrow, reading.id)
        return Table(source.schema_arrow.names, records)
    except BadSource:
        raise
    except Exception as error:  # a damaged file causes errors of many kinds
        raise _damaged(error) from None


def _check_type(field: Any) -> None:
    from pyarrow import types

    kinds = (types.is_nested, types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    if any(is_kind(field.type) for is_kind in kinds):
        raise BadSource(
            f"{field.name[:40]} is of type {str(field.type)[:40]}, which no table of a feed holds: "
            "leave it out with --drop"
        )


class _Budget:
    """What a file of a size may unpack to."""

    def __init__(self, size: int) -> None:
        self._bytes, self._values = (64 << 20) + 20 * size, 2_000_000 + 16 * size

    def take(self, page_bytes: int, values: int) -> None:
        """Raise BadSource if the pages so far unpack to more."""
        self._bytes -= page_bytes
        self._values -= values
        if page_bytes < 0 or values < 0:
            raise BadSource("a damaged Parquet file: a page of a negative size")
        if self._bytes < 0 or self._values < 0:
            raise BadSource(
                "the Parquet file unpacks to more than a table of its size: write it anew, or save "
                "the table as CSV"
            )


def _records(
    source: Any, wanted: Sequence[str], longest: Mapping[int, int], texts: LongTexts
) -> Iterator[Record]:
    """Yield the rows; columns that are not wanted are not read, and are None.

    `longest` bounds the bytes of text of a row in each group that has rows.
    """
    at, names = 0, source.schema_arrow.names
    try:
        for group, text_bytes in longest.items():
            rows = max(1, min(_BATCH_ROWS, _BATCH_BYTES // max(1, text_bytes)))
            for batch in source.iter_batches(rows, row_groups=[group], columns=wanted):
                no_values = [None] * len(batch)
                columns = (
                    batch.column(name).to_pylist() if name in wanted else no_values
                    for name in names
                )  # fmt: skip
                for cells in zip(*columns, strict=True):
                    at += 1
                    for cell in cells:
                        if isinstance(cell, str):
                            texts.take(cell)
                    yield at, cells
    except BadSource:
        raise
    except Exception as error:  # a damaged file causes errors of many kinds
        raise _damaged(error) from None


def _without_rounded(records: Iterator[Record], schema: Any, name: str) -> Iterator[Record]:
    """Yield the rows. Raises BadSource for an id that is a number of too few bits to keep it."""
    place, kind = schema.get_field_index(name), str(schema.field(name).type)
    most = {"float": 2.0**24, "halffloat": 2.0**11}.get(kind, inf)
    for at, cells in records:
        if isinstance(cells[place], float) and abs(cells[place]) >= most:
            raise BadSource(
                f"row {at}: the id {cells[place]:.0f} may have lost digits, as its column is of "
                f"type {kind}: write it as integers or text"
            )
        yield at, cells


def _damaged(error: Exception) -> BadSource:
    return BadSource(f"a damaged Parquet file: {' '.join(str(error).split())[:200]}")


class _Chunk(NamedTuple):
    """The pages of a column in a group of rows."""

    begin: int  # of its bytes in the file
    end: int
    is_text: bool
    values: int  # rows, also those without a value


def _checked_footer(file: IO[bytes]) -> tuple[int, list[list[_Chunk]]]:
    """Return the length of the longest list in the footer, and the columns of each group of rows.

    The library's accessors of a column end the process where the footer contradicts itself.

    Raises BadSource if it asks for more memory than a footer of its length needs, or is nested
    deeper than the readers of schemas recurse.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - 8))
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if end[4:] != _MAGIC or length > size - 12:
        raise BadSource("no Parquet file, or one that is cut off")
    file.seek(size - 8 - length)
    parser = _Thrift(file.read(length))
    try:
        elements, groups = parser.schema_and_groups()
        limit = max(elements, groups, 1000)
        most = max(_FEW_CHUNKS, length // _MIN_CHUNK_BYTES)
        if elements > _MAX_SCHEMA_ELEMENTS or groups * limit > most:
            raise BadSource(
                f"a Parquet file of {elements:,} columns in {groups:,} groups: too many"
            )
        return limit, [list(parser.chunks()) for _ in range(groups)]
    except (ValueError, KeyError, TypeError) as error:
        raise BadSource(f"a damaged Parquet file: its footer: {error}") from None


def _checked_pages(file: IO[bytes], chunks: Sequence[_Chunk], budget: _Budget) -> int:
    """Return a bound of the bytes of text in a row; raise BadSource if the pages are too large."""
    longest = 0
    for place, chunk in enumerate(chunks, 1):
        pages = list(_pages(file, chunk.begin, chunk.end))
        for page in pages:
            budget.take(page.unpacked, page.values)
            if page.encoding in _BYTE_ARRAYS_BY_DELTA:
                raise BadSource(
                    f"column {place} is encoded by delta: write the file with PLAIN or dictionary "
                    "encoding"
                )
        if chunk.is_text:  # a row has no longer text than all of a page
            longest += max((page.unpacked for page in pages), default=0)
    return longest


class _Page(NamedTuple):
    unpacked: int  # bytes
    values: int  # rows; 0 of a dictionary
    encoding: int | None


def _pages(file: IO[bytes], at: int, end: int) -> Iterator[_Page]:
    """Yield what the heads of the pages of a column say."""
    while at < end:
        head, length = _page_head(file, at, end)
        kind = next((kind for kind in _ENCODING if kind in head), None)
        of_kind = {} if kind is None else head[kind]
        yield _Page(head[2], of_kind.get(1, 0), of_kind.get(_ENCODING[kind]) if kind else None)
        if head[3] < 0:
            raise ValueError("a page of a negative size")
        at += length + head[3]


def _page_head(file: IO[bytes], at: int, end: int) -> tuple[dict[int, Any], int]:
    for most in (1 << 10, _MAX_HEAD_BYTES):
        file.seek(at)
        parser = _Thrift(file.read(min(most, end - at)))
        try:
            head = parser.structure()
        except _Truncated:
            continue
        if not isinstance(head.get(2), int) or not isinstance(head.get(3), int):
            raise ValueError("a page without a size")
        return head, parser.at
    raise ValueError("the head of a page is cut off")


class _Thrift:
    """Reads structures of the compact protocol from bytes; `at` is the position."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def structure(self, depth: int = 0) -> dict[int, Any]:
        """Return the fields by number: integers and structures; of others None."""
        return {number: self._value(kind, depth) for number, kind in self._fields()}

    def schema_and_groups(self) -> tuple[int, int]:
        """Return the numbers of schema elements and of row groups of a file's metadata.

        Raises ValueError if the schema is nested too deep.
        """
        elements = 0
        for number, kind in self._fields():
            if number == 2:
                _, elements = self._list_head()
                self._check_depth(elements)
            elif number == 4:
                return elements, self._list_head()[1]
            else:
                self._value(kind, 0)
        return elements, 0

    def chunks(self) -> Iterator[_Chunk]:
        """Yield the columns of the next group of rows."""
        for number, kind in self._fields():
            if number == 1:
                for _ in range(self._list_head()[1]):
                    found = self.structure()[3]
                    begin, dictionary = found[9], found.get(11) or 0
                    if 0 < dictionary < begin:
                        begin = dictionary
                    yield _Chunk(begin, begin + found[7], found[1] == _BYTE_ARRAY, found[5])
            else:
                self._value(kind, 0)

    def _check_depth(self, elements: int) -> None:
        """Read the schema, whose elements are a tree in order; raise ValueError if it is deep."""
        missing = [1]  # elements that are to come on each level
        for _ in range(elements):
            missing[-1] -= 1
            children = self.structure().get(5) or 0
            if children:
                missing.append(children)
            while len(missing) > 1 and missing[-1] <= 0:
                missing.pop()
            if len(missing) > _MAX_DEPTH:
                raise ValueError(f"columns within one another, more than {_MAX_DEPTH} deep")

    def _fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and type of each field; its value is to be read before the next one."""
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            yield number, head & 15

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise ValueError("structures within one another")
        if kind in (1, 2):  # true and false are their type
            return None
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._integer()
        if kind == 7:
            return self._skip(8)
        if kind == 8:
            return self._skip(self._varint())
        if kind in (9, 10):
            item, count = self._list_head()
            for _ in range(count):
                # A bool of a list takes a byte.
                _ = self._byte() if item in (1, 2) else self._value(item, depth + 1)
            return None
        if kind == 12:
            return self.structure(depth + 1)
        raise ValueError(f"a value of type {kind}")

    def _list_head(self) -> tuple[int, int]:
        head = self._byte()
        count = head >> 4 if head >> 4 != 15 else self._varint()
        return head & 15, count

    def _byte(self) -> int:
        if self.at >= len(self._data):
            raise _Truncated("it is cut off")
        self.at += 1
        return self._data[self.at - 1]

    def _skip(self, count: int) -> None:
        if count > len(self._data) - self.at:
            raise _Truncated("it is cut off")
        self.at += count

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise ValueError("a number of more than 64 bits")

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
