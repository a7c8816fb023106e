"""Write answers as a table: CSV, in which a spreadsheet finds no formulas, or Parquet."""

import csv
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from workers.broker.feed_reader import FeedReader
from workers.broker.streams import Entry, no_answer
from workers.errors import BadConfiguration
from workers.reading.answers import answer
from workers.reading.true_labels import TrueLabels, Truth
from workers.text import printable

if TYPE_CHECKING:
    from types import ModuleType

_GROUP_ROWS = 8192  # rows of a row group of Parquet, which are in memory at a time

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

_PAIRS = {"intervals": "", "venn": "venn "}
"""Lists of (lower, upper) pairs, with the prefix of their columns."""


class AnswerTable:
    """The kept answers of a feed, a row each; `trimmed` counts those whose input is not kept."""

    def __init__(self, store: FeedReader, features: bool) -> None:
        self._store, self._features, self.trimmed = store, features, 0
        self._truths = TrueLabels(store, features, with_late=True)
        self._last = store.newest_id(store.keys.out)
        # A class may first appear in any row, so the rows are read once for the columns and again
        # to write them, both times up to `last`.
        self.columns: dict[str, set[type]] = {"entry": {str}}  # with the types of their values
        for row in self._rows(reads_input=features):
            for name, value in row.items():
                self.columns.setdefault(name, set()).add(_kind(value))

    def write(self, target: TextIO, progress: Callable[[int], None]) -> int:
        """Write the table; return the number of rows. `progress` is called with it so far."""
        return write_table(target, list(self.columns), self.rows(progress))

    def rows(self, progress: Callable[[int], None]) -> Iterator[dict[str, Any]]:
        """Yield the rows by column; `progress` is called with their number so far."""
        known = self.columns.keys()
        for count, row in enumerate(self._rows()):
            progress(count)
            if not known >= row.keys():
                raise BadConfiguration(
                    f"the feed was begun anew while it was exported (entry {row['entry']} has "
                    "columns it had not): export it again"
                )
            yield row

    def _rows(self, reads_input: bool = True) -> Iterator[dict[str, Any]]:
        """Yield the rows; without `reads_input`, their true labels are None."""
        self.trimmed = 0
        for page in self._store.pages(self._store.keys.out, b"0-0", self._last):
            messages = [answer(entry) for entry in page]
            truths = self._truths.of(page, messages) if reads_input else [Truth()] * len(page)
            for entry, message, truth in zip(page, messages, truths, strict=True):
                self.trimmed += not truth.is_kept
                yield _row(entry, message, truth.fields(self._features))


def _kind(value: Any) -> type:
    """Return the type of a value; text for an integer that no column of 64 bits holds."""
    is_long = isinstance(value, int) and not -(2**63) <= value < 2**63
    return str if is_long else type(value)


def write_table(target: TextIO, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> int:
    """Write a header and rows as CSV; return the number of rows."""
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(map(cell, columns))
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007  (the number of rows is returned)
        writer.writerow([cell(row.get(name)) for name in columns])
    return count


def cell(value: Any) -> Any:
    r"""Return the content of a cell: a number unchanged, text safe against CSV injection.

    Text that begins like a formula and is not a number gets a leading apostrophe, as OWASP advises.
    Unprintable characters are escaped, so that each row is one line.

    Examples
    --------
    >>> [cell(value) for value in (-0.5, "-1", "+1", None, True, "spam")]
    [-0.5, '-1', '+1', None, 1, 'spam']
    >>> print(cell("=HYPERLINK(1)"), cell("-1+1"), cell("\t=1"), cell("a\nb"))
    '=HYPERLINK(1) '-1+1 '\t=1 a\nb
    """
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str):
        return value if value is None or isinstance(value, int | float) else cell(str(value))
    is_formula = value.startswith(_FORMULA) and not _NUMBER.fullmatch(value)
    return f"'{printable(value)}" if is_formula else printable(value)


def _row(entry: Entry, message: dict[str, Any], truth: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"entry": entry[0].decode()} | flat(message | truth)
    except (TypeError, ValueError, AttributeError):
        raise no_answer(entry) from None


def flat(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message as a flat row: lists become one column for each class.

    Examples
    --------
    >>> flat({"seq": 0, "classes": ["a", "b"], "probabilities": [0.25, 0.75], "maps": {}})
    {'seq': 0, 'probability a': 0.25, 'probability b': 0.75}
    >>> flat({"classes": ["a"], "venn": [[0.25, 0.75]]})
    {'venn lower a': 0.25, 'venn upper a': 0.75}
    """
    classes = ["(unseen)" if name is None else name for name in message.pop("classes", [])]
    row: dict[str, Any] = {}
    for name, value in message.items():
        if name == "probabilities":
            row |= _spread("probability", classes, value)
        elif name in _PAIRS:
            row |= _spread_pairs(_PAIRS[name], classes, value)
        elif name == "maps":
            for method, values in value.items():
                row |= _spread(method, classes, values)
        elif name == "map_intervals":
            for method, values in value.items():
                row |= _spread_pairs(f"{method} ", classes, values)
        elif name == "scores":
            row |= _spread("score", classes[-1:] if len(value) == 1 else classes, value)
        elif name == "features":  # by name, or by index from 0
            pairs = value.items() if isinstance(value, dict) else enumerate(value or ())
            row |= {f"feature {key}": sent for key, sent in pairs}
        else:
            row[name] = value
    return row


def _spread(prefix: str, classes: list[str], values: list[float]) -> dict[str, float]:
    return {f"{prefix} {name}": value for name, value in zip(classes, values, strict=False)}


def _spread_pairs(prefix: str, classes: list[str], values: list[list[float]]) -> dict[str, float]:
    return {
        **_spread(f"{prefix}lower", classes, [lower for lower, _ in values]),
        **_spread(f"{prefix}upper", classes, [upper for _, upper in values]),
    }


def write_parquet(target: BinaryIO, table: AnswerTable, progress: Callable[[int], None]) -> int:
    """Write a table of answers; return the number of rows.

    A column is of integers, numbers, booleans or text, as all of its values are. Raises
    BadConfiguration if pyarrow is not installed.
    """
    pa = _arrow()
    schema = pa.schema([(name, _type(pa, kinds)) for name, kinds in table.columns.items()])
    count = 0
    with pa.parquet.ParquetWriter(target, schema, compression="zstd") as sink:
        for rows in _groups(table.rows(progress)):
            texts = [name for name in table.columns if schema.field(name).type == pa.string()]
            for row in rows:
                for name in texts:
                    value = row.get(name)
                    row[name] = None if value is None else str(value)
            sink.write_table(pa.Table.from_pylist(rows, schema=schema))
            count += len(rows)
    return count


def _arrow() -> "ModuleType":
    # Its own memory pools do not return memory. The variable is read at the import.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise BadConfiguration(
            "Parquet files need pyarrow: pip install 'online-svm[archive]'"
        ) from None
    found: Any = pyarrow
    return found  # type: ignore[no-any-return]  # it ships no type information


def _type(pa: Any, kinds: set[type]) -> Any:
    """Return the Arrow type of a column whose values have these types."""
    known = kinds - {type(None)}
    if known == {bool}:
        return pa.bool_()
    if known == {int}:
        return pa.int64()
    return pa.float64() if known and known <= {int, float} else pa.string()


def _groups(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    iterator = iter(rows)
    while group := list(islice(iterator, _GROUP_ROWS)):
        yield group
