"""`bench monitors`: the monitors beside other detectors."""

from pathlib import Path
from typing import Annotated

import typer

from scripts.bench.command_cells import Jobs, ResultsFile, show_cells
from scripts.command_line import chosen
from workers.cli.common import Json


def monitors(
    streams: Annotated[
        int,
        typer.Option("--streams", min=2, help="Streams of each kind, for slow peers shorter."),
    ] = 200,
    worlds: Annotated[
        str | None,
        typer.Option("--worlds", metavar="NAME;...", help="Only these; ; stands between."),
    ] = None,
    detectors: Annotated[
        str | None, typer.Option("--detectors", metavar="NAME;...", help="Only these.")
    ] = None,
    jobs: Jobs = 1,
    results: ResultsFile = Path("monitors.jsonl"),
    json: Json = False,
) -> None:
    """Measure how soon a change is found, at the same mean run length without one.

    Simulated streams of 10,000 examples with a change after 5,000: the share found and the median
    delay, beside river's ADWIN, Page-Hinkley, KSWIN and DDM, CUSUM and Shiryaev-Roberts, and the
    packages mapie and online-cp where they are installed. Each is made as sensitive as a mean of
    10,000 examples to a false alarm allows. The default monitors have their own level, and stand
    on streams without a change as well, also where the default predictor answers, and where the
    labels of one class come sooner.

    And the first 10,000 examples of 2cdt, 2cht, moving-squares and Elec2, answered by the default
    predictor with one machine: how many alarms, the first, and the delay where the change is known.
    """
    from scripts.bench.monitors.measure import DETECTORS, STREAMS, cells_of
    from scripts.bench.monitors.run import run

    names = chosen("--worlds", worlds, ";", STREAMS)
    cells = cells_of(names, chosen("--detectors", detectors, ";", tuple(DETECTORS)), streams)
    show_cells(lambda tell: run(cells, results, jobs, tell), json)
