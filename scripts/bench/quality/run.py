"""Quality of the probabilities: a table for each stream, and the means over the streams."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from pandas import DataFrame, Series
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # ships no types

from online_svm.types import Floats, Ints
from scripts.bench import kept
from scripts.bench.kept import StreamCell, mean_shown
from scripts.bench.quality import streams as sets
from scripts.bench.quality.methods import DISTANCES, FIT_EVERY, METHODS, PEERS, answered
from scripts.bench.quality.streams import HELD_OUT, STREAMS
from scripts.bench.report import Result
from scripts.command_line import chosen
from scripts.tables import printed
from workers.cli.common import DataDir, note
from workers.offline.backtest.prequential import Published
from workers.offline.backtest.result import Scores, scores

WARM_UP = FIT_EVERY + 10
"""Examples answered and thrown away before the clock starts: every method has then fitted once."""

SHOWN = {
    "brier": ("Brier", 4), "accuracy": ("accuracy", 4), "auc": ("AUC", 4),
    "calibration_error": ("calib.", 3), "coverage": ("cover", 2),
    "coverage_of_perfect": ("fair", 2), "width": ("width", 3), "microseconds": ("us", 0),
}  # fmt: skip
"""Columns after the log loss: their headings and decimal places."""

HEADLINE = "headline"
NEAR_LOG_LOSS = 0.003  # excess log loss over the best that counts as near it

HELD_OUT_OPTION = typer.Option("--held-out", help="Also streams on which nothing was chosen.")
LONG_OPTION = typer.Option(
    "--long", help="Streams of up to 50,000: the default beside refits at fixed distances."
)


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
    long: Annotated[bool, LONG_OPTION] = False,
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
    known = sets.LONG if long else sets.DEVELOPMENT | (HELD_OUT if held_out else {})
    names = chosen("--streams", streams, ",", tuple(known))
    methods = chosen("--rows", rows, ";", (HEADLINE, *DISTANCES) if long else METHODS)

    def is_single(name: str) -> bool:
        return STREAMS[name].is_single

    cells = kept.stream_cells(names, methods, shuffles, is_single, examples, data_dir)
    found = kept.measured_cells(cells, measure, MethodRun, results, jobs)
    whole = figures(found)
    for plain in whole.reset_index().to_dict("records"):
        yield Result(plain, [])
    for name, of_stream in whole.groupby("stream", sort=False):
        yield Result({}, [_of_stream(str(name), of_stream)])
    n_classes = whole.index.get_level_values("stream").map(lambda name: STREAMS[name].n_classes)
    for group, inside in (("two classes", n_classes == 2), ("more classes", n_classes > 2)):
        if inside.any():
            yield of_means(whole[inside], group)
            yield from of_rivals(whole[inside], group)
    tell_missing(found)


@dataclass(frozen=True, slots=True)
class MethodRun:
    """The result of one cell."""

    examples: int  # answered; the first 250 are not scored
    seconds: float  # of processor time
    rows: dict[str, Scores]  # one for each published probability


def tell_missing(found: Mapping[StreamCell, MethodRun | str]) -> None:
    """Say which cells were not measured, and why."""
    missing = ((cell, one) for cell, one in found.items() if isinstance(one, str))
    for line in dict.fromkeys(f"{cell.stream}, {cell.method}: {one}" for cell, one in missing):
        note(f"not measured: {line}")


def measure(cell: StreamCell) -> MethodRun:
    """Run a cell."""
    n_classes = STREAMS[cell.stream].n_classes
    X, codes = sets.stream(cell.stream, cell.draw, cell.data_dir)
    X, codes = X[: cell.examples], codes[: cell.examples]
    return timed(partial(answered, cell.method, n_classes=n_classes), X, codes, n_classes)


def timed(
    answer: Callable[[Floats, Ints], dict[str, Published]], X: Floats, codes: Ints, n_classes: int
) -> MethodRun:
    """Return the scores of all examples, answered in order, and the processor time."""
    with threadpool_limits(1):  # threads that wait for a processor would slow the peers down
        answer(X[:WARM_UP], codes[:WARM_UP])  # loads the code
        began = time.process_time()
        answers = answer(X, codes)
        seconds = time.process_time() - began
    classes = tuple(str(code) for code in range(n_classes))
    scored = slice(FIT_EVERY, None)
    rows = {
        name: scores(one.mapped(lambda values: values[scored]), classes, codes[scored])
        for name, one in answers.items()
    }
    return MethodRun(len(X), seconds, rows)


def figures(found: Mapping[StreamCell, MethodRun | str]) -> DataFrame:
    """Return the mean scores over the shuffles, a row for each stream and row of its table."""
    lines = [
        {"stream": cell.stream, "row": row, "examples": one.examples}
        | {"microseconds": 1e6 * one.seconds / one.examples} | scored.model_dump()
        for cell, one in found.items()
        if not isinstance(one, str)
        for row, scored in one.rows.items()
    ]  # fmt: skip
    columns = ["stream", "row", "examples", "microseconds", *Scores.model_fields]
    table = DataFrame(lines, columns=columns).astype(dict.fromkeys(columns[2:], float))
    drawn = table.groupby(["stream", "row"], sort=False)
    whole = drawn.mean()
    whole["calibration_error"] = np.sqrt(np.maximum(whole.squared_calibration_error, 0.0))
    whole["log_loss_error"], whole["shuffles"] = drawn.log_loss.sem(), drawn.size()
    return whole


def _of_stream(name: str, rows: DataFrame) -> str:
    kind, shuffles = STREAMS[name], int(rows.shuffles.max())
    noun = ("shuffle" if kind.order == "shuffled" else "draw") + "s" * (shuffles != 1)
    order = "in time order" if kind.is_single else f"{shuffles} {noun}"
    title = (
        f"{name}{', held out' if name in HELD_OUT else ''}: {kind.n_classes} classes, "
        f"{rows.examples.iloc[0]:,.0f} examples, {order}, scored from example {FIT_EVERY}"
    )
    return _table(title, rows.droplevel("stream"))


def _table(title: str, rows: DataFrame) -> str:
    cells = [
        [name, mean_shown(one.log_loss, one.log_loss_error), *_rounded(one)]
        for name, one in rows.iterrows()
    ]
    return printed(title, ["", "log loss", *(heading for heading, _ in SHOWN.values())], cells)


def _rounded(row: Series) -> list[str]:
    return [
        "" if np.isnan(row[name]) else f"{row[name]:,.{places}f}"
        for name, (_, places) in SHOWN.items()
    ]


def of_means(inside: DataFrame, group: str) -> Result:
    """Return the means of the rows that were measured on every stream of a group.

    Their standard error is over shuffles; a stream with one order adds nothing to it.
    """
    rows = inside.groupby("row")
    streams = rows.size().max()
    means = rows.mean()
    squares = inside.log_loss_error.fillna(0.0) ** 2
    means["log_loss_error"] = np.sqrt(squares.groupby("row").sum()) / streams
    means = means[rows.size() == streams].sort_values("log_loss")
    values = means.reset_index().to_dict("records")
    title = f"{group}: means over {streams} streams"
    return Result({"group": group, "streams": int(streams), "rows": values}, [_table(title, means)])


def of_rivals(inside: DataFrame, group: str) -> Iterator[Result]:
    """Yield the headline and the best peer of each stream."""
    losses = inside.log_loss.unstack("row").reindex(columns=[HEADLINE, *PEERS])
    losses = losses[losses[HEADLINE].notna() & losses[[*PEERS]].notna().any(axis=1)]
    if losses.empty:
        return
    beside = DataFrame({"headline": losses[HEADLINE]})
    beside["best"], beside["row"] = losses[[*PEERS]].min(axis=1), losses[[*PEERS]].idxmin(axis=1)
    beside["near"] = beside.headline <= beside.best + NEAR_LOG_LOSS
    near = int(beside.near.sum())
    columns = ["headline", "best", "row"]
    cells: list[Any] = [list(one) for one in beside[columns].reset_index().itertuples(index=False)]
    title = f"{group}: log loss of the headline, and of the best peer"
    lines = [
        printed(title, ["", *columns], cells),
        f"headline best, or within {NEAR_LOG_LOSS} of it: on {near} of {len(beside)} streams",
    ]
    values = {"group": group, "streams": len(beside), "near": near}
    yield Result(values | {"beside": beside.reset_index().to_dict("records")}, lines)
