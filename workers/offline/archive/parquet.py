"""Rows as tables of pyarrow, and functions to read parts.

pyarrow is imported only here: it is an optional extra, and its import takes a while.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.errors import BadConfiguration
from workers.offline.archive.layout import ENTRY_KINDS, KINDS, kind_of
from workers.offline.archive.rows import Row, schema

if TYPE_CHECKING:
    from types import ModuleType

MISSING = "archives are Parquet files, which need pyarrow: pip install 'online-svm[archive]'"


def arrow() -> "ModuleType":
    """Return `pyarrow` with its submodules loaded; BadConfiguration: it is not installed."""
    # Its own memory pools do not return memory: they take a fifth more and are no faster here. The
    # variable is read at the import.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise BadConfiguration(MISSING) from None
    found: Any = pyarrow
    return found  # type: ignore[no-any-return]  # it ships no type information


@contextmanager
def opened(part: Path, columns: Sequence[str]) -> Iterator[Any]:
    """Open a part to read some of its columns.

    Raises BadConfiguration if it lacks one of them, or if it cannot be read, also in the block.
    """
    pa = arrow()
    try:
        with part.open("rb") as raw, pa.parquet.ParquetFile(raw) as source:
            _check(part, columns, source, pa)
            yield source
    except (OSError, pa.ArrowException) as error:
        raise BadConfiguration(
            f"{part}: cannot be read: {error}. Restore that file from a copy of the archive"
        ) from None


def last_row(part: Path, columns: Sequence[str]) -> list[Any]:
    """Return the values of the last row of a part; BadConfiguration: it cannot be read."""
    with opened(part, columns) as source:
        group = source.read_row_group(source.num_row_groups - 1, columns=list(columns))
        return [group.column(name)[-1].as_py() for name in columns]


def _check(part: Path, columns: Sequence[str], source: Any, pa: Any) -> None:
    """Raise BadConfiguration if a file has not the columns of a part, or no rows."""
    expected, found = schema(kind_of(part), pa), source.schema_arrow
    wrong = [
        name
        for name in columns
        if name not in found.names or found.field(name).type != expected.field(name).type
    ]
    if wrong or not source.metadata.num_rows:
        fault = f"has no column {wrong[0]!r} as archives have it" if wrong else "has no rows"
        raise BadConfiguration(f"{part}: is no part of an archive: it {fault}. Move it away")


def without(table: Any, erased: Collection[bytes]) -> Any:
    """Return a table without the rows of erased entries."""
    if not erased:
        return table
    pa = arrow()
    ids = pa.array([at.decode() for at in erased], pa.string())
    is_erased = pa.compute.is_in(table.column("entry"), ids)
    return table.filter(pa.compute.invert(is_erased))


class HeldRows:
    """Rows that wait to be written, by kind, in the order of their entries, with their `bytes`.

    They are held as Arrow tables, because Python objects take several times the memory.
    """

    def __init__(self) -> None:
        self._pa = arrow()
        self._tables: dict[str, list[Any]] = {kind: [] for kind in KINDS}
        self.bytes = 0

    def add(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """Add rows by kind."""
        for kind, added in rows.items():
            if added:
                table = self._pa.Table.from_pylist(added, schema=schema(kind, self._pa))
                self._tables[kind].append(table)
                self.bytes += table.nbytes

    def count(self, kind: str) -> int:
        """Return the number of rows of a kind."""
        return sum(table.num_rows for table in self._tables[kind])

    def tables(self, erased: Collection[bytes]) -> dict[str, Any]:
        """Return the rows of each kind that has any, without those of erased entries."""
        found = {kind: self._pa.concat_tables(held) for kind, held in self._tables.items() if held}
        for kind in found.keys() & {*ENTRY_KINDS}:
            found[kind] = without(found[kind], erased)
        return found
