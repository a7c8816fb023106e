"""`bench`: figures beside a peer, measured in the same run."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli import bench_service
from workers.cli.bench_linear import linear
from workers.cli.common import Json, note
from workers.errors import BadConfiguration

if TYPE_CHECKING:
    from workers.lab.bench.quality import Quality

if TYPE_CHECKING:
    from workers.lab.bench.profile import Profile
    from workers.lab.bench.report import Row

WIDTH = 120  # columns of a table where the output is no terminal


def register(app: typer.Typer) -> None:
    """Add the command."""
    group = typer.Typer(
        help="Benchmarks; each prints ratios against a peer measured in the same run.",
        no_args_is_help=True,
    )
    group.command("solver")(solver)
    group.command("worker")(worker)
    group.command("profile")(profile)
    group.command("methods")(methods)
    group.command("quality")(quality)
    group.command("linear")(linear)
    bench_service.register(group)
    app.add_typer(group, name="bench")


def solver() -> None:
    """Measure the exact protocol on Car against refitting scikit-learn's SVC at each step."""
    from workers.lab.bench.solver import run

    run()


def worker(json: Json = False) -> None:
    """Measure examples a second through Redis against what bounds them, and river in process.

    The engine with rare refits and the default configuration, against a null worker, the reads and
    commits alone, the refits alone, and two of river's classifiers without Redis.
    """
    from workers.lab.bench.worker import run

    _show(run(), json)


def profile(json: Json = False) -> None:
    """Measure where a microsecond goes: read, parse, score, learn, encode, commit, refit."""
    from workers.lab.bench.profile import run

    _show(run(), json)


def _show(results: "Iterable[Row | Profile]", json: bool) -> None:
    for result in results:
        if json:
            import orjson

            print(orjson.dumps(result.plain()).decode(), flush=True)
        else:
            print(result, flush=True)


def methods(json: Json = False) -> None:
    """Measure the papers' methods against SVC fits, clarabel, their definition and venn-abers.

    clarabel and venn-abers come with the dev extra; without them their lines are left out, and it
    says so.
    """
    from workers.lab.bench.methods import run

    for result in run():
        if json:
            import orjson

            print(orjson.dumps(result.plain()).decode(), flush=True)
        else:
            print(result, flush=True)


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
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir",
            metavar="DIR",
            help="Where the data files are; default $ONLINE_SVM_DATA.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Measure the probabilities against rolling SVCs, the venn-abers package and river's models.

    Four streams, each example answered before it is learned: log loss, Brier score, accuracy,
    calibration error and seconds. The venn-abers package comes with the dev extra.
    """
    from workers.lab.bench import quality as bench
    from workers.lab.bench.quality_report import progress
    from workers.lab.bench.quality_streams import STREAMS

    orders = shuffles or (bench.QUICK_SHUFFLES if quick else bench.SHUFFLES)
    for name in stream or tuple(STREAMS):
        if name not in STREAMS:
            raise BadConfiguration(f"--stream {name}: unknown; one of {', '.join(STREAMS)}")
        with progress(len(bench.tasks_of([name], orders))) as tell:
            found, skipped = bench.run(tell, orders, data_dir, (name,))
        _show_json(found) if json else _show_tables(found)
        for line in skipped:
            note(f"not measured: {line}")


def _show_json(found: "list[Quality]") -> None:
    import orjson

    from workers.lab.bench.quality_report import comparisons

    rows = [one.plain() for one in found] + [one.plain() for one in comparisons(found)]
    for row in rows:
        print(orjson.dumps(row).decode(), flush=True)


def _show_tables(found: "list[Quality]") -> None:
    from rich.console import Console

    from workers.lab.bench.quality_report import tables

    console = Console()
    console = console if console.is_terminal else Console(width=WIDTH)
    for table in tables(found) if found else ():
        console.print(table)
