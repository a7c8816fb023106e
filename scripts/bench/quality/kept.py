"""Measured cells in a file of JSON lines, so that a run that is cut off goes on.

A line is of one stream, shuffle, method and number of examples, and of the program that answered:
this library at its present sources, or the version of another one. So a change of ours leaves the
peers' lines as they are. A change of how the benchmark runs a peer is not seen: remove the file.
"""

from pathlib import Path

from scripts.bench.kept_lines import KeptLines, Key
from scripts.bench.quality.cells import Cell, Measured
from scripts.bench.quality.rows import program

_NAMES = ("stream", "shuffle", "method", "of", "program")


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
        self._lines = KeptLines(path, _NAMES, Measured.plain, Measured.of_plain)

    def get(self, cell: Cell) -> Measured | None:
        """Return what is kept of a cell; None if there is nothing."""
        return self._lines.get(_key(cell))

    def add(self, cell: Cell, measured: Measured) -> None:
        """Keep a cell: its line is written at once."""
        self._lines.add(_key(cell), measured)


def _key(cell: Cell) -> Key:
    return (cell.stream, cell.shuffle, cell.method, cell.examples, program(cell.method))
