"""Measure the cells that are not kept yet, and tell of all of them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import override

from scripts.bench.kept_lines import KeptLines, Key
from scripts.bench.measured_cells import measured_cells
from scripts.bench.policies.answered import program
from scripts.bench.policies.measure import Cell, Measured, measure
from scripts.bench.report import Result, Tell, silent

_NAMES = ("stream", "draw", "method", "examples", "program")


@dataclass(frozen=True, slots=True)
class Line(Result):
    """What a method reached on a stream, over its draws, or why it was not run."""

    stream: str
    method: str
    draws: list[Measured]
    skipped: str | None = None

    def mean(self, figure: str) -> tuple[float | None, float | None]:
        """Return the mean of a figure over the draws and its standard error, where it has one."""
        values = [getattr(one, figure) for one in self.draws]
        if None in values or not values:
            return None, None
        n = len(values)
        error = float(np.std(values, ddof=1) / math.sqrt(n)) if n > 1 else None
        return float(np.mean(values)), error

    @override
    def plain(self) -> dict[str, Any]:
        what = {"stream": self.stream, "method": self.method}
        if self.skipped is not None:
            return what | {"skipped": self.skipped}
        figures: dict[str, Any] = {"draws": len(self.draws)}
        for name in ("log_loss", "log_loss_after", "log_loss_answered", "warming"):
            figures[name], figures[f"{name}_error"] = self.mean(name)
        return what | figures | {"acted": [one.acted for one in self.draws]}

    def __str__(self) -> str:
        begin = f"{self.stream:<16}{self.method:<11}"
        if self.skipped is not None:
            return f"{begin}not run: {self.skipped}"
        warming, _ = self.mean("warming")
        acted = np.mean([len(one.acted) for one in self.draws])
        return (
            f"{begin}log loss {self._shown('log_loss'):<15}  after the change "
            f"{self._shown('log_loss_after'):<15}  warming {warming:>7,.1f}  acted {acted:.1f}"
        )

    def _shown(self, figure: str) -> str:
        mean, error = self.mean(figure)
        if mean is None:
            return "-"
        return f"{mean:.4f}" if error is None else f"{mean:.4f} ± {error:.4f}"


def run(cells: Sequence[Cell], results: Path, jobs: int = 1, tell: Tell = silent) -> Iterator[Line]:
    """Yield a line for each stream and method; what is measured is kept in a file of JSON lines.

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
    kept = KeptLines(results, _NAMES, asdict, lambda values: Measured(**values))
    found = measured_cells(cells, measure, kept, _key, jobs, tell)
    streams = list(dict.fromkeys(cell.stream for cell in cells))
    draws: dict[tuple[str, str], list[Measured | str]] = {}
    for cell in sorted(cells, key=lambda cell: streams.index(cell.stream)):
        draws.setdefault((cell.stream, cell.method), []).append(found[cell])
    for (stream, method), whole in draws.items():
        measured = [one for one in whole if isinstance(one, Measured)]
        skipped = [one for one in whole if isinstance(one, str)]
        yield Line(stream, method, measured, skipped[-1] if skipped else None)


def _key(cell: Cell) -> Key:
    return (cell.stream, cell.draw, cell.method, cell.examples, program(cell.method))
