"""The log loss of each `on_drift` on streams that change, cell by cell.

A cell is one policy, or a peer, on one draw of one stream. The first 250 examples are answered, but
not scored. An answer that was `warming` counts as all classes alike.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import (  # type: ignore[import-untyped]  # ships no type information
    threadpool_limits,
)
from typing_extensions import override

from online_svm.metrics.scores import log_loss
from online_svm.predictor.stream_monitors import ONE_CHANGE
from online_svm.stream.alarm import Alarm
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Bools, Floats
from scripts.bench.kept import KeptLines, Key, measured_cells, program
from scripts.bench.policies.streams import SINGLE, ChangingStream, stream
from scripts.bench.quality.answers import EVERY, answers_of, unknown
from scripts.bench.quality.river_models import adaptive_forest, of_river
from scripts.bench.report import BenchResult, Tell, silent
from workers.errors import BadConfiguration

ARF = "river ARF"

AFTER = 2000
"""Examples after a change of which the log loss is given on its own."""


@dataclass(frozen=True, slots=True)
class StreamAnswers:
    """What was said of a stream.

    Attributes
    ----------
    probabilities : ndarray of shape (n, K)
        All classes alike where the answer was `warming`.
    is_warming : ndarray of bool of shape (n,)
    acted : list of int
        Examples learned at each change that the policy acted on.
    """

    probabilities: Floats
    is_warming: Bools
    acted: list[int]


def ours(stream: ChangingStream, **changes: Any) -> StreamAnswers:
    """Return the headline for the default settings, but for some changes.

    Examples
    --------
    >>> from scripts.bench.policies.streams import stream
    >>> found = ours(stream("swap", 0, 60), on_drift="reset")
    >>> found.probabilities.shape, int(found.is_warming.sum()), found.acted
    ((60, 2), 10, [])
    """
    n = len(stream.codes)
    said, is_warming, alarms = unknown(n, stream.n_classes), np.ones(n, dtype=np.bool_), []
    for answer in answers_of(stream.X, stream.codes, stream.n_classes, **changes):
        if isinstance(answer, Alarm):
            alarms.append(answer)
        elif isinstance(answer, PredictionBlock) and answer.status == "ok":
            said[answer.n] = answer.point  # every example is labelled: n numbers them
            is_warming[answer.n] = False
    return StreamAnswers(said, is_warming, changes_acted_on(alarms))


def changes_acted_on(alarms: list[Alarm]) -> list[int]:
    """Return the `n` of each change that was acted on: alarms soon after another are of its change.

    Examples
    --------
    >>> of = ("calibration", "overall", None, "tolerant", 4.7, 4.6, 5000)
    >>> changes_acted_on([Alarm(n, *of, action="reset") for n in (5040, 5060, 5200)])
    [5040, 5200]
    """
    changes: list[int] = []
    for alarm in alarms:
        if alarm.action != "report" and (not changes or alarm.n >= changes[-1] + ONE_CHANGE):
            changes.append(alarm.n)
    return changes


def _river_forest(stream: ChangingStream) -> StreamAnswers:
    (said,) = of_river(ARF, adaptive_forest)(stream.X, stream.codes, stream.n_classes).values()
    return StreamAnswers(said.probabilities, np.zeros(len(stream.X), dtype=np.bool_), [])


METHODS: dict[str, Callable[[ChangingStream], StreamAnswers]] = {
    "none": partial(ours, monitors="off"),
    "report": partial(ours, on_drift="report"),
    "refit": partial(ours, on_drift="refit"),
    "reset": partial(ours, on_drift="reset"),
    ARF: _river_forest,
}
"""`none` has no monitors; the next three are `on_drift`."""


@dataclass(frozen=True, slots=True)
class PolicyCell:
    """What is run, on so many examples.

    Examples
    --------
    >>> print(PolicyCell("swap", 3, "reset", 10_000))
    swap, draw 3, reset
    """

    stream: str
    draw: int
    method: str
    examples: int
    data_dir: str | None = None

    def __str__(self) -> str:
        return f"{self.stream}, draw {self.draw}, {self.method}"

    @property
    def key(self) -> Key:
        """What it is kept under: our sources, or the version of river, are part of it."""
        return {
            "stream": self.stream,
            "draw": self.draw,
            "method": self.method,
            "examples": self.examples,
            "program": program("river" if self.method == ARF else None),
        }


@dataclass(frozen=True, slots=True)
class PolicyLosses:
    """What came of a cell.

    Attributes
    ----------
    log_loss : float
    log_loss_after : float or None
        Of the 2,000 examples after the change; None where no change is known.
    log_loss_answered : float or None
        Of the examples that were not `warming`; None where all were.
    warming : int
        Answers that were `warming` after the first one that was not.
    acted : list of int
        Examples learned at each change that the policy acted on.
    """

    log_loss: float
    log_loss_after: float | None
    log_loss_answered: float | None
    warming: int
    acted: list[int]


def cells_of(
    streams: Sequence[str],
    methods: Sequence[str],
    draws: int,
    examples: int,
    data_dir: Path | str | None = None,
) -> list[PolicyCell]:
    """Return the cells of a run, draw by draw; a recorded stream has one.

    Examples
    --------
    >>> len(cells_of(("elec2", "swap"), ("none", "reset"), draws=3, examples=10_000))
    8
    """
    folder = None if data_dir is None else str(data_dir)
    return [
        PolicyCell(name, draw, method, examples, folder)
        for draw in range(draws)
        for method in methods
        for name in streams
        if draw == 0 or name not in SINGLE
    ]


def measure(cell: PolicyCell) -> PolicyLosses | str:
    """Run a cell; return why where it cannot run here.

    Examples
    --------
    >>> measure(PolicyCell("elec2", 0, "none", 500, data_dir="/nowhere"))  # doctest: +ELLIPSIS
    'no data directory /nowhere: ...'
    """
    try:
        asked = stream(cell.stream, cell.draw, cell.examples, cell.data_dir)
    except BadConfiguration as error:
        return str(error)
    with threadpool_limits(1):  # threads that wait for a processor would slow each other down
        return scored(asked, METHODS[cell.method](asked))


def scored(asked: ChangingStream, answered: StreamAnswers) -> PolicyLosses:
    """Return the figures of what was said of a stream.

    Examples
    --------
    >>> rows, codes = np.zeros((300, 1)), np.zeros(300, dtype=np.int64)
    >>> said, warming = np.tile([0.8, 0.2], (300, 1)), np.zeros(300, dtype=np.bool_)
    >>> found = scored(ChangingStream(rows, codes, 2, 280), StreamAnswers(said, warming, []))
    >>> round(found.log_loss, 3), round(found.log_loss_after, 3), found.warming
    (0.223, 0.223, 0)
    """
    said, is_warming, codes = answered.probabilities, answered.is_warming, asked.codes
    of_change = None if asked.change is None else slice(asked.change, asked.change + AFTER)
    at = np.flatnonzero(~is_warming)
    first, later = at[0] if len(at) else len(codes), at[at >= EVERY]
    return PolicyLosses(
        log_loss(said[EVERY:], codes[EVERY:]),
        None if of_change is None else log_loss(said[of_change], codes[of_change]),
        log_loss(said[later], codes[later]) if len(later) else None,
        int(np.count_nonzero(is_warming[first:])),
        answered.acted,
    )


@dataclass(frozen=True, slots=True)
class PolicyLine(BenchResult):
    """What a method reached on a stream, over its draws, or why it was not run."""

    stream: str
    method: str
    draws: list[PolicyLosses]
    skipped: str | None = None

    def mean(self, figure: str) -> tuple[float | None, float | None]:
        """Return the mean of a figure over the draws and its standard error, where it has one."""
        values = [getattr(one, figure) for one in self.draws]
        if None in values or not values:
            return None, None
        n = len(values)
        error = float(np.std(values, ddof=1) / math.sqrt(n)) if n > 1 else None
        return float(np.mean(values)), error

    @override
    def plain(self) -> dict[str, Any]:
        what = {"stream": self.stream, "method": self.method}
        if self.skipped is not None:
            return what | {"skipped": self.skipped}
        figures: dict[str, Any] = {"draws": len(self.draws)}
        for name in ("log_loss", "log_loss_after", "log_loss_answered", "warming"):
            figures[name], figures[f"{name}_error"] = self.mean(name)
        return what | figures | {"acted": [one.acted for one in self.draws]}

    def __str__(self) -> str:
        begin = f"{self.stream:<16}{self.method:<11}"
        if self.skipped is not None:
            return f"{begin}not run: {self.skipped}"
        warming, _ = self.mean("warming")
        acted = np.mean([len(one.acted) for one in self.draws])
        return (
            f"{begin}log loss {self._shown('log_loss'):<15}  after the change "
            f"{self._shown('log_loss_after'):<15}  warming {warming:>7,.1f}  acted {acted:.1f}"
        )

    def _shown(self, figure: str) -> str:
        mean, error = self.mean(figure)
        if mean is None:
            return "-"
        return f"{mean:.4f}" if error is None else f"{mean:.4f} ± {error:.4f}"


def run(
    cells: Sequence[PolicyCell], results: Path, jobs: int = 1, tell: Tell = silent
) -> Iterator[PolicyLine]:
    """Yield a line for each stream and method; what is measured is kept in a file of JSON lines.

    Parameters
    ----------
    cells : sequence of PolicyCell
    results : Path
        The same command goes on from it. A last line that was cut off is removed.
    jobs : int
        Processes, at most.
    tell : callable
        Is told which cell has ended.

    Raises
    ------
    BadConfiguration
        If the file cannot be read, or a line of it is none of this benchmark.
    """
    kept = KeptLines[PolicyLosses](results, PolicyLosses)
    found = measured_cells(cells, measure, kept, lambda cell: cell.key, jobs, tell)
    streams = list(dict.fromkeys(cell.stream for cell in cells))
    draws: dict[tuple[str, str], list[PolicyLosses | str]] = {}
    for cell in sorted(cells, key=lambda cell: streams.index(cell.stream)):
        draws.setdefault((cell.stream, cell.method), []).append(found[cell])
    for (name, method), whole in draws.items():
        measured = [one for one in whole if isinstance(one, PolicyLosses)]
        skipped = [one for one in whole if isinstance(one, str)]
        yield PolicyLine(name, method, measured, skipped[-1] if skipped else None)
