"""`demo`: the main job on real data, with an embedded Redis and nothing else."""

from pathlib import Path
from typing import Annotated

import typer

from workers.cli.common import writing

PICTURE = Path("demo-output/curves.png")
"""Default path of the picture."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    picture: Annotated[
        Path,
        typer.Option(
            metavar="FILE.png", dir_okay=False, help="Where the picture of the curves goes, a PNG."
        ),
    ] = PICTURE,
    speed: Annotated[
        float, typer.Option(min=0.1, max=1000.0, help="Push this many times as fast.")
    ] = 1.0,
    page: Annotated[
        bool,
        typer.Option("--page", help="Show the feeds in a browser too, until Enter is pressed."),
    ] = False,
) -> None:
    """Answer three real feeds live, show their validity and alarms, and draw the curves.

    One feed drifts on purpose. Its report, an HTML file, is written beside the curves.
    """
    _check(picture)  # before the demonstration, not when it is drawn
    from rich.console import Console

    from workers.demo.run import run

    run(picture, Console(), speed, page=page)


def _check(picture: Path) -> None:
    """Check that the picture can be written; create only the default directory.

    Raises
    ------
    BadConfiguration
        For another kind of file, or a directory that does not exist.
    """
    from workers.errors import BadConfiguration

    if picture.suffix.lower() != ".png":
        raise BadConfiguration(f"--picture {picture}: give a name that ends in .png")
    with writing(picture):
        if picture == PICTURE:
            picture.parent.mkdir(exist_ok=True)
        elif not picture.parent.is_dir():
            raise BadConfiguration(f"--picture {picture}: there is no directory {picture.parent}")
