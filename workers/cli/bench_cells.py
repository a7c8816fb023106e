"""What the benchmarks share that keep each cell of their table as it ends."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.common import show_json
from workers.cli.progress import task_progress

if TYPE_CHECKING:
    from workers.lab.bench.report import Result, Tell

Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Processes, at most.")]

ResultsFile = Annotated[
    Path,
    typer.Option(
        "--results",
        metavar="FILE",
        help="Keeps each cell as it ends; the same command goes on from it.",
    ),
]


def show_cells(count: int, run: "Callable[[Tell], Iterable[Result]]", json: bool) -> None:
    """Run a benchmark of `count` cells with its progress, then print its lines."""
    with task_progress(count) as tell:
        lines = list(run(tell))
    for line in lines:
        if json:
            show_json(line.plain())
        else:
            print(line)
