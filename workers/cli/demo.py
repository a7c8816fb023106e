"""`demo`: answer three real feeds on an embedded Redis."""

from pathlib import Path
from typing import Annotated

from typer import Option

from workers.cli.common import check_picture
from workers.errors import writing

PICTURE = Path("demo-output/curves.png")  # default path of the picture


def demo(
    picture: Annotated[
        Path,
        Option(
            metavar="FILE.png", dir_okay=False, help="Where the picture of the curves goes, a PNG."
        ),
    ] = PICTURE,
    speed: Annotated[
        float, Option(min=0.1, max=1000.0, help="Push this many times as fast.")
    ] = 1.0,
) -> None:
    """Answer three real feeds live, show their validity and alarms, and draw the curves.

    One feed drifts on purpose. Its report, an HTML file, is written to the folder of the curves.
    """
    if picture == PICTURE:
        with writing(picture):
            picture.parent.mkdir(exist_ok=True)  # only the default directory is made
    check_picture("--picture", picture)  # now rather than at the end of the demonstration
    from rich.console import Console

    from workers.demo.run import run

    run(picture, Console(), speed)
