"""Measured cells in a file of JSON lines, so that a run that is cut off goes on.

A line is of one stream, shuffle, method and number of examples, and of the program that answered:
this library at its present sources, or the version of another one. So a change of ours leaves the
peers' lines as they are. A change of how the benchmark runs a peer is not seen: remove the file.
"""

import fcntl
from pathlib import Path
from typing import Any

import orjson

from workers.errors import BadConfiguration
from workers.lab.bench.quality.cells import Cell, Measured
from workers.lab.bench.quality.rows import program

Key = tuple[Any, ...]


class KeptCells:
    """The measured cells in a file.

    Parameters
    ----------
    path : Path
        Made if it is not there. A last line that was cut off is removed.

    Raises
    ------
    BadConfiguration
        If the file cannot be read, or a line is none of this benchmark.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cells: dict[Key, Measured] = {}
        try:
            whole = _whole_lines(path)
        except OSError as error:
            raise BadConfiguration(f"--results {path}: {error.strerror}") from None
        for number, line in enumerate(whole, start=1):
            self._read(number, line)

    def _read(self, number: int, line: bytes) -> None:
        try:
            values = orjson.loads(line)
            key = tuple(values[name] for name in ("stream", "shuffle", "method", "of", "program"))
            self._cells[key] = Measured.of_plain(values["measured"])
        except (ValueError, KeyError, TypeError):
            raise BadConfiguration(
                f"--results {self._path}, line {number}: no cell of this benchmark; choose another "
                "file, or delete the line"
            ) from None

    def get(self, cell: Cell) -> Measured | None:
        """Return what is kept of a cell; None if there is nothing."""
        return self._cells.get(_key(cell))

    def add(self, cell: Cell, measured: Measured) -> None:
        """Keep a cell: its line is written at once."""
        self._cells[_key(cell)] = measured
        names = ("stream", "shuffle", "method", "of", "program")
        line = dict(zip(names, _key(cell), strict=True)) | {"measured": measured.plain()}
        with self._path.open("ab") as target:
            fcntl.flock(target, fcntl.LOCK_EX)  # another run may write to the same file
            target.write(orjson.dumps(line) + b"\n")


def _whole_lines(path: Path) -> list[bytes]:
    """Return the lines of the file, without a last one that was cut off."""
    with path.open("a+b") as target:
        fcntl.flock(target, fcntl.LOCK_EX)  # what is cut off now is of a run that has ended
        target.seek(0)
        data = target.read()
        size = data.rfind(b"\n") + 1
        target.truncate(size)
    return data[:size].splitlines()


def _key(cell: Cell) -> Key:
    return (cell.stream, cell.shuffle, cell.method, cell.examples, program(cell.method))
