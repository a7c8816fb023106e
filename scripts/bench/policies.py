"""The log loss of each `on_drift` on streams that change, cell by cell.

A cell is one policy, or a peer, on one draw of one stream. Streams are recorded ones, and drawn
ones of two classes whose law changes in the middle. The first 250 examples are answered, but not
scored. An answer that was `warming` counts as all classes alike.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from river.datasets import synth
from threadpoolctl import (  # type: ignore[import-untyped]  # ships no type information
    threadpool_limits,
)

from online_svm.metrics.scores import log_loss
from online_svm.predictor.stream_monitors import ONE_CHANGE
from online_svm.stream.alarm import Alarm
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Bools, Floats, Ints
from scripts.bench.kept import (
    Jobs,
    Names,
    ResultsFile,
    StreamCell,
    mean_and_error,
    mean_shown,
    measured_cells,
    stream_cells,
)
from scripts.bench.quality.methods import ARF, EVERY, PEERS, answers_of, unknown
from scripts.bench.quality.streams import STREAMS as RECORDED
from scripts.bench.quality.streams import Examples, as_examples, seed_of
from scripts.bench.quality.streams import stream as recorded_stream
from scripts.bench.report import Result, Values
from scripts.command_line import chosen
from workers.cli.common import DataDir
from workers.errors import BadConfiguration

AFTER = 2000
"""Examples after a change of which the log loss is given on its own."""

PASSAGE = 0.2
"""A gradual change takes this part of the stream."""

RARE = 0.01

OURS: dict[str, dict[str, Any]] = {
    "none": {"monitors": "off"},
    "report": {"on_drift": "report"},
    "refit": {"on_drift": "refit"},
    "reset": {"on_drift": "reset"},
}
"""`none` has no monitors; the others are `on_drift`."""

METHODS = (*OURS, ARF)


def run(
    streams: Names = None,
    rows: Names = None,
    draws: Annotated[int, typer.Option(min=1, help="Draws of a stream that is drawn.")] = 5,
    examples: Annotated[int, typer.Option(min=500, max=10_000, help="Of each stream.")] = 10_000,
    jobs: Jobs = 1,
    results: ResultsFile = Path("policies.jsonl"),
    data_dir: DataDir = None,
) -> Iterator[Result]:
    """Measure the log loss of each `on_drift`, beside no monitors and river's ARF.

    Recorded streams, and drawn ones whose law changes in the middle: over the whole stream but for
    the first 250 examples, and over the 2,000 after the change. `warming` is how many answers had
    no model after a reset; they count as all classes alike. `acted` is on how many changes the
    policy acted.
    """
    names, methods = (
        chosen("--streams", streams, ",", STREAMS),
        chosen("--rows", rows, ",", METHODS),
    )
    cells = stream_cells(names, methods, draws, SINGLE.__contains__, examples, data_dir)
    found = measured_cells(cells, measure, PolicyLosses, results, jobs)
    for name in names:
        for method in methods:
            of_row = [one for c, one in found.items() if (c.stream, c.method) == (name, method)]
            yield result(name, method, of_row)


@dataclass(frozen=True, slots=True)
class ChangingStream:
    """Examples in their order, and how many were before the change; None where nobody knows."""

    X: Floats
    codes: Ints
    n_classes: int
    change: int | None


def _abrupt(n: int, seed: int) -> Examples:
    """Return the sides of a hyperplane in ten features; another one in the second half."""
    before, after = (_hyperplane(n, seed, part) for part in range(2))
    return as_examples(before[: n // 2] + after[n // 2 :])


def _gradual(n: int, seed: int) -> Examples:
    """Return the same, but from n / 2 on the other one comes more and more often.

    Its share grows evenly from 0 to 1 in a fifth of the stream.
    """
    before, after = (_hyperplane(n, seed, part) for part in range(2))
    shares = (np.arange(n) - n // 2) / (PASSAGE * n)
    is_after = np.random.default_rng(seed).random(n) < shares
    return as_examples([(after if late else before)[i] for i, late in enumerate(is_after)])


def _hyperplane(n: int, seed: int, part: int) -> list[tuple[dict[Any, Any], Any]]:
    still = synth.Hyperplane(seed_of(seed, part), 10, n_drift_features=0, mag_change=0.0)
    return list(islice(still, n))


def _exchange(n: int, seed: int) -> Examples:
    """Return two classes that change places: river's Mixed, two indicators and two numbers."""
    before, after = (
        list(islice(synth.Mixed(part, seed_of(seed, part)), n - n // 2)) for part in range(2)
    )
    return as_examples(before[: n // 2] + after)


def _swap(n: int, seed: int) -> Examples:
    """Return two categories whose rates .2 and .6 change places; two more features say nothing."""
    rng = np.random.default_rng(seed)
    category = rng.integers(0, 2, n)
    is_late = np.arange(n) >= n // 2
    codes = rng.random(n) < np.where(category == is_late, 0.2, 0.6)
    return np.column_stack([category, rng.normal(size=(n, 2))]), codes.astype(np.int64)


def _rare(n: int, seed: int) -> Examples:
    """Return two normal classes three standard deviations apart, one of them with 1 %.

    The line between their means turns by a right angle, as where two sensors change places.
    """
    rng = np.random.default_rng(seed)
    codes = (rng.random(n) < RARE).astype(np.int64)
    X = rng.normal(size=(n, 2))
    axis = (np.arange(n) >= n // 2).astype(np.int64)
    X[np.arange(n), axis] += np.where(codes == 1, 1.5, -1.5)
    return X, codes


DRAWN: dict[str, Callable[[int, int], Examples]] = {
    "abrupt": _abrupt,
    "exchange": _exchange,
    "gradual": _gradual,
    "swap": _swap,
    "rare": _rare,
}
"""From the number of examples and a seed, which is one draw."""

SINGLE = ("elec2", "moving-squares", "2cdt")
"""Recorded streams, in the order of their release."""

STREAMS = ("elec2", *DRAWN, *SINGLE[1:])


def stream(name: str, draw: int, examples: int, data_dir: Path | None = None) -> ChangingStream:
    """Return a stream; of a recorded one the first examples, whichever the draw.

    Examples
    --------
    >>> found = stream("swap", draw=0, examples=100)
    >>> found.X.shape, found.n_classes, found.change
    ((100, 3), 2, 50)
    """
    if name in DRAWN:
        return ChangingStream(*DRAWN[name](examples, draw), 2, examples // 2)
    X, codes = recorded_stream(name, 0, data_dir)
    return ChangingStream(X[:examples], codes[:examples], RECORDED[name].n_classes, None)


@dataclass(frozen=True, slots=True)
class StreamAnswers:
    """What was said of a stream: all classes alike where an answer was `warming`.

    `acted` has the examples learned at each change that the policy acted on.
    """

    probabilities: Floats
    is_warming: Bools
    acted: list[int]


def answered(method: str, asked: ChangingStream) -> StreamAnswers:
    """Return what a method says of a stream.

    Examples
    --------
    >>> found = answered("reset", stream("swap", 0, 60))
    >>> found.probabilities.shape, int(found.is_warming.sum()), found.acted
    ((60, 2), 10, [])
    """
    n = len(asked.codes)
    if method in PEERS:
        found = PEERS[method](asked.X, asked.codes, asked.n_classes)
        return StreamAnswers(found, np.zeros(n, dtype=np.bool_), [])
    said, is_warming, alarms = unknown(n, asked.n_classes), np.ones(n, dtype=np.bool_), []
    for answer in answers_of(asked.X, asked.codes, asked.n_classes, **OURS[method]):
        if isinstance(answer, Alarm):
            alarms.append(answer)
        elif isinstance(answer, PredictionBlock) and answer.status == "ok":
            said[answer.n] = answer.point  # every example is labelled: n numbers them
            is_warming[answer.n] = False
    return StreamAnswers(said, is_warming, changes([a.n for a in alarms if a.action != "report"]))


def changes(alarms: Sequence[int]) -> list[int]:
    """Return the first alarm of each change: those within 50 examples of it are of its change.

    Examples
    --------
    >>> changes([100, 110, 149, 150, 400])
    [100, 150, 400]
    """
    found: list[int] = []
    for alarm in alarms:
        if not found or alarm >= found[-1] + ONE_CHANGE:
            found.append(alarm)
    return found


@dataclass(frozen=True, slots=True)
class PolicyLosses:
    """What came of a cell.

    Log losses: of all, of the 2,000 after the change where one is known, of what was not `warming`.
    Answers that were `warming` after the first that was not; the changes that were acted on.
    """

    log_loss: float
    log_loss_after: float | None
    log_loss_answered: float | None
    warming: int
    acted: list[int]


def measure(cell: StreamCell) -> PolicyLosses | str:
    """Run a cell; return why where it cannot run here.

    Examples
    --------
    >>> measure(StreamCell("elec2", 0, "none", 500, Path("/nowhere")))  # doctest: +ELLIPSIS
    'no data directory /nowhere: ...'
    """
    assert cell.examples is not None
    try:
        asked = stream(cell.stream, cell.draw, cell.examples, cell.data_dir)
    except BadConfiguration as error:
        return str(error)
    with threadpool_limits(1):  # threads that wait for a processor would slow each other down
        return scored(asked, answered(cell.method, asked))


def scored(asked: ChangingStream, said: StreamAnswers) -> PolicyLosses:
    """Return the figures of what was said of a stream.

    Examples
    --------
    >>> rows, codes = np.zeros((300, 1)), np.zeros(300, dtype=np.int64)
    >>> said, warming = np.tile([0.8, 0.2], (300, 1)), np.zeros(300, dtype=np.bool_)
    >>> found = scored(ChangingStream(rows, codes, 2, 280), StreamAnswers(said, warming, []))
    >>> round(found.log_loss, 3), round(found.log_loss_after, 3), found.warming
    (0.223, 0.223, 0)
    """

    def loss(of: Any) -> float:
        return log_loss(said.probabilities[of], asked.codes[of])

    at = np.flatnonzero(~said.is_warming)
    first, later = at[0] if len(at) else len(asked.codes), at[at >= EVERY]
    return PolicyLosses(
        loss(slice(EVERY, None)),
        None if asked.change is None else loss(slice(asked.change, asked.change + AFTER)),
        loss(later) if len(later) else None,
        int(np.count_nonzero(said.is_warming[first:])),
        said.acted,
    )


def result(stream: str, method: str, draws: Sequence[PolicyLosses | str]) -> Result:
    """Return what a method reached on a stream, over its draws, or why it was not run."""
    values: Values = {"stream": stream, "method": method}
    begin = f"{stream:<16}{method:<11}"
    measured = [one for one in draws if not isinstance(one, str)]
    if len(measured) < len(draws):
        skipped = next(one for one in reversed(draws) if isinstance(one, str))
        return Result(values | {"skipped": skipped}, [f"{begin}not run: {skipped}"])
    values["draws"], shown = len(measured), dict[str, str]()
    for name in ("log_loss", "log_loss_after", "log_loss_answered", "warming"):
        found = [getattr(one, name) for one in measured]
        known = None not in found
        values[name], values[f"{name}_error"] = mean_and_error(found) if known else (None, None)
        shown[name] = mean_shown(found) if known else "-"
    values["acted"] = [one.acted for one in measured]
    acted = np.mean([len(one.acted) for one in measured])
    line = (
        f"{begin}log loss {shown['log_loss']:<15}  after the change "
        f"{shown['log_loss_after']:<15}  warming {values['warming']:>7,.1f}  acted {acted:.1f}"
    )
    return Result(values, [line])
