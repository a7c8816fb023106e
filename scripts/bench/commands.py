"""`bench`: figures beside a peer, measured in the same run.

A benchmark is a module here whose `run` returns or yields results
(`report.Result`), and a function here, which says what it takes.
"""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from scripts.bench.command_feeds import feeds
from scripts.bench.command_fleet import fleet_model
from scripts.bench.command_monitors import monitors
from scripts.bench.command_nodes import nodes
from scripts.bench.command_policies import policies
from scripts.command_line import chosen, stage_progress
from workers.cli.common import DataDir, Json, note, show_json, wide_console

if TYPE_CHECKING:
    from scripts.bench.quality.run import Quality
    from scripts.bench.report import Checked, Result


class PairedBench(StrEnum):
    """The benchmarks that `bench pairs` runs, as the command line spells them."""

    WORKER = "worker"
    PROFILE = "profile"
    SOLVER = "solver"


Measured = Annotated[int, typer.Option("--examples", min=100, help="Examples that are measured.")]


def solver(
    examples: Annotated[
        int | None, typer.Option("--examples", min=100, help="Of Car; default all 1,728.")
    ] = None,
    json: Json = False,
) -> None:
    """Measure the exact protocol on Car against refitting scikit-learn's SVC at each step."""
    from scripts.bench.solver import run

    with stage_progress() as tell:
        _show(run(n=examples, tell=tell), json)


def worker(
    examples: Measured = 20_000,
    payload: Annotated[
        Literal["full", "compact"],
        typer.Option(help="Form of the answers; `compact` is measured against `full` alone."),
    ] = "full",
    json: Json = False,
) -> None:
    """Measure examples a second through Redis against what bounds them, and river in process.

    The engine with rare refits and the default configuration, against a null worker, the reads and
    commits alone, the refits alone, and two of river's classifiers without Redis. With `--payload
    compact`: both, and the bytes of an answer in Redis, against themselves with full answers.
    """
    from scripts.bench import payloads
    from scripts.bench.worker import run

    with stage_progress() as tell:
        _show(payloads.run(examples, tell) if payload == "compact" else run(examples, tell), json)


def watching(
    examples: Measured = 20_000,
    pairs: Annotated[int, typer.Option("--pairs", min=2, help="Pairs of runs.")] = 12,
    json: Json = False,
) -> None:
    """Measure what monitors, the endpoint and the page cost a worker, in pairs of runs."""
    from scripts.bench.watching import run

    with stage_progress() as tell:
        _show(run(examples, pairs, tell), json)


def scorers(
    requests: Annotated[
        int, typer.Option("--requests", min=1000, help="Requests that are measured.")
    ] = 20_000,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Runs of each.")] = 3,
    json: Json = False,
) -> None:
    """Measure one, two and four scorers beside a worker that only moves messages."""
    from scripts.bench.scorers import run

    with stage_progress() as tell:
        _show(run(requests, tell, repeats=repeats), json)


def profile(examples: Measured = 20_000, json: Json = False) -> None:
    """Measure where a microsecond goes: read, parse, score, learn, encode, commit, refit."""
    from scripts.bench.profile import run

    with stage_progress() as tell:
        _show(run(examples, tell), json)


def methods(json: Json = False) -> None:
    """Measure the papers' methods against SVC fits, clarabel, their definition and venn-abers.

    clarabel and venn-abers come with the dev extra; without them their lines are left out, and it
    says so.
    """
    from scripts.bench.methods import run

    with stage_progress() as tell:
        _show(run(tell), json)


def venn(json: Json = False) -> None:
    """Measure a Venn-Abers answer on windows of 300, 850 and 2,000 against a batch fit for each."""
    from scripts.bench.venn_answer import run

    with stage_progress() as tell:
        _show(run(tell), json)


def theorem(
    draws: Annotated[
        int, typer.Option(min=100, metavar="N", help="Independent streams of each kind.")
    ] = 8_000,
    json: Json = False,
) -> None:
    """Test over independent streams that what is called exact is calibrated at each step.

    Every taxonomy; classes of 1, 5 and 50 %, and four classes; 5 to 200 examples learned; also
    among the answers with any given value. The largest |z| beside what noise gives; several
    minutes.
    """
    from scripts.bench.theorem import run

    with stage_progress() as tell:
        _show(run(tell, draws), json)


def coverage(
    draws: Annotated[
        int, typer.Option(min=1, metavar="N", help="Independent streams of each kind.")
    ] = 40,
    json: Json = False,
) -> None:
    """Measure how often each published interval holds what it is about, and how wide it is.

    The frequency in the bin of the score, and P(y | score), where both are known: i.i.d. examples,
    300 to 5,000 of them, classes of 2, 10 and 50 %, and four classes; several minutes.
    """
    from scripts.bench.coverage import run

    with stage_progress() as tell:
        _show(run(tell, draws), json)


def latency(
    examples: Annotated[int, typer.Option(min=100, help="Answered by each worker.")] = 20_000,
    json: Json = False,
) -> None:
    """Measure one example at a time against a null worker; and the same while refits run."""
    from scripts.bench.latency import run

    with stage_progress() as tell:
        _show([run(examples, tell)], json)


def soak(
    entries: Annotated[int, typer.Option(min=10_000, help="Examples to feed.")] = 2_000_000,
    curve: Annotated[
        Path | None,
        typer.Option(help="Draw memory and rate: a picture for .png, else a table."),
    ] = None,
    json: Json = False,
) -> None:
    """Feed millions of drifting examples: memory, keys and rate must stay level (else exit 1)."""
    from scripts.bench.soak import run

    found: Checked = run(entries, curve)
    _show([found], json)
    if not found.holds:
        raise typer.Exit(1)


def start(
    cold: Annotated[
        bool, typer.Option("--cold", help="Also start with an empty numba cache (a minute).")
    ] = False,
    json: Json = False,
) -> None:
    """Measure from the command to the first answer on a window of 5,000 against bare imports."""
    from scripts.bench.start import run

    with stage_progress() as tell:
        _show([run(cold, tell)], json)


def quality(
    streams: Annotated[
        str | None,
        typer.Option("--streams", metavar="NAME,...", help="Only these."),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option("--rows", metavar="NAME;...", help="Only these methods; ; stands between."),
    ] = None,
    shuffles: Annotated[
        int,
        typer.Option("--shuffles", min=1, help="Shuffles, or draws, of a stream without an order."),
    ] = 10,
    examples: Annotated[
        int | None,
        typer.Option("--examples", min=500, help="Of each stream, at most; default all it uses."),
    ] = None,
    held_out: Annotated[
        bool,
        typer.Option(
            "--held-out", help="The streams on which nothing was chosen as well: look once."
        ),
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Processes, at most.")] = 1,
    results: Annotated[
        Path,
        typer.Option(
            "--results",
            metavar="FILE",
            help="Keeps each cell as it ends; the same command goes on from it.",
        ),
    ] = Path("quality.jsonl"),
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure",
            metavar="FILE",
            help="Draw log loss against processor time: .png, .svg or .pdf.",
            show_default=False,
        ),
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Measure the probabilities against rolling models of scikit-learn and models of river.

    Each example is answered before it is learned: log loss, Brier score, accuracy, AUC, debiased
    calibration error, coverage (what right intervals would reach) and width of the intervals, and
    processor time. Goals come last. The venn-abers package comes with the dev extra.
    """
    from scripts.bench.quality.cells import cells_of
    from scripts.bench.quality.kept import KeptCells
    from scripts.bench.quality.rows import METHODS
    from scripts.bench.quality.run import run
    from scripts.bench.quality.streams import DEVELOPMENT, STREAMS

    names = chosen("--streams", streams, ",", tuple(STREAMS if held_out else DEVELOPMENT))
    methods = chosen("--rows", rows, ";", tuple(METHODS))
    cells = cells_of(names, methods, shuffles, examples, data_dir)
    kept = KeptCells(results)
    found, skipped = run(cells, kept, jobs, note)
    _show_qualities(found, json)
    for line in skipped:
        note(f"not measured: {line}")
    if figure is not None:
        from scripts.bench.quality.figure import draw

        draw(found, figure)


def pairs(
    context: typer.Context,
    bench: Annotated[PairedBench, typer.Argument(help="What is run.", show_default=False)],
    against: Annotated[
        Path,
        typer.Option(
            "--against",
            metavar="DIR",
            help="The other checkout, with its own .venv.",
            show_default=False,
        ),
    ],
    runs: Annotated[int, typer.Option("--runs", min=2, help="Pairs of runs.")] = 12,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results",
            metavar="FILE",
            help="Keeps each run as it ends; the same command goes on from it. "
            "Default pairs-BENCH.jsonl.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compare this checkout with another: each runs a benchmark in turn, pair by pair.

    For each figure the speed of this one in parts of the other's, with its 95 % interval over the
    pairs. Peers are the same programs in both, so theirs say how much the machine wavers. Further
    options are passed on to both benchmarks.
    """
    from scripts.bench.pairs import Comparison, run

    file = results or Path(f"pairs-{bench.value}.jsonl")
    asked = Comparison(bench.value, against, tuple(context.args))
    with stage_progress() as tell:
        _show(run(asked, runs, file, tell), json)


def _show(results: "Iterable[Result]", json: bool) -> None:
    """Print each result as it comes."""
    for result in results:
        if json:
            show_json(result.plain())
        else:
            print(result, flush=True)


def _show_qualities(found: "list[Quality]", json: bool) -> None:
    from scripts.bench.quality.goals import goals
    from scripts.bench.quality.report import GROUPS, means, tables

    if json:
        _show([*found, *(mean for group in GROUPS for mean in means(found, group))], json)
    for table in tables(found) if found and not json else ():
        wide_console().print(table)
    _show(goals(found), json)


app = typer.Typer(
    help="Benchmarks; each prints ratios against a peer measured in the same run.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (
    solver,
    worker,
    profile,
    methods,
    venn,
    theorem,
    coverage,
    quality,
    latency,
    soak,
    start,
    monitors,
    policies,
    watching,
    scorers,
    feeds,
    nodes,
    fleet_model,
):
    app.command(command.__name__.replace("_", "-"))(command)
passing_on = {"allow_extra_args": True, "ignore_unknown_options": True}
app.command("pairs", context_settings=passing_on)(pairs)
