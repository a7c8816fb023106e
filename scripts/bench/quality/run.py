"""Quality of the probabilities: a table for each stream, and the means over the streams."""

import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # ships no types

from online_svm.types import Floats, Ints
from scripts.bench import kept
from scripts.bench.kept import StreamCell, mean_and_error
from scripts.bench.quality import streams as sets
from scripts.bench.quality.methods import DISTANCES, FIT_EVERY, METHODS, PEERS, answered
from scripts.bench.quality.streams import HELD_OUT, STREAMS
from scripts.bench.report import Result, Values
from scripts.command_line import chosen
from scripts.tables import printed
from workers.cli.common import note
from workers.offline.backtest.prequential import Published
from workers.offline.backtest.result import Scores, scores

WARM_UP = FIT_EVERY + 10
"""Examples answered and thrown away before the clock starts: every method has then fitted once."""

HEADINGS = ("log loss", "Brier", "accuracy", "AUC", "calib.", "cover (fair)", "width", "us")
GROUPS = {"two classes": True, "more classes": False}
HEADLINE = "headline"
RIVALS = (
    "rolling SVC, sigmoid", "rolling boosted trees, calibrated", "rolling LR", "river ARF",
    "river AMF",
)  # fmt: skip
"""The headline should be best among these, or near the best."""

NEAR_LOG_LOSS = 0.003  # excess log loss over the best that counts as near it
_MEANS = ("brier", "accuracy", "auc", "calibration_error")
_PLAIN = (
    "log_loss", "brier", "accuracy", "auc", "ece", "ece_floor", "coverage",
    "coverage_of_perfect", "width", "calibration_error",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StreamLists:
    """Which lists of streams are measured."""

    held_out: Annotated[
        bool,
        typer.Option(
            "--held-out", help="The streams on which nothing was chosen as well: look once."
        ),
    ] = False
    long: Annotated[
        bool,
        typer.Option(
            "--long",
            help="Streams of up to 50,000: the default beside refits at fixed distances, log loss "
            "against cost.",
        ),
    ] = False


CHOICES = StreamLists()
RUNNING = kept.Running(results=Path("quality.jsonl"))


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
    lists: StreamLists = CHOICES,
    running: kept.Running = RUNNING,
) -> Iterator[Result]:
    """Measure the probabilities against rolling models of scikit-learn and models of river.

    Each example is answered before it is learned: log loss, Brier score, accuracy, AUC, debiased
    calibration error, coverage (what right intervals would reach) and width of the intervals, and
    processor time; then means over the streams of two and of more classes, and the headline
    against its best rival on each stream. The venn-abers package comes with the dev extra.
    """
    known = sets.LONG if lists.long else sets.DEVELOPMENT | (HELD_OUT if lists.held_out else {})
    names = chosen("--streams", streams, ",", tuple(known))
    methods = chosen("--rows", rows, ";", (HEADLINE, *DISTANCES) if lists.long else METHODS)

    def is_single(name: str) -> bool:
        return STREAMS[name].is_single

    cells = kept.stream_cells(names, methods, shuffles, is_single, examples, running.data_dir)
    found = kept.measured_cells(cells, measure, MethodRun, running)
    whole = qualities(found)
    for one in whole:
        yield Result(one.plain(), [])
    for name in dict.fromkeys(one.stream for one in whole):
        yield Result({}, [_of_stream([one for one in whole if one.stream == name])])
    for group in GROUPS:
        yield from of_group(whole, group)
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
    """Return what comes of all examples, which are answered in order, and the processor time."""
    with threadpool_limits(1):  # threads that wait for a processor would slow the peers down
        answer(X[:WARM_UP], codes[:WARM_UP])  # loads the code
        began = time.process_time()
        answers = answer(X, codes)
        seconds = time.process_time() - began
    classes = tuple(str(code) for code in range(n_classes))
    scored = slice(FIT_EVERY, None)
    rows = {
        name: scores(said.mapped(lambda values: values[scored]), classes, codes[scored])
        for name, said in answers.items()
    }
    return MethodRun(len(X), seconds, rows)


@dataclass(frozen=True, slots=True)
class Quality:
    """The scores of one row on one stream, over its shuffles."""

    stream: str
    row: str
    examples: int
    microseconds: float  # of processor time, an example
    shuffles: list[Scores]

    def values(self, measure: str) -> list[float]:
        """Return a measure of each shuffle that has it."""
        values = [getattr(one, measure) for one in self.shuffles]
        return [value for value in values if value is not None]

    def mean(self, measure: str) -> float | None:
        """Return the mean of a measure over the shuffles; None if no shuffle has it."""
        if measure == "calibration_error":
            return math.sqrt(max(0.0, self.mean("squared_calibration_error") or 0.0))
        values = self.values(measure)
        return mean_and_error(values)[0] if values else None

    @property
    def log_loss(self) -> tuple[float, float | None]:
        """The mean log loss, and its standard error over the shuffles."""
        return mean_and_error(self.values("log_loss"))

    def plain(self) -> Values:
        """Return it as JSON values."""
        return {
            "stream": self.stream,
            "row": self.row,
            "examples": self.examples,
            "shuffles": len(self.shuffles),
            **{name: self.mean(name) for name in _PLAIN},
            "log_loss_error": self.log_loss[1],
            "microseconds": self.microseconds,
        }

    def cells(self) -> list[str]:
        """Return the cells under `HEADINGS`."""
        coverage, fair = self.mean("coverage"), self.mean("coverage_of_perfect")
        covered = "" if coverage is None else f"{100 * coverage:.0f} ({100 * (fair or 0):.0f})"
        return [
            kept.mean_shown(*self.log_loss), *(_shown(self.mean(name)) for name in _MEANS[:3]),
            f"{self.mean('calibration_error'):.3f}", covered, _shown(self.mean("width"), 3),
            f"{self.microseconds:,.0f}",
        ]  # fmt: skip


def qualities(found: Mapping[StreamCell, MethodRun | str]) -> list[Quality]:
    """Return the rows of each stream over its shuffles, in the order of the cells."""
    runs: dict[str, dict[str, list[tuple[MethodRun, Scores]]]] = {}
    for cell, one in found.items():
        if not isinstance(one, str):
            for row, scored in one.rows.items():
                runs.setdefault(cell.stream, {}).setdefault(row, []).append((one, scored))
    made = []
    for stream, rows in runs.items():
        for row, shuffles in rows.items():
            examples = shuffles[0][0].examples
            seconds = statistics.fmean(one.seconds for one, _ in shuffles)
            scored_rows = [scored for _, scored in shuffles]
            made.append(Quality(stream, row, examples, 1e6 * seconds / examples, scored_rows))
    return made


def _of_stream(rows: Sequence[Quality]) -> str:
    first, count = rows[0], max(len(one.shuffles) for one in rows)
    kind = STREAMS[first.stream]
    name = ("shuffle" if kind.order == "shuffled" else "draw") + "s" * (count != 1)
    order = "in time order" if kind.is_single else f"{count} {name}"
    title = (
        f"{first.stream}{', held out' if first.stream in HELD_OUT else ''}: {kind.n_classes} "
        f"classes, {first.examples:,} examples, {order}, scored from example {FIT_EVERY}"
    )
    return printed(title, ["", *HEADINGS], [[one.row, *one.cells()] for one in rows])


def of_group(found: Sequence[Quality], group: str) -> Iterator[Result]:
    """Yield the tables of a group and their values; none if nothing in it was measured."""
    inside = [one for one in found if (STREAMS[one.stream].n_classes == 2) is GROUPS[group]]
    rows = means(inside, group)
    for row in rows:
        yield Result(row, [])
    if rows:
        yield Result({}, [_of_means(group, rows)])
    streams = dict.fromkeys(one.stream for one in inside)
    if beside := [one for name in streams if (one := beside_rivals(inside, name))]:
        yield _of_rivals(group, beside)


def means(inside: Sequence[Quality], group: str) -> list[Values]:
    """Return the mean of each row that was measured on every stream of a group.

    Its standard error is over shuffles; a stream with one order adds nothing to it.
    """
    rows: dict[str, list[Quality]] = {}
    for one in inside:
        rows.setdefault(one.row, []).append(one)
    most = max(map(len, rows.values()), default=0)
    return [
        {
            "group": group,
            "row": row,
            "streams": most,
            "mean_log_loss": statistics.fmean(one.log_loss[0] for one in whole),
            "log_loss_error": math.hypot(*(one.log_loss[1] or 0.0 for one in whole)) / most,
            **{f"mean_{name}": _mean(one.mean(name) for one in whole) for name in _MEANS},
            "mean_microseconds": statistics.fmean(one.microseconds for one in whole),
        }
        for row, whole in rows.items()
        if len(whole) == most
    ]


def beside_rivals(found: Sequence[Quality], stream: str) -> Values | None:
    """Compare the log loss of the headline with the lowest of `RIVALS` and of all peers.

    None if the headline or all rivals were not measured. Other rows of ours are no rivals.
    """
    rows = {one.row: one for one in found if one.stream == stream}
    rivals = [rows[name] for name in RIVALS if name in rows]
    if HEADLINE not in rows or not rivals:
        return None
    peers = [one for name, one in rows.items() if name in PEERS]
    best, best_of_all = (min(some, key=lambda one: one.log_loss[0]) for some in (rivals, peers))
    loss, error = rows[HEADLINE].log_loss
    seen = "held out" if stream in HELD_OUT else "choices"
    return {
        "stream": stream,
        "seen": "members" if stream in sets.MEMBERS_COMPARED else seen,
        "log_loss": loss,
        "log_loss_error": error,
        "best": best.log_loss[0],
        "best_error": best.log_loss[1],
        "best_row": best.row,
        "best_of_all": best_of_all.log_loss[0],
        "best_of_all_row": best_of_all.row,
        "near": loss <= best.log_loss[0] + NEAR_LOG_LOSS,
        "near_of_all": loss <= best_of_all.log_loss[0] + NEAR_LOG_LOSS,
    }


def _of_means(group: str, rows: Sequence[Values]) -> str:
    cells = [
        [
            one["row"], kept.mean_shown(one["mean_log_loss"], one["log_loss_error"] or None),
            *(_shown(one[f"mean_{name}"]) for name in _MEANS),
            f"{one['mean_microseconds']:,.0f}",
        ]
        for one in sorted(rows, key=lambda one: float(one["mean_log_loss"]))
    ]  # fmt: skip
    title = f"{group}: means over {rows[0]['streams']} streams"
    return printed(title, ["", *HEADINGS[:5], HEADINGS[-1]], cells)


def _of_rivals(group: str, beside: Sequence[Values]) -> Result:
    cells = [
        [
            one["stream"], one["seen"],
            kept.mean_shown(one["log_loss"], one["log_loss_error"] or None),
            kept.mean_shown(one["best"], one["best_error"] or None),
            one["best_row"].removeprefix("rolling "),
            f"{one['best_of_all']:.4f}", one["best_of_all_row"].removeprefix("rolling "),
        ]
        for one in beside
    ]  # fmt: skip
    names = ", ".join(name.removeprefix("rolling ") for name in RIVALS)
    counts = {name: sum(one[name] for one in beside) for name in ("near", "near_of_all")}
    title = f"{group}: log loss of the headline, of the best of {names}, and of the best of all"
    lines = [
        printed(title, ["", "looked at for", HEADLINE, "best rival", "", "best", ""], cells),
        "looked at for: choices of settings; members, their first comparison; or held out",
        f"headline best, or within {NEAR_LOG_LOSS} of the best: {counts['near']} of {len(beside)}; "
        f"of all rows: {counts['near_of_all']}",
    ]
    return Result({"group": group, "streams": len(beside)} | counts | {"beside": beside}, lines)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _shown(value: float | None, digits: int = 4) -> str:
    return "" if value is None else f"{value:.{digits}f}"
