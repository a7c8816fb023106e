"""`demo`: the main job on real data, with an embedded Redis and nothing else."""

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    picture: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the picture of the curves goes.")
    ] = Path("demo-output/curves.png"),
    speed: Annotated[
        float, typer.Option(min=0.1, max=1000.0, help="Push this many times as fast.")
    ] = 1.0,
) -> None:
    """Answer two real feeds live, show each method's validity, and draw the curves."""
    from rich.console import Console

    from workers.demo.run import run

    run(picture, Console(), speed)
