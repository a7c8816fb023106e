"""Measure the parts that are not kept yet, and hold what was measured against its bounds."""

from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Annotated

import typer

from scripts.bench.feed import FEATURES
from scripts.bench.feeds import by_number
from scripts.bench.feeds.measure import PARTS, Figures
from scripts.bench.feeds.process import Sizes
from scripts.bench.kept import KeptLines, Key, ResultsFile
from scripts.bench.report import Result, Values, check
from scripts.command_line import chosen
from workers.config.settings import WorkerSettings

MOST_FEEDS = 10_000
GRACE: float = WorkerSettings.model_fields["grace"].default
"""Seconds in which a process that is asked to stop has ended."""


def run(
    parts: Annotated[
        str | None,
        typer.Option(metavar="NAME,...", help="Only these: idle, learning, busy, sizes."),
    ] = None,
    idle: Annotated[int, typer.Option(min=3, max=MOST_FEEDS, help="Feeds at rest.")] = 1000,
    learning: Annotated[int, typer.Option(min=3, max=MOST_FEEDS, help="Feeds that learn.")] = 50,
    busy: Annotated[
        int, typer.Option(min=2, max=MOST_FEEDS, help="Feeds with a steady rate.")
    ] = 200,
    rate: Annotated[float, typer.Option(min=0.1, help="Examples a second of each.")] = 5.0,
    seconds: Annotated[
        float, typer.Option(min=1, help="Of load; twice as many on one feed alone.")
    ] = 60.0,
    results: ResultsFile = Path("feeds.jsonl"),
) -> Iterator[Result]:
    """Measure memory, processor time, latency and starts of a process of many feeds.

    Feeds have a window of 2,000 examples with 20 features, and are copies of one that was filled.
    idle: memory of a feed at rest, the processor time of all of them, and the time from the command
    until each has answered, after a graceful stop and after a kill, and that of a graceful stop.
    learning: memory of a feed that learns. busy: how long answers take, and the processor time of
    an example, beside one feed alone at the rate of each, and at that of all. sizes: for
    1, 4, 16, 200 and 1,000 feeds the rate in full load, what limits it, latency at 100 examples a
    second over all feeds, memory. The makers of the load run on the same machine.
    """
    sizes = Sizes(
        idle=idle, learning=learning, busy=busy, rate=rate, short=seconds, long=2 * seconds
    )
    return measured(sizes, results, chosen("--parts", parts, ",", tuple(PARTS)))


def measured(
    sizes: Sizes, results: Path, parts: tuple[str, ...] = tuple(PARTS)
) -> Iterator[Result]:
    """Yield what each part measures; what the file keeps is not measured again."""
    kept = KeptLines[Figures](results, Figures)
    for name in parts:
        key = key_of(name, sizes)
        figures = kept.get(key)
        if figures is None:
            figures = PARTS[name](sizes)
            kept.add(key, figures)
        yield result(name, sizes, figures)


def key_of(part: str, sizes: Sizes) -> Key:
    """Return the key under which a part is kept."""
    parts = (value if isinstance(value, tuple) else (value,) for value in astuple(sizes))
    return {
        "part": part,
        "sizes": "/".join("+".join(f"{number:g}" for number in one) for one in parts),
    }


def result(part: str, sizes: Sizes, found: Figures) -> Result:
    """Return the figures of a part, whose units are in their names, and those that have bounds."""
    values: Values = {"part": part, "figures": found}
    if part == "sizes":
        limits = {
            str(count): by_number.limit(by_number.of_count(found, count)) for count in sizes.counts
        }
        return Result(values | {"limits": limits}, list(by_number.table(found, sizes.counts)))
    lines = [f"{f'{part}: {name}':<42}{value:>17,.2f}" for name, value in found.items()]
    return Result(values, lines, [check(*one) for one in _bounds(part, sizes, found)])


def _bounds(part: str, sizes: Sizes, found: Figures) -> list[tuple[str, float, float]]:
    if part == "idle":
        # The bounds are of 1,000 feeds; those of fewer are in proportion.
        share = sizes.idle / 1000
        return [
            ("MB of an idle feed", found["mb_a_feed"], 3.0),
            (f"% of a core, {sizes.idle:,} idle feeds", 100.0 * found["share"], 2.0 * share),
            (f"s to start {sizes.idle:,} after a stop", found["start_stopped_s"], 10.0 * share),
            (f"s to stop {sizes.idle:,}", found["stop_s"], GRACE),
        ]
    if part == "learning":
        window = 8 * FEATURES * sizes.window / 1e6
        return [("MB of a feed that learns", found["mb_a_feed"], 5.0 + window)]
    late = found["p99_ms_many"] / found["p99_ms_alone"]
    cost = found["processor_us_many"] / found["processor_us_alone_fast"]
    return [
        (f"p99 of {sizes.busy} feeds / one feed alone", late, 2.0),
        ("processor time an example / alone", cost, 1.25),
    ]
