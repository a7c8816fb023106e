"""Cells of the benchmark: one policy, or a peer, on one draw of one stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import (  # type: ignore[import-untyped]  # ships no type information
    threadpool_limits,
)

from online_svm.metrics.scores import log_loss
from online_svm.types import Floats, Ints
from scripts.bench.policies.answered import METHODS, Answered
from scripts.bench.policies.streams import SINGLE, Stream, stream
from scripts.bench.quality.answers import EVERY
from workers.errors import BadConfiguration

AFTER = 2000
"""Examples after a change of which the log loss is given on its own."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What is run, on so many examples.

    Examples
    --------
    >>> print(Cell("swap", 3, "reset", 10_000))
    swap, draw 3, reset
    """

    stream: str
    draw: int
    method: str
    examples: int
    data_dir: str | None = None

    def __str__(self) -> str:
        return f"{self.stream}, draw {self.draw}, {self.method}"


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of a cell. The first 250 examples are answered, but not scored.

    Attributes
    ----------
    log_loss : float
        An answer that was `warming` counts as all classes alike.
    log_loss_after : float or None
        Of the 2,000 examples after the change, likewise; None where no change is known.
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
) -> list[Cell]:
    """Return the cells of a run, draw by draw; a recorded stream has one.

    Examples
    --------
    >>> len(cells_of(("elec2", "swap"), ("none", "reset"), draws=3, examples=10_000))
    8
    """
    folder = None if data_dir is None else str(data_dir)
    return [
        Cell(name, draw, method, examples, folder)
        for draw in range(draws)
        for method in methods
        for name in streams
        if draw == 0 or name not in SINGLE
    ]


def measure(cell: Cell) -> Measured | str:
    """Run a cell; return why where it cannot run here.

    Examples
    --------
    >>> measure(Cell("elec2", 0, "none", 500, data_dir="/nowhere"))  # doctest: +ELLIPSIS
    'no data directory /nowhere: ...'
    """
    try:
        asked = stream(cell.stream, cell.draw, cell.examples, cell.data_dir)
    except BadConfiguration as error:
        return str(error)
    with threadpool_limits(1):  # threads that wait for a processor would slow each other down
        return scored(asked, METHODS[cell.method](asked))


def scored(asked: Stream, answered: Answered) -> Measured:
    """Return the figures of what was said of a stream.

    Examples
    --------
    >>> rows, codes = np.zeros((300, 1)), np.zeros(300, dtype=np.int64)
    >>> said, warming = np.tile([0.8, 0.2], (300, 1)), np.zeros(300, dtype=np.bool_)
    >>> found = scored(Stream(rows, codes, 2, 280), Answered(said, warming, []))
    >>> round(found.log_loss, 3), round(found.log_loss_after, 3), found.warming
    (0.223, 0.223, 0)
    """
    said, is_warming, codes = answered.probabilities, answered.is_warming, asked.codes
    of_change = None if asked.change is None else slice(asked.change, asked.change + AFTER)
    answered_at = np.flatnonzero(~is_warming)
    first = answered_at[0] if len(answered_at) else len(codes)
    return Measured(
        log_loss(said[EVERY:], codes[EVERY:]),
        None if of_change is None else log_loss(said[of_change], codes[of_change]),
        _log_loss_of(answered_at[answered_at >= EVERY], said, codes),
        int(np.count_nonzero(is_warming[first:])),
        answered.acted,
    )


def _log_loss_of(rows: Ints, said: Floats, codes: Ints) -> float | None:
    return log_loss(said[rows], codes[rows]) if len(rows) else None
