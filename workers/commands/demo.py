"""`demo`: the main job on real data, with an embedded Redis and nothing else."""

from pathlib import Path
from typing import Annotated

import typer

from workers.commands.common import writing


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    picture: Annotated[
        Path,
        typer.Option(
            metavar="FILE", dir_okay=False, help="Where the picture of the curves goes, a PNG."
        ),
    ] = Path("demo-output/curves.png"),
    speed: Annotated[
        float, typer.Option(min=0.1, max=1000.0, help="Push this many times as fast.")
    ] = 1.0,
) -> None:
    """Answer two real feeds live, show each method's validity, and draw the curves."""
    from rich.console import Console

    from workers.demo.run import run

    with writing(picture):
        picture.parent.mkdir(parents=True, exist_ok=True)  # not a minute later, when it is drawn
    run(picture, Console(), speed)
