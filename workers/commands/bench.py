"""`bench`: figures beside a peer, measured in the same run."""

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    group = typer.Typer(
        help="Benchmarks; each prints ratios against a peer measured in the same run.",
        no_args_is_help=True,
    )
    group.command("solver")(solver)
    group.command("worker")(worker)
    app.add_typer(group, name="bench")


def solver() -> None:
    """Measure the exact protocol on Car against refitting scikit-learn's SVC at each step."""
    from workers.bench.solver import run

    run()


def worker() -> None:
    """Measure examples a second through Redis against a null worker and river in process."""
    from workers.bench.worker import run

    run()
