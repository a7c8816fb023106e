"""`bench`: figures beside a peer, measured in the same run.

A benchmark is a module of `workers.lab.bench` whose `run` returns or yields results
(`report.Result`), and a function here, which says what it takes.
"""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workers.cli.common import DataDir, Json, note, show_json, wide_console
from workers.cli.progress import stage_progress, task_progress
from workers.errors import BadConfiguration

if TYPE_CHECKING:
    from workers.lab.bench.quality import Quality
    from workers.lab.bench.report import Checked, Result


class FeatureMapName(StrEnum):
    """The feature maps, as the command line spells them."""

    NYSTROEM = "nystroem"
    FOURIER = "fourier"


class PairedBench(StrEnum):
    """The benchmarks that `bench pairs` runs, as the command line spells them."""

    WORKER = "worker"
    PROFILE = "profile"
    SOLVER = "solver"


Measured = Annotated[int, typer.Option("--examples", min=100, help="Examples that are measured.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    group = typer.Typer(
        help="Benchmarks; each prints ratios against a peer measured in the same run.",
        no_args_is_help=True,
    )
    for command in (solver, worker, profile, methods, venn, quality, linear, latency, soak, start):
        group.command(command.__name__)(command)
    passing_on = {"allow_extra_args": True, "ignore_unknown_options": True}
    group.command("pairs", context_settings=passing_on)(pairs)
    app.add_typer(group, name="bench")


def solver(
    examples: Annotated[
        int | None, typer.Option("--examples", min=100, help="Of Car; default all 1,728.")
    ] = None,
    json: Json = False,
) -> None:
    """Measure the exact protocol on Car against refitting scikit-learn's SVC at each step."""
    from workers.lab.bench.solver import run

    with stage_progress() as tell:
        _show(run(n=examples, tell=tell), json)


def worker(examples: Measured = 20_000, json: Json = False) -> None:
    """Measure examples a second through Redis against what bounds them, and river in process.

    The engine with rare refits and the default configuration, against a null worker, the reads and
    commits alone, the refits alone, and two of river's classifiers without Redis.
    """
    from workers.lab.bench.worker import run

    with stage_progress() as tell:
        _show(run(examples, tell), json)


def profile(examples: Measured = 20_000, json: Json = False) -> None:
    """Measure where a microsecond goes: read, parse, score, learn, encode, commit, refit."""
    from workers.lab.bench.profile import run

    with stage_progress() as tell:
        _show(run(examples, tell), json)


def methods(json: Json = False) -> None:
    """Measure the papers' methods against SVC fits, clarabel, their definition and venn-abers.

    clarabel and venn-abers come with the dev extra; without them their lines are left out, and it
    says so.
    """
    from workers.lab.bench.methods import run

    with stage_progress() as tell:
        _show(run(tell), json)


def venn(json: Json = False) -> None:
    """Measure a Venn-Abers answer on windows of 300, 850 and 2,000 against a batch fit for each."""
    from workers.lab.bench.venn_answer import run

    with stage_progress() as tell:
        _show(run(tell), json)


def linear(
    examples: Annotated[
        int,
        typer.Option("--examples", min=10_000, metavar="N", help="Length of the longest stream."),
    ] = 1_000_000,
    feature_map: Annotated[
        FeatureMapName, typer.Option("--feature-map", help="Of the linear machine.")
    ] = FeatureMapName.NYSTROEM,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Measure the linear machine on a feature map against the kernel machine of the window.

    Accuracy and log loss on Adult and Elec2, and the cost of an example after 10 thousand, 100
    thousand and a million; a few minutes.
    """
    from workers.lab.bench.linear import run

    with stage_progress() as tell:
        _show(run(examples, feature_map.value, data_dir, tell), json)


def latency(
    examples: Annotated[int, typer.Option(min=100, help="Answered by each worker.")] = 20_000,
    json: Json = False,
) -> None:
    """Measure one example at a time against a null worker; and the same while refits run."""
    from workers.lab.bench.latency import run

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
    from workers.lab.bench.soak import run

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
    from workers.lab.bench.start import run

    with stage_progress() as tell:
        _show([run(cold, tell)], json)


def quality(
    stream: Annotated[
        list[str] | None,
        typer.Option("--stream", metavar="NAME", help="Only this one; may be repeated."),
    ] = None,
    shuffles: Annotated[
        int | None,
        typer.Option(
            "--shuffles", min=1, metavar="N", help="Orders of a shuffled stream. [default: 10]"
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Two orders.")] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Measure the probabilities against rolling SVCs, the venn-abers package and river's models.

    Four streams, each example answered before it is learned: log loss, Brier score, accuracy,
    calibration error and seconds. The venn-abers package comes with the dev extra.
    """
    from workers.lab.bench import quality as bench
    from workers.lab.bench.quality_streams import STREAMS

    orders = shuffles or (bench.QUICK_SHUFFLES if quick else bench.SHUFFLES)
    for name in stream or tuple(STREAMS):
        if name not in STREAMS:
            raise BadConfiguration(f"--stream {name}: unknown; one of {', '.join(STREAMS)}")
        with task_progress(len(bench.tasks_of([name], orders))) as tell:
            found, skipped = bench.run(tell, orders, data_dir, (name,))
        _show_qualities(found, json)
        for line in skipped:
            note(f"not measured: {line}")


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
    from workers.lab.bench.pairs import Comparison, run

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
    from workers.lab.bench.quality_report import comparisons, tables

    results: list[Any] = [*found, *comparisons(found)]
    if json:
        _show(results, json)
    for table in tables(found) if found and not json else ():
        wide_console().print(table)
