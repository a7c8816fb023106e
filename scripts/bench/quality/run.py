"""Quality of the probabilities: a table for each stream, and the means over the streams."""

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    mean_and_error,
    mean_shown,
    measured_cells,
    stream_cells,
)
from scripts.bench.quality.methods import EVERY, METHODS, answered
from scripts.bench.quality.streams import DEVELOPMENT, HELD_OUT, STREAMS, stream
from scripts.bench.report import Result, Values
from scripts.command_line import chosen
from scripts.tables import printed
from workers.cli.common import DataDir, note
from workers.errors import BadConfiguration
from workers.history.backtest.prequential import Published
from workers.history.backtest.result import Scores, scores

WARM_UP = EVERY + 10
"""Examples answered and thrown away before the clock starts: every method has then fitted once."""

GROUPS = {"two classes": True, "more classes": False}
HEADINGS = ("log loss", "Brier", "accuracy", "AUC", "calib.", "cover (fair)", "width", "us")


@dataclass(frozen=True, slots=True)
class MethodRun:
    """What came of a cell: all examples that were answered, of which the first 250 are not scored;
    processor time of the run; a row of the table for each probability that the method published.
    """  # noqa: D205

    examples: int
    seconds: float
    rows: dict[str, Scores]


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
    jobs: Jobs = 1,
    results: ResultsFile = Path("quality.jsonl"),
    data_dir: DataDir = None,
) -> Iterator[Result]:
    """Measure the probabilities against rolling models of scikit-learn and models of river.

    Each example is answered before it is learned: log loss, Brier score, accuracy, AUC, debiased
    calibration error, coverage (what right intervals would reach) and width of the intervals, and
    processor time. The venn-abers package comes with the dev extra.
    """
    names = chosen("--streams", streams, ",", tuple(STREAMS if held_out else DEVELOPMENT))
    methods = chosen("--rows", rows, ";", METHODS)
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
        if rows_of_group := means(whole, group):
            for mean in rows_of_group:
                yield Result(mean, [])
            yield Result({}, [_of_means(group, rows_of_group)])
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


@dataclass(frozen=True, slots=True)
class Quality:
    """What one row reached on one stream, over its shuffles; processor time is of an example."""

    stream: str
    row: str
    examples: int
    microseconds: float
    shuffles: list[Scores]

    def values(self, measure: str) -> list[float]:
        """Return a measure of each shuffle that has it."""
        values = [getattr(one, measure) for one in self.shuffles]
        return [value for value in values if value is not None]

    def mean(self, measure: str) -> float | None:
        """Return the mean of a measure over the shuffles; None where the row has none."""
        values = self.values(measure)
        return mean_and_error(values)[0] if values else None

    @property
    def log_loss(self) -> float:
        """The mean log loss."""
        return mean_and_error(self.values("log_loss"))[0]

    @property
    def calibration_error(self) -> float:
        """The root of the mean debiased squared calibration error; 0 where that is negative."""
        return math.sqrt(max(0.0, self.mean("squared_calibration_error") or 0.0))

    def plain(self) -> Values:
        """Return it as JSON values."""
        names = ("log_loss", "brier", "accuracy", "auc", "ece", "ece_floor")
        intervals = ("coverage", "coverage_of_perfect", "width")
        return {
            "stream": self.stream,
            "row": self.row,
            "examples": self.examples,
            "shuffles": len(self.shuffles),
            **{name: self.mean(name) for name in (*names, *intervals)},
            "calibration_error": self.calibration_error,
            "log_loss_error": mean_and_error(self.values("log_loss"))[1],
            "microseconds": self.microseconds,
        }

    def cells(self) -> list[str]:
        """Return the cells of its table, as `HEADINGS` has them."""
        coverage, fair = self.mean("coverage"), self.mean("coverage_of_perfect")
        covered = "" if coverage is None else f"{100 * coverage:.0f} ({100 * (fair or 0):.0f})"
        brier, accuracy, auc, width = (
            "" if (value := self.mean(name)) is None else f"{value:.{digits}f}"
            for name, digits in (("brier", 4), ("accuracy", 4), ("auc", 4), ("width", 3))
        )
        loss = mean_shown(self.values("log_loss"))
        calibration, time_taken = f"{self.calibration_error:.3f}", f"{self.microseconds:,.0f}"
        return [loss, brier, accuracy, auc, calibration, covered, width, time_taken]


def qualities(measured: Iterator[tuple[StreamCell, MethodRun]]) -> list[Quality]:
    """Return the rows of each stream over its shuffles, in the order of the cells."""
    runs: dict[str, dict[str, list[tuple[MethodRun, Scores]]]] = {}
    for cell, found in measured:
        for row, scored in found.rows.items():
            runs.setdefault(cell.stream, {}).setdefault(row, []).append((found, scored))
    return [
        Quality(
            stream,
            row,
            shuffles[0][0].examples,
            1e6 * statistics.fmean(one.seconds for one, _ in shuffles) / shuffles[0][0].examples,
            [scored for _, scored in shuffles],
        )
        for stream, rows in runs.items()
        for row, shuffles in rows.items()
    ]


def means(found: Sequence[Quality], group: str) -> list[Values]:
    """Return the mean of each row that was measured on every stream of a group."""
    rows: dict[str, list[Quality]] = {}
    for one in found:
        if (STREAMS[one.stream].n_classes == 2) is GROUPS[group]:
            rows.setdefault(one.row, []).append(one)
    most = max(map(len, rows.values()), default=0)
    return [
        {
            "group": group,
            "row": row,
            "streams": most,
            "mean_log_loss": statistics.fmean(one.log_loss for one in whole),
            "mean_microseconds": statistics.fmean(one.microseconds for one in whole),
        }
        for row, whole in rows.items()
        if len(whole) == most
    ]


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


def _of_means(group: str, rows: Sequence[Values]) -> str:
    cells = [
        [one["row"], f"{one['mean_log_loss']:.4f}", f"{one['mean_microseconds']:,.0f}"]
        for one in sorted(rows, key=lambda one: float(one["mean_log_loss"]))
    ]
    title = f"{group}: means over {rows[0]['streams']} streams"
    return printed(title, ["", "log loss", "us"], cells)
