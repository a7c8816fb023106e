"""The benchmarks, a command each; every one takes `--json`.

A benchmark is a module of this folder whose `run` yields results (`report.Result`), and a command
here, which says what it takes. What only one of them needs is imported when it runs.
"""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from scripts.bench.report import BenchResult
from scripts.command_line import chosen, stage_progress
from scripts.tables import wide_console
from workers.cli.common import DataDir, Json, Redis, note, redis_url, show_json
from workers.errors import BadConfiguration

MOST_FEEDS = 10_000

app = typer.Typer(
    help="Benchmarks; each prints ratios against a peer measured in the same run.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Paired(StrEnum):
    """The benchmarks that `pairs` runs, as the command line spells them."""

    WORKER = "worker"
    PROFILE = "profile"
    SOLVER = "solver"


# More than a batch: one that ends the warm-up and the run at once would be waited for for ever.
Measured = Annotated[int, typer.Option("--examples", min=300, help="Examples that are measured.")]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Processes, at most.")]
ResultsFile = Annotated[
    Path,
    typer.Option(
        "--results",
        metavar="FILE",
        help="Keeps each part as it ends; the same command goes on from it.",
    ),
]
Names = Annotated[str | None, typer.Option(metavar="NAME,...", help="Only these.")]
NamesWithCommas = Annotated[
    str | None, typer.Option(metavar="NAME;...", help="Only these; ; stands between.")
]


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def pairs(
    context: typer.Context,
    bench: Annotated[Paired, typer.Argument(help="What is run.", show_default=False)],
    against: Annotated[
        Path,
        typer.Option(metavar="DIR", help="The other checkout, with its own .venv."),
    ],
    runs: Annotated[int, typer.Option(min=2, help="Pairs of runs.")] = 12,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keeps each run as it ends; the same command goes on from it. "
            "Default pairs-BENCH.jsonl.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compare this checkout with another: each runs a benchmark in turn, pair by pair.

    For each figure the speed of this one in parts of the other's, with its 95 % interval over the
    pairs. Peers are the same programs in both, so theirs say how much the machine wavers. Further
    options are passed on to both benchmarks.
    """
    from scripts.bench.pairs import PairedBench, run

    asked = PairedBench(bench.value, against, tuple(context.args))
    with stage_progress() as tell:
        _show(run(asked, runs, results or Path(f"pairs-{bench.value}.jsonl"), tell), json)


@app.command()
def worker(examples: Measured = 20_000, json: Json = False) -> None:
    """Measure examples a second through Redis against what bounds them, and river in process.

    The engine with rare refits and the default configuration, against a null worker, the reads and
    commits alone, the refits alone, and two of river's classifiers without Redis.
    """
    from scripts.bench.worker import run

    with stage_progress() as tell:
        _show(run(examples, tell), json)


@app.command()
def profile(examples: Measured = 20_000, json: Json = False) -> None:
    """Measure where a microsecond goes: read, parse, score, learn, encode, commit, refit."""
    from scripts.bench.profile import run

    with stage_progress() as tell:
        _show(run(examples, tell), json)


@app.command()
def solver(
    examples: Annotated[
        int | None, typer.Option(min=100, help="Of Car; default all 1,728.")
    ] = None,
    json: Json = False,
) -> None:
    """Measure the exact protocol on Car against refitting scikit-learn's SVC at each step."""
    from scripts.bench.solver import run

    with stage_progress() as tell:
        _show(run(n=examples, tell=tell), json)


@app.command()
def latency(
    examples: Annotated[int, typer.Option(min=100, help="Answered by each worker.")] = 20_000,
    json: Json = False,
) -> None:
    """Measure one example at a time against a null worker; and the same while refits run."""
    from scripts.bench.latency import run

    with stage_progress() as tell:
        _show([run(examples, tell)], json)


@app.command()
def start(json: Json = False) -> None:
    """Measure from the command to the first answer on a window of 5,000 against bare imports."""
    from scripts.bench.start import run

    with stage_progress() as tell:
        _show([run(tell)], json)


@app.command()
def soak(
    entries: Annotated[int, typer.Option(min=10_000, help="Examples to feed.")] = 2_000_000,
    json: Json = False,
) -> None:
    """Feed millions of drifting examples: memory, keys and rate must stay level (else exit 1)."""
    from scripts.bench.soak import run

    found = run(entries)
    _show([found], json)
    if not found.holds:
        raise typer.Exit(1)


@app.command()
def scorers(
    requests: Annotated[int, typer.Option(min=1000, help="Requests that are measured.")] = 20_000,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each.")] = 3,
    json: Json = False,
) -> None:
    """Measure one, two and four scorers beside a worker that only moves messages."""
    from scripts.bench.scorers import run

    with stage_progress() as tell:
        _show(run(requests, tell, repeats=repeats), json)


@app.command()
def feeds(
    parts: Annotated[
        str | None,
        typer.Option(metavar="NAME,...", help="Only these: idle, learning, busy, new, sizes."),
    ] = None,
    idle: Annotated[int, typer.Option(min=3, max=MOST_FEEDS, help="Feeds at rest.")] = 1000,
    learning: Annotated[int, typer.Option(min=3, max=MOST_FEEDS, help="Feeds that learn.")] = 50,
    busy: Annotated[
        int, typer.Option(min=2, max=MOST_FEEDS, help="Feeds with a steady rate.")
    ] = 200,
    new: Annotated[int, typer.Option(min=1, max=5_000, help="New feeds, beside as many.")] = 20,
    rate: Annotated[float, typer.Option(min=0.1, help="Examples a second of each.")] = 5.0,
    seconds: Annotated[
        float, typer.Option(min=1, help="Of load; twice as many on one feed alone.")
    ] = 60.0,
    results: ResultsFile = Path("feeds.jsonl"),
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
        idle=idle, learning=learning, busy=busy, new=new, rate=rate, short=seconds, long=2 * seconds
    )
    with stage_progress() as tell:
        _show(run(sizes, results, names, tell), json)


@app.command()
def nodes(
    redis: Redis = None,
    feeds: Annotated[str, typer.Option(metavar="N,...", help="Numbers of feeds.")] = "200,1000",
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="Of rest, of each.")] = 30.0,
    json: Json = False,
) -> None:
    """Measure what feeds at rest cost in one process on a Redis Cluster.

    --redis names a cluster that does nothing else. Feeds of the name bench-nodes-... are made in it
    and deleted at the end. Told are the processor time of the process and of all nodes, the
    connections, and how long an example to a feed at rest waits for its answer.
    """
    from scripts.bench.feeds.nodes import run

    counts = [int(count) for count in feeds.split(",") if count.strip().isdigit()]
    if len(counts) != feeds.count(",") + 1 or min(counts) < 1 or max(counts) > MOST_FEEDS:
        raise BadConfiguration(
            f"--feeds {feeds!r}: write numbers from 1 to {MOST_FEEDS:,}, as 200,1000"
        )
    with stage_progress() as tell:
        _show(run(redis_url(redis), counts, seconds, tell), json)


@app.command()
def quality(
    streams: Names = None,
    rows: NamesWithCommas = None,
    shuffles: Annotated[
        int, typer.Option(min=1, help="Shuffles, or draws, of a stream without an order.")
    ] = 10,
    examples: Annotated[
        int | None,
        typer.Option(min=500, help="Of each stream, at most; default all it uses."),
    ] = None,
    held_out: Annotated[
        bool,
        typer.Option(
            "--held-out", help="The streams on which nothing was chosen as well: look once."
        ),
    ] = False,
    jobs: Jobs = 1,
    results: ResultsFile = Path("quality.jsonl"),
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Measure the probabilities against rolling models of scikit-learn and models of river.

    Each example is answered before it is learned: log loss, Brier score, accuracy, AUC, debiased
    calibration error, coverage (what right intervals would reach) and width of the intervals, and
    processor time. The venn-abers package comes with the dev extra.
    """
    from scripts.bench.quality.report import GROUPS, means, tables
    from scripts.bench.quality.rows import METHODS
    from scripts.bench.quality.run import cells_of, run
    from scripts.bench.quality.streams import DEVELOPMENT, STREAMS

    names = chosen("--streams", streams, ",", tuple(STREAMS if held_out else DEVELOPMENT))
    methods = chosen("--rows", rows, ";", tuple(METHODS))
    cells = cells_of(names, methods, shuffles, examples, data_dir)
    found, skipped = run(cells, results, jobs, note)
    if json:
        _show([*found, *(mean for group in GROUPS for mean in means(found, group))], json)
    else:
        for table in tables(found):
            wide_console().print(table)
    for line in skipped:
        note(f"not measured: {line}")


@app.command()
def monitors(
    streams: Annotated[int, typer.Option(min=2, help="Streams of each kind.")] = 200,
    worlds: NamesWithCommas = None,
    detectors: NamesWithCommas = None,
    jobs: Jobs = 1,
    results: ResultsFile = Path("monitors.jsonl"),
    json: Json = False,
) -> None:
    """Measure how soon a change is found, at the same mean run length without one.

    Simulated streams of 10,000 examples with a change after 5,000: the share found and the median
    delay, beside river's ADWIN, Page-Hinkley and DDM, and CUSUM. Each is made as sensitive as a
    mean of 10,000 examples to a false alarm allows. The default monitors have their own level, and
    stand on streams without a change as well, also where the default predictor answers, and where
    the labels of one class come sooner.

    And the first 10,000 examples of 2cdt, 2cht, moving-squares and Elec2, answered by the default
    predictor with one machine: how many alarms, the first, and the delay where the change is known.
    """
    from scripts.bench.monitors.detectors import DETECTORS
    from scripts.bench.monitors.run import STREAMS, cells_of, run

    names = chosen("--worlds", worlds, ";", STREAMS)
    cells = cells_of(names, chosen("--detectors", detectors, ";", tuple(DETECTORS)), streams)
    _show(run(cells, results, jobs, note), json)


@app.command()
def policies(
    streams: Names = None,
    rows: Names = None,
    draws: Annotated[int, typer.Option(min=1, help="Draws of a stream that is drawn.")] = 5,
    examples: Annotated[int, typer.Option(min=500, max=10_000, help="Of each stream.")] = 10_000,
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
    from scripts.bench.policies.run import METHODS, cells_of, run
    from scripts.bench.policies.streams import STREAMS

    names = chosen("--streams", streams, ",", STREAMS)
    methods = chosen("--rows", rows, ",", tuple(METHODS))
    _show(run(cells_of(names, methods, draws, examples, data_dir), results, jobs, note), json)


def _show(results: Iterable[BenchResult], json: bool) -> None:
    """Print each result as it comes."""
    for result in results:
        if json:
            show_json(result.plain())
        else:
            print(result, flush=True)
