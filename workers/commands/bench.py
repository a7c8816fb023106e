"""`bench`: figures beside a peer, measured in the same run."""

import typer

from workers.commands.common import Json


def register(app: typer.Typer) -> None:
    """Add the command."""
    group = typer.Typer(
        help="Benchmarks; each prints ratios against a peer measured in the same run.",
        no_args_is_help=True,
    )
    group.command("solver")(solver)
    group.command("worker")(worker)
    group.command("methods")(methods)
    app.add_typer(group, name="bench")


def solver() -> None:
    """Measure the exact protocol on Car against refitting scikit-learn's SVC at each step."""
    from workers.bench.solver import run

    run()


def worker() -> None:
    """Measure examples a second through Redis against a null worker and river in process."""
    from workers.bench.worker import run

    run()


def methods(json: Json = False) -> None:
    """Measure the papers' methods against SVC fits, clarabel, their definition and venn-abers.

    clarabel and venn-abers come with the dev extra; without them their lines are left out, and it
    says so.
    """
    from workers.bench.methods import run

    for result in run():
        if json:
            import orjson

            print(orjson.dumps(result.plain()).decode(), flush=True)
        else:
            print(result, flush=True)
