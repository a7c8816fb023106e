"""Write answers as a Parquet table; pyarrow, an extra, is imported only here."""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

from workers.errors import BadConfiguration
from workers.offline.answer_table import AnswerTable

if TYPE_CHECKING:
    from types import ModuleType

_GROUP_ROWS = 8192  # rows of a row group, which are in memory at a time


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
