"""Measure the cells that are not kept yet, and tell of all of them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from typing_extensions import override

from scripts.bench.kept import KeptLines, Key, measured_cells
from scripts.bench.monitors.measure import Cell, Figures, Measured, Watched, measure, program
from scripts.bench.report import Result, Tell, silent

_NAMES = ("world", "detector", "streams", "program")


@dataclass(frozen=True, slots=True)
class Line(Result):
    """What a detector did on a kind of stream, or why it was not run."""

    cell: Cell
    measured: Figures | str

    @override
    def plain(self) -> dict[str, Any]:
        what = {"world": self.cell.world, "detector": self.cell.detector}
        if isinstance(self.measured, str):
            return what | {"skipped": self.measured}
        return what | asdict(self.measured) | {"found_share_error": self.error}

    @property
    def error(self) -> float | None:
        """Standard error of the share found, where there is one."""
        found = self.measured
        if not isinstance(found, Measured) or found.found_share is None:
            return None
        return math.sqrt(found.found_share * (1.0 - found.found_share) / found.streams)

    def __str__(self) -> str:
        begin = f"{self.cell.world:<34}{self.cell.detector:<36}"
        found = self.measured
        if isinstance(found, str):
            return f"{begin}not run: {found}"
        if isinstance(found, Watched):
            first, delay = _count(found.first), _count(found.delay)
            return f"{begin}alarms {found.alarms:>4}  first after {first:>6}  delay {delay:>6}"
        false = f"false {found.false_share:6.1%} of {found.streams}"
        if found.found_share is None:
            return f"{begin}{false}"
        share, delay = f"{found.found_share:6.1%} ± {self.error:.1%}", _count(found.delay)
        return f"{begin}found {share}  median delay {delay:>6}  {false}"


def _figures(values: dict[str, Any]) -> Figures:
    return Watched(**values) if "alarms" in values else Measured(**values)


def _count(number: float | None) -> str:
    return "-" if number is None else f"{number:,.0f}"


def run(cells: Sequence[Cell], results: Path, jobs: int = 1, tell: Tell = silent) -> Iterator[Line]:
    """Yield a line for each cell, in order; what is measured is kept in a file of JSON lines.

    Parameters
    ----------
    cells : sequence of Cell
    results : Path
        The same command goes on from it. A last line that was cut off is removed.
    jobs : int
        Processes, at most.
    tell : callable
        Is told which cell has ended.

    Raises
    ------
    BadConfiguration
        If the file cannot be read, or a line of it is none of this benchmark.
    """
    kept = KeptLines(results, _NAMES, asdict, _figures)
    for cell, found in measured_cells(cells, measure, kept, _key, jobs, tell).items():
        yield Line(cell, found)


def _key(cell: Cell) -> Key:
    return (cell.world, cell.detector, cell.streams, program(cell))
