"""Quality of the probabilities: a table of the streams, and the means over them."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from pandas import DataFrame
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # ships no types

from scripts.bench import kept
from scripts.bench.kept import Cell
from scripts.bench.quality.compared import best_others, records
from scripts.bench.quality.methods import FIT_EVERY, METHODS, OURS, answered
from scripts.bench.quality.streams import DEVELOPMENT, HELD_OUT, STREAMS, stream
from scripts.bench.report import Result, Values
from scripts.command_line import DataDir, chosen
from workers.offline.backtest.result import scores

WARM_UP = FIT_EVERY + 10
"""Examples answered and thrown away before the clock starts: every method has then fitted once."""

SHOWN = {
    "method": "", "log_loss": "log loss", "brier": "Brier",
    "accuracy": "accuracy", "auc": "AUC", "calibration_error": "calib.", "coverage": "cover",
    "coverage_of_perfect": "fair", "width": "width", "microseconds": "us",
}  # fmt: skip

NEAR_LOG_LOSS = 0.003  # excess log loss over the best that counts as near it

HELD_OUT_OPTION = typer.Option("--held-out", help="Also streams on which nothing was chosen.")


def run(
    streams: kept.Names = None,
    rows: kept.NamesWithCommas = None,
    shuffles: Annotated[
        int, typer.Option(min=1, help="Shuffles, or draws, of a stream without an order.")
    ] = 10,
    examples: Annotated[
        int | None,
        typer.Option(min=500, help="Of each stream, at most; default all it uses."),
    ] = None,
    held_out: Annotated[bool, HELD_OUT_OPTION] = False,
    jobs: kept.Jobs = 1,
    results: kept.ResultsFile = Path("quality.jsonl"),
    data_dir: DataDir = None,
) -> Iterator[Result]:
    """Measure the probabilities against rolling models of scikit-learn and models of river.

    Each example is answered before it is learned: log loss, Brier score, accuracy, AUC, debiased
    calibration error, coverage (fair: of right intervals) and width of the intervals, and
    processor time; then means over the streams of two and of more classes, and the headline
    against the best peer on each stream.
    """
    names = chosen("--streams", streams, ",", tuple(DEVELOPMENT | (HELD_OUT if held_out else {})))
    methods = chosen("--rows", rows, ";", METHODS)
    values = {"stream": names, "draw": range(shuffles), "method": methods, "examples": [examples]}
    cells = kept.cells_of(Cell, data_dir, **values)
    cells = [cell for cell in cells if not cell.draw or STREAMS[cell.stream].order != "time"]
    found = kept.measured_cells(cells, measure, results, jobs)
    if found.empty:
        return
    whole = means_of_draws(found)
    for name, of_stream in whole.groupby("stream", sort=False):
        yield Result(records(of_stream), _title(str(name), of_stream), SHOWN)
    is_two = whole.stream.map(lambda name: STREAMS[name].n_classes == 2)
    for group, inside in (("two classes", whole[is_two]), ("more classes", whole[~is_two])):
        if not inside.empty:
            yield of_means(inside, group)
            yield from of_rivals(inside, group)


def measure(cell: Cell) -> list[Values]:
    """Run a cell: the scores of all examples, answered in order, and the processor time."""
    n_classes = STREAMS[cell.stream].n_classes
    X, codes = stream(cell.stream, cell.draw, cell.data_dir)
    X, codes = X[: cell.examples], codes[: cell.examples]
    with threadpool_limits(1):  # threads that wait for a processor would slow the peers down
        answered(cell.method, X[:WARM_UP], codes[:WARM_UP], n_classes)  # loads the code
        began = time.process_time()
        answers = answered(cell.method, X, codes, n_classes)
        seconds = time.process_time() - began
    classes = tuple(str(code) for code in range(n_classes))
    scored = slice(FIT_EVERY, None)
    found = scores(answers.mapped(lambda values: values[scored]), classes, codes[scored])
    return [{"examples": len(X), "microseconds": 1e6 * seconds / len(X)} | found.model_dump()]


def means_of_draws(found: DataFrame) -> DataFrame:
    """Return the mean scores over the draws, a row for each stream and method."""
    drawn = found.drop(columns="program").groupby(["stream", "method"], sort=False)
    whole = drawn.mean()
    whole["calibration_error"] = np.sqrt(np.maximum(whole.squared_calibration_error, 0.0))
    return whole.assign(draw=drawn.size()).rename(columns={"draw": "draws"}).reset_index()


def _title(name: str, rows: DataFrame) -> str:
    kind, draws = STREAMS[name], int(rows.draws.max())
    order = "in time order" if kind.order == "time" else f"{kind.order}, {draws} times"
    return (
        f"{name}{', held out' if name in HELD_OUT else ''}: {kind.n_classes} classes, "
        f"{rows.examples.iloc[0]:,.0f} examples, {order}, scored from example {FIT_EVERY}"
    )


def of_means(inside: DataFrame, group: str) -> Result:
    """Return the means of the methods that were measured on every stream of a group."""
    rows = inside.drop(columns="stream").groupby("method")
    streams = rows.size().max()
    means = rows.mean()[rows.size() == streams].sort_values("log_loss").reset_index()
    title = f"{group}: means over {streams} streams"
    return Result([{"group": group} | one for one in records(means)], title, SHOWN)


def of_rivals(inside: DataFrame, group: str) -> Iterator[Result]:
    """Yield the headline and the best peer of each stream."""
    losses = inside.pivot_table("log_loss", "stream", "method", sort=False)
    beside = best_others(losses, OURS, NEAR_LOG_LOSS)
    if beside.empty:
        return
    title = (
        f"{group}: log loss of the headline and of the best peer; best, or within {NEAR_LOG_LOSS} "
        f"of it, on {beside.near.sum()} of {len(beside)} streams"
    )
    yield Result(records(beside.reset_index()), title)
