"""What the benchmarks share that keep each cell of their table as it ends."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.common import note, show_json

if TYPE_CHECKING:
    from scripts.bench.report import Result, Tell

Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Processes, at most.")]

ResultsFile = Annotated[
    Path,
    typer.Option(
        "--results",
        metavar="FILE",
        help="Keeps each cell as it ends; the same command goes on from it.",
    ),
]


def show_cells(run: "Callable[[Tell], Iterable[Result]]", json: bool) -> None:
    """Run a benchmark of cells with its progress, then print its lines."""
    for line in run(note):
        if json:
            show_json(line.plain())
        else:
            print(line)
