"""`bench policies`: what `on_drift` is worth."""

from pathlib import Path
from typing import Annotated

import typer

from scripts.bench.command_cells import Jobs, ResultsFile, show_cells
from scripts.command_line import chosen
from workers.cli.common import DataDir, Json


def policies(
    streams: Annotated[
        str | None, typer.Option("--streams", metavar="NAME,...", help="Only these.")
    ] = None,
    rows: Annotated[
        str | None, typer.Option("--rows", metavar="NAME,...", help="Only these methods.")
    ] = None,
    draws: Annotated[
        int, typer.Option("--draws", min=1, help="Draws of a stream that is drawn.")
    ] = 5,
    examples: Annotated[
        int, typer.Option("--examples", min=500, max=10_000, help="Of each stream.")
    ] = 10_000,
    jobs: Jobs = 1,
    results: ResultsFile = Path("policies.jsonl"),
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Measure the log loss of each `on_drift`, beside no monitors and river's ARF.

    Recorded streams, and drawn ones whose law changes in the middle: over the whole stream but for
    the first 250 examples, and over the 2,000 after the change. `warming` is how many answers had
    no model after a reset; they count as all classes alike. `acted` is on how many changes the
    policy acted.
    """
    from scripts.bench.policies.answered import METHODS
    from scripts.bench.policies.measure import cells_of
    from scripts.bench.policies.run import run
    from scripts.bench.policies.streams import STREAMS

    names = chosen("--streams", streams, ",", STREAMS)
    methods = chosen("--rows", rows, ",", tuple(METHODS))
    cells = cells_of(names, methods, draws, examples, data_dir)
    show_cells(lambda tell: run(cells, results, jobs, tell), json)
