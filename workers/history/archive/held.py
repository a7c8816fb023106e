"""Rows that wait to be written, as columns: objects of Python take several times the memory."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from workers.history.archive.layout import KINDS, OF_ENTRIES
from workers.history.archive.parquet import arrow
from workers.history.archive.rows import Row, schema


class HeldRows:
    """Rows of all kinds, in the order of their entries.

    Attributes
    ----------
    bytes : int
        What they take.

    Examples
    --------
    >>> held = HeldRows()
    >>> held.add({"alarms": [{"entry": "5-0", "time": 5, "payload": "{}"}]})
    >>> held.count("alarms"), held.count("answers")
    (1, 0)
    """

    def __init__(self) -> None:
        self._pa = arrow()
        self._tables: dict[str, list[Any]] = {kind: [] for kind in KINDS}
        self.bytes = 0

    def add(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """Hold more rows."""
        for kind, of_kind in rows.items():
            if of_kind:
                table = self._pa.Table.from_pylist(of_kind, schema=schema(kind, self._pa))
                self._tables[kind].append(table)
                self.bytes += table.nbytes

    def count(self, kind: str) -> int:
        """Return the number of rows of a kind."""
        return sum(table.num_rows for table in self._tables[kind])

    def tables(self, erased: Collection[bytes]) -> dict[str, Any]:
        """Return the rows of each kind that has any, without those of erased entries."""
        found = {kind: self._pa.concat_tables(held) for kind, held in self._tables.items() if held}
        if erased:
            gone = self._pa.array([at.decode() for at in erased], self._pa.string())
            for kind in found.keys() & {*OF_ENTRIES}:
                is_gone = self._pa.compute.is_in(found[kind].column("entry"), gone)
                found[kind] = found[kind].filter(self._pa.compute.invert(is_gone))
        return found
