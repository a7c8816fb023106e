"""Quality of the probabilities: a table for each stream, and the means over the streams."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from threadpoolctl import (  # type: ignore[import-untyped]  # ships no type information
    threadpool_limits,
)

from online_svm.types import Floats, Ints
from scripts.bench.kept import (
    Jobs,
    Names,
    NamesWithCommas,
    ResultsFile,
    StreamCell,
    measured_cells,
    stream_cells,
)
from scripts.bench.quality.groups import GROUPS, HEADLINE, of_group
from scripts.bench.quality.methods import DISTANCES, EVERY, METHODS, answered
from scripts.bench.quality.stream_quality import HEADINGS, MethodRun, Quality, qualities
from scripts.bench.quality.streams import DEVELOPMENT, HELD_OUT, LONG, STREAMS, stream
from scripts.bench.report import Result
from scripts.command_line import chosen
from scripts.tables import printed
from workers.cli.common import DataDir, note
from workers.errors import BadConfiguration
from workers.history.backtest.prequential import Published
from workers.history.backtest.result import scores

WARM_UP = EVERY + 10
"""Examples answered and thrown away before the clock starts: every method has then fitted once."""


def run(
    streams: Names = None,
    rows: NamesWithCommas = None,
    shuffles: Annotated[
        int, typer.Option(min=1, help="Shuffles, or draws, of a stream without an order.")
    ] = 10,
    examples: Annotated[
        int | None,
        typer.Option(min=500, help="Of each stream, at most; default all it uses."),
    ] = None,
    held_out: Annotated[
        bool,
        typer.Option(
            "--held-out", help="The streams on which nothing was chosen as well: look once."
        ),
    ] = False,
    long: Annotated[
        bool,
        typer.Option(
            "--long",
            help="Streams of up to 50,000: the default beside refits at fixed distances, log loss "
            "against cost.",
        ),
    ] = False,
    jobs: Jobs = 1,
    results: ResultsFile = Path("quality.jsonl"),
    data_dir: DataDir = None,
) -> Iterator[Result]:
    """Measure the probabilities against rolling models of scikit-learn and models of river.

    Each example is answered before it is learned: log loss, Brier score, accuracy, AUC, debiased
    calibration error, coverage (what right intervals would reach) and width of the intervals, and
    processor time; then means over the streams of two and of more classes, and the headline beside
    its best rival on each stream. The venn-abers package comes with the dev extra.
    """
    asked = LONG if long else DEVELOPMENT | HELD_OUT if held_out else DEVELOPMENT
    names = chosen("--streams", streams, ",", tuple(asked))
    methods = chosen("--rows", rows, ";", (HEADLINE, *DISTANCES) if long else METHODS)
    cells = stream_cells(
        names, methods, shuffles, lambda name: STREAMS[name].is_single, examples, data_dir
    )
    found = measured_cells(cells, measure, MethodRun, results, jobs)
    whole = qualities((c, m) for c, m in found.items() if isinstance(m, MethodRun))
    for one in whole:
        yield Result(one.plain(), [])
    for name in dict.fromkeys(one.stream for one in whole):
        yield Result({}, [_of_stream([one for one in whole if one.stream == name])])
    for group in GROUPS:
        yield from of_group(whole, group)
    tell_missing(found)


def tell_missing(found: Mapping[StreamCell, MethodRun | str]) -> None:
    """Say which cells were not measured, and why."""
    for line in dict.fromkeys(
        f"{cell.stream}, {cell.method}: {one}"
        for cell, one in found.items()
        if isinstance(one, str)
    ):
        note(f"not measured: {line}")


def measure(cell: StreamCell) -> MethodRun | str:
    """Run a cell; return why where it cannot run here.

    Examples
    --------
    >>> measure(StreamCell("elec2", 0, "river ARF", None, Path("/nowhere")))  # doctest: +ELLIPSIS
    'no data directory /nowhere: ...'
    """
    n_classes = STREAMS[cell.stream].n_classes
    try:
        X, codes = stream(cell.stream, cell.draw, cell.data_dir)
        X, codes = X[: cell.examples], codes[: cell.examples]
        return timed(partial(answered, cell.method, n_classes=n_classes), X, codes, n_classes)
    except BadConfiguration as error:
        return str(error)


def timed(
    answer: Callable[[Floats, Ints], dict[str, Published]], X: Floats, codes: Ints, n_classes: int
) -> MethodRun:
    """Return what comes of all examples, which are answered in order, and the processor time."""
    with threadpool_limits(1):  # threads that wait for a processor would slow the peers down
        answer(X[:WARM_UP], codes[:WARM_UP])  # loads the code
        began = time.process_time()
        answers = answer(X, codes)
        seconds = time.process_time() - began
    classes = tuple(str(code) for code in range(n_classes))
    scored = slice(EVERY, None)
    rows = {
        name: scores(said.changed(lambda values: values[scored]), classes, codes[scored])
        for name, said in answers.items()
    }
    return MethodRun(len(X), seconds, rows)


def _of_stream(rows: Sequence[Quality]) -> str:
    first, count = rows[0], max(len(one.shuffles) for one in rows)
    kind = STREAMS[first.stream]
    name = ("shuffle" if kind.order == "shuffled" else "draw") + "s" * (count != 1)
    order = "in time order" if kind.is_single else f"{count} {name}"
    title = (
        f"{first.stream}{', held out' if first.stream in HELD_OUT else ''}: {kind.n_classes} "
        f"classes, {first.examples:,} examples, {order}, scored from example {EVERY}"
    )
    return printed(title, ["", *HEADINGS], [[one.row, *one.cells()] for one in rows])
