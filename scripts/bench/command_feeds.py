"""`bench feeds`: what many feeds in one process cost."""

from pathlib import Path
from typing import Annotated

import typer

from scripts.command_line import chosen, stage_progress
from workers.cli.common import Json, show, show_json


def feeds(
    parts: Annotated[
        str | None,
        typer.Option(
            "--parts", metavar="NAME,...", help="Only these: idle, learning, busy, new, sizes."
        ),
    ] = None,
    idle: Annotated[int, typer.Option(min=3, max=10_000, help="Feeds at rest.")] = 1000,
    learning: Annotated[int, typer.Option(min=3, max=10_000, help="Feeds that learn.")] = 50,
    busy: Annotated[int, typer.Option(min=2, max=10_000, help="Feeds with a steady rate.")] = 200,
    new: Annotated[int, typer.Option(min=1, max=5_000, help="New feeds, beside as many.")] = 20,
    rate: Annotated[float, typer.Option(min=0.1, help="Examples a second of each.")] = 5.0,
    seconds: Annotated[
        float, typer.Option(min=1, max=3600, help="Of load; twice as many on one feed alone.")
    ] = 60.0,
    results: Annotated[
        Path,
        typer.Option(
            "--results",
            metavar="FILE",
            help="Keeps each part as it ends; the same command goes on from it.",
        ),
    ] = Path("feeds.jsonl"),
    json: Json = False,
) -> None:
    """Measure memory, processor time, latency and starts of a process of many feeds.

    Feeds have a window of 2,000 examples with 20 features, and are copies of one that was filled.
    idle: memory of a feed at rest, the processor time of all of them, and the time from the command
    until each has answered, after a graceful stop and after a kill, and that of a graceful stop.
    learning: memory of a feed that learns. busy: how long answers take, and the processor time of
    an example, beside one feed alone at the rate of each, and at that of all. new: how long answers
    of feeds take beside as many new ones, four times as fast, whose refits take effect at once.
    sizes: for 1, 4, 16, 200 and 1,000 feeds the rate in full load, what limits it, latency at 100
    examples a second over all feeds, memory. The makers of the load run on the same machine.
    """
    from scripts.bench.feeds.harness import Sizes
    from scripts.bench.feeds.measure import PARTS
    from scripts.bench.feeds.run import run

    names = chosen("--parts", parts, ",", tuple(PARTS))
    sizes = Sizes(
        idle=idle,
        learning=learning,
        busy=busy,
        new=new,
        rate=rate,
        short=seconds,
        long=2 * seconds,
    )
    with stage_progress() as tell:
        for part in run(sizes, results, names, tell):
            if json:
                show_json(part.plain())
            else:
                for line in (*part.lines(), *map(str, part.checks)):
                    show(line)
