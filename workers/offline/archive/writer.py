"""Write the parts of an archive, each atomically.

Rows are added to the last part of their day while it is small: the part is written with them under
another name, synced, and renamed over the old one. So a reader never sees a row twice or in part,
and a feed of few examples has one part a day.
"""

import os
import secrets
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from workers.broker import failpoints
from workers.errors import writing
from workers.feed.position import parse_id
from workers.offline.archive.layout import KINDS, day_of, part_name, parts, temporaries
from workers.offline.archive.parquet import arrow, last_row, opened
from workers.offline.archive.rows import schema

PART_ROWS = 50_000  # size in rows up to which rows are added to a part
PART_BYTES = 1 << 25  # likewise, in bytes in memory
GROUP_ROWS = 8192  # rows of a row group, about; the writer holds one group at a time
_ADVICE = (
    ". Nothing was acknowledged that is not on disk: make room, and run the same command again"
)


class ArchiveWriter:
    """Writes the parts of a feed; `last` has the ID of the last entry of each kind on disk."""

    def __init__(self, directory: Path) -> None:
        self._directory, self.pyarrow = directory, arrow()
        self._schemas = {kind: schema(kind, self.pyarrow) for kind in KINDS}
        with writing(directory, _ADVICE):
            for left in temporaries(directory):
                left.unlink()
        self.last = {kind: self._last(kind) for kind in KINDS}

    def add(self, tables: Mapping[str, Any]) -> None:
        """Write rows by kind, in the order of their entries; rows on disk are skipped.

        When it returns, all rows are synced to disk. Raises BadConfiguration if they cannot be
        written; the parts on disk stay valid.
        """
        new: dict[str, dict[str, Any]] = {}
        for kind, table in tables.items():
            for day, rows in self._days(kind, table):
                new.setdefault(day, {})[kind] = rows
        for day in sorted(new):  # day by day, so that answers are never ahead of their input
            for kind in KINDS:
                if kind in new[day]:
                    self._add(kind, day, new[day][kind])

    def replace(self, part: Path, table: Any) -> None:
        """Replace a part by a table; delete it if the table has no rows."""
        with writing(part, _ADVICE):
            if table.num_rows:
                self._write(part, table.to_batches(), table.schema)
            else:
                part.unlink()
                _sync(part.parent)

    def _days(self, kind: str, table: Any) -> Iterator[tuple[str, Any]]:
        entries = [text.encode() for text in table.column("entry").to_pylist()]
        begin = bisect_right(entries, parse_id(self.last[kind]), key=parse_id)
        for day, ids in groupby(entries[begin:], key=day_of):
            count = len(list(ids))
            yield day, table.slice(begin, count)
            begin += count

    def _add(self, kind: str, day: str, table: Any) -> None:
        first, last = (table.column("entry")[index].as_py().encode() for index in (0, -1))
        part = self._small_part(kind, day, table)
        present: Iterator[Any] = iter(())
        if part is None:
            directory = self._directory / f"kind={kind}" / f"day={day}"
            part = directory / part_name(first)
            with writing(directory, _ADVICE):
                _make(directory)
        else:
            present = self._batches(part)
        with writing(part, _ADVICE):
            self._write(part, chain(present, table.to_batches()), table.schema)
        self.last[kind] = last

    def read(self, part: Path) -> Any:
        """Return a part as a table."""
        with opened(part, ("entry",)) as source:
            return source.read(use_threads=False)

    def _batches(self, part: Path) -> Iterator[Any]:
        with opened(part, ("entry",)) as source:
            yield from source.iter_batches(GROUP_ROWS, use_threads=False)

    def _small_part(self, kind: str, day: str, table: Any) -> Path | None:
        """Return the last part of a day if it has room for a table, and the present schema."""
        found = parts(self._directory, kind, day)
        if not found:
            return None
        with opened(found[-1], ("entry",)) as source:
            meta, columns = source.metadata, source.schema_arrow
        size = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
        has_room = meta.num_rows + table.num_rows <= PART_ROWS and size + table.nbytes <= PART_BYTES
        return found[-1] if has_room and columns.equals(self._schemas[kind]) else None

    def _write(self, part: Path, batches: Iterable[Any], schema: Any) -> None:
        """Write batches of rows as a part, with the rows of one group in memory."""
        pq = self.pyarrow.parquet
        partial = part.with_name(f".{part.name}.{secrets.token_hex(4)}.tmp")
        try:
            with partial.open("xb") as target:
                with pq.ParquetWriter(target, schema, compression="zstd") as sink:
                    for table in self._groups(batches):
                        sink.write_table(table)
                _reach("archive-written")
                target.flush()
                os.fsync(target.fileno())
            partial.replace(part)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        _reach("archive-renamed")
        _sync(part.parent)

    def _groups(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield tables of about `GROUP_ROWS` rows."""
        held: list[Any] = []
        for batch in batches:
            held.append(batch)
            if sum(each.num_rows for each in held) >= GROUP_ROWS:
                yield self.pyarrow.Table.from_batches(held)
                held = []
        if held:
            yield self.pyarrow.Table.from_batches(held)

    def _last(self, kind: str) -> bytes:
        found = parts(self._directory, kind)
        return str(last_row(found[-1], ["entry"])[0]).encode() if found else b"0-0"


def _reach(name: str) -> None:
    if failpoints.chosen is not None:
        failpoints.chosen.reach(name)


def _make(directory: Path) -> None:
    """Create a directory, and sync its parents, so that it survives a power failure."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for path in missing:
        _sync(path.parent)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
