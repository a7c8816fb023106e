"""Parts of an archive on disk: each is replaced as a whole, so a reader never sees half of one.

Rows are added to the last part of their day while it is small: it is written again with them, under
another name, synced, and renamed over the old one. So no row is ever there twice, or half, and a
feed of few examples has one part a day.
"""

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

from workers import failpoints
from workers.errors import BadConfiguration
from workers.feed.position import parse_id
from workers.history.archive.layout import KINDS, day_of, part_name, parts, temporaries
from workers.history.archive.parquet import arrow
from workers.history.archive.rows import Row, schema

PART_ROWS = 50_000
"""Rows beyond which no rows are added to a part."""

PART_BYTES = 1 << 25
"""Bytes of a part in memory, likewise; so this bounds what the writer holds."""


class ArchiveWriter:
    """The parts of one feed, written.

    Parameters
    ----------
    directory : Path
        Of the feed; it exists.

    Attributes
    ----------
    last : dict of str to bytes
        The last entry of each kind that is on disk; b"0-0" without any.
    pyarrow : module
    """

    def __init__(self, directory: Path) -> None:
        self._directory, self.pyarrow = directory, arrow()
        self._schemas = {kind: schema(kind, self.pyarrow) for kind in KINDS}
        for left in temporaries(directory):
            left.unlink()
        self.last = {kind: self._last(kind) for kind in KINDS}

    def add(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """Add rows of all kinds, in the order of their entries; those on disk already are left out.

        When it returns all are on disk, whatever happens next.

        Raises
        ------
        BadConfiguration
            If they cannot be written. What is on disk stays whole.
        """
        days = sorted({_day(row) for kind in KINDS for row in rows.get(kind, ())})
        for day in days:  # a whole day before the next: answers are never ahead of their input
            for kind in KINDS:
                of_day = [row for row in rows.get(kind, ()) if _day(row) == day]
                self._add(kind, [row for row in of_day if self._is_new(kind, row)])

    def replace(self, part: Path, table: Any) -> None:
        """Replace a part by a table, or drop it where that has no rows."""
        with _writing(part):
            if table.num_rows:
                self._write(part, table)
            else:
                part.unlink()
                _sync(part.parent)

    def _is_new(self, kind: str, row: Row) -> bool:
        return parse_id(row["entry"].encode()) > parse_id(self.last[kind])

    def _add(self, kind: str, rows: Sequence[Row]) -> None:
        for day, grouped in groupby(rows, key=_day):
            of_day = list(grouped)
            table = self.pyarrow.Table.from_pylist(of_day, schema=self._schemas[kind])
            part = self._small_part(kind, day, table)
            with _writing(self._directory):
                if part is None:
                    place = self._directory / f"kind={kind}" / f"day={day}"
                    _make(place)
                    part = place / part_name(of_day[0]["entry"].encode())
                else:
                    table = self.pyarrow.concat_tables([self.read(part), table])
                self._write(part, table)
            self.last[kind] = of_day[-1]["entry"].encode()

    def read(self, part: Path) -> Any:
        """Return a part as a table."""
        with part.open("rb") as source:
            return self.pyarrow.parquet.read_table(source)

    def _small_part(self, kind: str, day: str, table: Any) -> Path | None:
        """Return the last part of a day if there is room in it."""
        of_day = [part for part in parts(self._directory, kind) if part.parent.name == f"day={day}"]
        if not of_day:
            return None
        held = self.pyarrow.parquet.read_metadata(of_day[-1])
        size = sum(held.row_group(i).total_byte_size for i in range(held.num_row_groups))
        has_room = held.num_rows + table.num_rows <= PART_ROWS and size + table.nbytes <= PART_BYTES
        return of_day[-1] if has_room else None

    def _write(self, part: Path, table: Any) -> None:
        partial = part.with_name(f".{part.name}.{secrets.token_hex(4)}.tmp")
        try:
            with partial.open("xb") as target:
                self.pyarrow.parquet.write_table(table, target, compression="zstd")
                _reach("archive-written")
                target.flush()
                os.fsync(target.fileno())
            partial.replace(part)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        _reach("archive-renamed")
        _sync(part.parent)

    def _last(self, kind: str) -> bytes:
        """Return the last entry of a kind on disk."""
        found = parts(self._directory, kind)
        if not found:
            return b"0-0"
        ids = self.pyarrow.parquet.ParquetFile(found[-1]).read(columns=["entry"]).column("entry")
        return str(ids[-1].as_py()).encode()


def _day(row: Row) -> str:
    return day_of(row["entry"].encode())


def _reach(name: str) -> None:
    if failpoints.chosen is not None:
        failpoints.chosen.reach(name)


@contextmanager
def _writing(place: Path) -> Iterator[None]:
    """Report in one line why something cannot be written."""
    try:
        yield
    except OSError as error:
        raise BadConfiguration(
            f"{place}: cannot be written: {error.strerror or error}. Nothing was acknowledged that "
            "is not on disk: make room, and run the same command again"
        ) from None


def _make(directory: Path) -> None:
    """Make a directory that survives a power cut."""
    missing = [each for each in (directory, *directory.parents) if not each.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for each in missing:
        _sync(each.parent)


def _sync(directory: Path) -> None:
    """Make sure that the names in a directory are on disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
