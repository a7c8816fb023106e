"""`bench linear`: streams without a window, beside the kernel machine of the window."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from workers.cli.common import Json


class FeatureMapName(StrEnum):
    """The feature maps, as the command line spells them."""

    NYSTROEM = "nystroem"
    FOURIER = "fourier"


def linear(
    examples: Annotated[
        int,
        typer.Option("--examples", min=10_000, metavar="N", help="Length of the longest stream."),
    ] = 1_000_000,
    feature_map: Annotated[
        FeatureMapName, typer.Option("--feature-map", help="Of the linear machine.")
    ] = FeatureMapName.NYSTROEM,
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
    """Measure the linear machine on a feature map against the kernel machine of the window.

    Accuracy and log loss on Adult and Elec2, and the cost of an example after 10 thousand, 100
    thousand and a million; a few minutes.
    """
    from workers.lab.bench.linear import run

    for result in run(examples, feature_map.value, data_dir):
        if json:
            import orjson

            print(orjson.dumps(result.plain()).decode(), flush=True)
        else:
            print(result, flush=True)
