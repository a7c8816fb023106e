"""Cells of the quality benchmark, one method on one shuffle of one stream, and their means."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import (  # type: ignore[import-untyped]  # ships no type information
    threadpool_limits,
)
from typing_extensions import override

from online_svm.types import Floats
from scripts.bench.kept import KeptLines, Key, measured_cells
from scripts.bench.quality.answers import EVERY
from scripts.bench.quality.rows import METHODS, program
from scripts.bench.quality.streams import STREAMS, stream
from scripts.bench.report import BenchResult, Tell, silent
from workers.errors import BadConfiguration
from workers.history.backtest.result import Scores, scores

WARM_UP = EVERY + 10
"""Examples answered and thrown away before the clock starts: every method has then fitted once."""


@dataclass(frozen=True, slots=True)
class QualityCell:
    """What is run; `examples` keeps the first ones only.

    Examples
    --------
    >>> print(QualityCell("phishing", 3, "river ARF"))
    phishing, shuffle 3, river ARF
    """

    stream: str
    shuffle: int
    method: str
    examples: int | None = None
    data_dir: str | None = None

    def __str__(self) -> str:
        return f"{self.stream}, shuffle {self.shuffle}, {self.method}"


@dataclass(frozen=True, slots=True)
class MethodRun:
    """What came of a cell.

    Attributes
    ----------
    examples : int
        All that were answered; the first 250 are not scored.
    seconds : float
        Processor time of the run, all threads.
    rows : dict of str to Scores
        A row of the table for each probability that the method published.
    """

    examples: int
    seconds: float
    rows: dict[str, Scores]


def measure(cell: QualityCell) -> MethodRun | str:
    """Run a cell; return why where it cannot run here.

    Examples
    --------
    >>> measure(QualityCell("elec2", 0, "river ARF", data_dir="/nowhere"))  # doctest: +ELLIPSIS
    'no data directory /nowhere: ...'
    """
    method, n_classes = METHODS[cell.method], STREAMS[cell.stream].n_classes
    try:
        X, codes = stream(cell.stream, cell.shuffle, cell.data_dir)
        X, codes = X[: cell.examples], codes[: cell.examples]
        with threadpool_limits(1):  # threads that wait for a processor would slow the peers down
            method(X[:WARM_UP], codes[:WARM_UP], n_classes)  # loads the code
            began = time.process_time()
            answers = method(X, codes, n_classes)
            seconds = time.process_time() - began
    except BadConfiguration as error:
        return str(error)
    classes = tuple(str(code) for code in range(n_classes))
    scored = slice(EVERY, None)
    rows = {
        name: scores(said.changed(lambda values: values[scored]), classes, codes[scored])
        for name, said in answers.items()
    }
    return MethodRun(len(X), seconds, rows)


def cells_of(
    streams: tuple[str, ...],
    methods: tuple[str, ...],
    shuffles: int,
    examples: int | None = None,
    data_dir: Path | str | None = None,
) -> list[QualityCell]:
    """Return the cells of a run: a stream in time order has one shuffle.

    All streams come first by the first method, then by the next, so that a run that is cut off has
    whole rows.

    Examples
    --------
    >>> len(cells_of(("phishing", "elec2"), ("headline", "river ARF"), shuffles=3))
    8
    """
    folder = None if data_dir is None else str(data_dir)
    return [
        QualityCell(name, shuffle, method, examples, folder)
        for shuffle in range(shuffles)
        for method in methods
        for name in streams
        if shuffle == 0 or not STREAMS[name].is_single
    ]


@dataclass(frozen=True, slots=True)
class Quality(BenchResult):
    """What one row reached on one stream, over its shuffles.

    Attributes
    ----------
    stream, row : str
    examples : int
        Of the stream; the first 250 are answered, but not scored.
    microseconds : float
        Processor time an example of the whole run; rows of one run share it.
    shuffles : list of Scores
    """

    stream: str
    row: str
    examples: int
    microseconds: float
    shuffles: list[Scores]

    @property
    def n_classes(self) -> int:
        """Classes of the stream."""
        return STREAMS[self.stream].n_classes

    def values(self, measure: str) -> Floats:
        """Return a measure of each shuffle that has it."""
        values = [getattr(one, measure) for one in self.shuffles]
        return np.array([value for value in values if value is not None])

    def mean(self, measure: str) -> float | None:
        """Return the mean of a measure over the shuffles; None where the row has none."""
        values = self.values(measure)
        return float(values.mean()) if len(values) else None

    def error(self, measure: str) -> float | None:
        """Return the standard error of that mean; None without two shuffles."""
        values = self.values(measure)
        n = len(values)
        return float(values.std(ddof=1) / math.sqrt(n)) if n > 1 else None

    @property
    def log_loss(self) -> float:
        """The mean log loss."""
        return float(self.values("log_loss").mean())

    @property
    def calibration_error(self) -> float:
        """The root of the mean debiased squared calibration error; 0 where that is negative."""
        return math.sqrt(max(0.0, float(self.values("squared_calibration_error").mean())))

    @override
    def plain(self) -> dict[str, Any]:
        names = ("log_loss", "brier", "accuracy", "auc", "ece", "ece_floor")
        intervals = ("coverage", "coverage_of_perfect", "width")
        means = {name: self.mean(name) for name in (*names, *intervals)}
        return {
            "stream": self.stream,
            "row": self.row,
            "examples": self.examples,
            "shuffles": len(self.shuffles),
            **means,
            "calibration_error": self.calibration_error,
            "log_loss_error": self.error("log_loss"),
            "microseconds": self.microseconds,
        }


def run(
    cells: Sequence[QualityCell], results: Path, jobs: int = 1, tell: Tell = silent
) -> tuple[list[Quality], list[str]]:
    """Measure every cell that is not kept, and keep it.

    Parameters
    ----------
    cells : sequence of QualityCell
    results : Path
        The same command goes on from it. A last line that was cut off is removed.
    jobs : int
        Processes, at most.
    tell : callable
        Is told which cell has ended.

    Returns
    -------
    qualities : list of Quality
        By stream, in the order of the cells.
    skipped : list of str
        What could not be measured, and why.
    """
    kept = KeptLines[MethodRun](results, MethodRun)
    found = measured_cells(cells, measure, kept, _key, jobs, tell)
    skipped = {
        f"{cell.stream}, {cell.method}: {one}": None
        for cell, one in found.items()
        if isinstance(one, str)
    }
    return _collected([(c, m) for c, m in found.items() if isinstance(m, MethodRun)]), list(skipped)


def _key(cell: QualityCell) -> Key:
    return {
        "stream": cell.stream,
        "shuffle": cell.shuffle,
        "method": cell.method,
        "of": cell.examples,
        "program": program(cell.method),
    }


def _collected(measured: list[tuple[QualityCell, MethodRun]]) -> list[Quality]:
    runs: dict[str, dict[str, list[tuple[MethodRun, Scores]]]] = {}
    for cell, found in measured:
        of_stream = runs.setdefault(cell.stream, {})
        for row, scored in found.rows.items():
            of_stream.setdefault(row, []).append((found, scored))
    return [
        _quality(stream, row, shuffles)
        for stream, rows in runs.items()
        for row, shuffles in rows.items()
    ]


def _quality(stream: str, row: str, shuffles: list[tuple[MethodRun, Scores]]) -> Quality:
    examples = shuffles[0][0].examples
    seconds = float(np.mean([found.seconds for found, _ in shuffles]))
    scores = [one for _, one in shuffles]
    return Quality(stream, row, examples, 1e6 * seconds / examples, scores)
