"""Cells of the quality benchmark: one method on one shuffle of one stream."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from threadpoolctl import (  # type: ignore[import-untyped]  # ships no type information
    threadpool_limits,
)

from scripts.bench.quality.answers import EVERY
from scripts.bench.quality.rows import METHODS
from scripts.bench.quality.streams import STREAMS, stream
from workers.errors import BadConfiguration
from workers.history.backtest.result import Scores, scores

WARM_UP = EVERY + 10
"""Examples answered and thrown away before the clock starts: every method has then fitted once."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What is run; `examples` keeps the first ones only.

    Examples
    --------
    >>> print(Cell("phishing", 3, "river ARF"))
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
class Measured:
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

    def plain(self) -> dict[str, Any]:
        """Return the cell, and each row as its own JSON."""
        rows = {name: one.model_dump(mode="json") for name, one in self.rows.items()}
        return asdict(self) | {"rows": rows}

    @classmethod
    def of_plain(cls, values: dict[str, Any]) -> "Measured":
        """Return what `plain` gave; raises ValueError, KeyError or TypeError for anything else."""
        rows = {name: Scores.model_validate(one) for name, one in values["rows"].items()}
        return cls(int(values["examples"]), float(values["seconds"]), rows)


def measure(cell: Cell) -> Measured | str:
    """Run a cell; return why where it cannot run here.

    Examples
    --------
    >>> measure(Cell("elec2", 0, "river ARF", data_dir="/nowhere"))  # doctest: +ELLIPSIS
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
    return Measured(len(X), seconds, rows)


def cells_of(
    streams: tuple[str, ...],
    methods: tuple[str, ...],
    shuffles: int,
    examples: int | None = None,
    data_dir: Path | str | None = None,
) -> list[Cell]:
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
        Cell(name, shuffle, method, examples, folder)
        for shuffle in range(shuffles)
        for method in methods
        for name in streams
        if shuffle == 0 or not STREAMS[name].is_single
    ]
