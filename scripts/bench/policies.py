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
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # ships no types

from online_svm.metrics.scores import log_loss
from online_svm.predictor.guarantee import SAME_CHANGE_EXAMPLES
from online_svm.stream.alarm import Alarm
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Bools, Floats, Ints
from scripts.bench import kept
from scripts.bench.quality import streams as recorded
from scripts.bench.quality.methods import ARF, FIT_EVERY, PEERS, answers_of, unknown
from scripts.bench.quality.streams import Examples, as_examples, seed_of
from scripts.bench.report import Result, Values
from scripts.command_line import chosen
from workers.cli.common import DataDir

EXAMPLES_AFTER_CHANGE = 2000  # examples after a change of which the log loss is given on its own
GRADUAL_SHARE = 0.2  # A gradual change takes this part of the stream
RARE_CLASS_RATE = 0.01

OURS = {name: {"on_drift": name} for name in ("report", "refit", "reset")}

METHODS = (*OURS, ARF)


def run(
    streams: kept.Names = None,
    rows: kept.Names = None,
    draws: Annotated[int, typer.Option(min=1, help="Draws of a stream that is drawn.")] = 5,
    examples: Annotated[int, typer.Option(min=500, max=10_000, help="Of each stream.")] = 10_000,
    jobs: kept.Jobs = 1,
    results: kept.ResultsFile = Path("policies.jsonl"),
    data_dir: DataDir = None,
) -> Iterator[Result]:
    """Compare the log loss of each `on_drift` and river's ARF.

    Recorded streams, and drawn ones whose law changes in the middle: over the whole stream but for
    the first 250 examples, and over the 2,000 after the change. `warming` is how many answers had
    no model after a reset; they count as all classes alike. `acted` is on how many changes the
    policy acted.
    """
    names = chosen("--streams", streams, ",", STREAMS)
    methods = chosen("--rows", rows, ",", METHODS)
    is_single = SINGLE.__contains__
    cells = kept.stream_cells(names, methods, draws, is_single, examples, data_dir)
    found = kept.measured_cells(cells, measure, PolicyLosses, results, jobs)
    for name in names:
        for method in methods:
            of_row = [one for c, one in found.items() if (c.stream, c.method) == (name, method)]
            yield result(name, method, of_row)


@dataclass(frozen=True, slots=True)
class ChangingStream:
    """Examples in their order."""

    X: Floats
    codes: Ints
    n_classes: int
    change: int | None  # examples before the change, if that is known


def _hyperplanes(n: int, seed: int) -> list[list[tuple[dict[Any, Any], Any]]]:
    """Return the sides of two hyperplanes in ten features."""
    parts = (
        synth.Hyperplane(seed_of(seed, part), 10, n_drift_features=0, mag_change=0.0)
        for part in range(2)
    )
    return [list(islice(part, n)) for part in parts]


def _abrupt(n: int, seed: int) -> Examples:
    """Return the sides of a hyperplane; of another one in the second half."""
    before, after = _hyperplanes(n, seed)
    return as_examples(before[: n // 2] + after[n // 2 :])


def _gradual(n: int, seed: int) -> Examples:
    """Return the same, but from n / 2 on the other one comes more and more often."""
    before, after = _hyperplanes(n, seed)
    shares = (np.arange(n) - n // 2) / (GRADUAL_SHARE * n)
    is_after = np.random.default_rng(seed).random(n) < shares
    return as_examples([(after if late else before)[i] for i, late in enumerate(is_after)])


def _exchange(n: int, seed: int) -> Examples:
    """Return two classes that change places: river's Mixed, two indicators and two numbers."""
    mixed = (synth.Mixed(part, seed_of(seed, part)) for part in range(2))
    before, after = (list(islice(part, n - n // 2)) for part in mixed)
    return as_examples(before[: n // 2] + after)


def _swap(n: int, seed: int) -> Examples:
    """Return two categories whose rates .2 and .6 change places, and two features of noise."""
    rng = np.random.default_rng(seed)
    category = rng.integers(0, 2, n)
    is_late = np.arange(n) >= n // 2
    codes = rng.random(n) < np.where(category == is_late, 0.2, 0.6)
    return np.column_stack([category, rng.normal(size=(n, 2))]), codes.astype(np.int64)


def _rare(n: int, seed: int) -> Examples:
    """Return two normal classes three standard deviations apart, one of them with 1 %."""
    rng = np.random.default_rng(seed)
    codes = (rng.random(n) < RARE_CLASS_RATE).astype(np.int64)
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

SINGLE = ("elec2", "moving-squares", "2cdt")  # recorded streams, in the order of their release
STREAMS = ("elec2", *DRAWN, *SINGLE[1:])


def stream(name: str, draw: int, examples: int, data_dir: Path | None = None) -> ChangingStream:
    """Return a stream; of a recorded one the first examples, whichever the draw."""
    if name in DRAWN:
        return ChangingStream(*DRAWN[name](examples, draw), 2, examples // 2)
    X, codes = recorded.stream(name, 0, data_dir)
    return ChangingStream(X[:examples], codes[:examples], recorded.STREAMS[name].n_classes, None)


@dataclass(frozen=True, slots=True)
class StreamAnswers:
    """Answers to a stream."""

    probabilities: Floats  # equal ones where an answer was `warming`
    is_warming: Bools
    acted: list[int]  # examples learned at each change that the policy acted on


def answered(method: str, asked: ChangingStream) -> StreamAnswers:
    """Return the answers of a method to a stream."""
    n = len(asked.codes)
    if method in PEERS:
        found = PEERS[method](asked.X, asked.codes, asked.n_classes)
        return StreamAnswers(found, np.zeros(n, dtype=np.bool_), [])
    found, is_warming, acted = unknown(n, asked.n_classes), np.ones(n, dtype=np.bool_), []
    for answer in answers_of(asked.X, asked.codes, asked.n_classes, **OURS[method]):
        if isinstance(answer, Alarm) and answer.action != "report":
            acted.append(answer.n)
        elif isinstance(answer, PredictionBlock) and answer.status == "ok":
            found[answer.n] = answer.point  # every example is labelled: n numbers them
            is_warming[answer.n] = False
    return StreamAnswers(found, is_warming, changes(acted))


def changes(alarms: Sequence[int]) -> list[int]:
    """Return the first alarm of each change: alarms within 50 examples belong to one change."""
    found: list[int] = []
    for alarm in alarms:
        if not found or alarm >= found[-1] + SAME_CHANGE_EXAMPLES:
            found.append(alarm)
    return found


@dataclass(frozen=True, slots=True)
class PolicyLosses:
    """The result of a cell."""

    log_loss: float
    log_loss_after: float | None  # over the 2,000 examples after a known change
    warming: int  # `warming` answers after the first other one
    acted: list[int]  # changes that the policy acted on


def measure(cell: kept.StreamCell) -> PolicyLosses:
    """Run a cell."""
    assert cell.examples is not None
    asked = stream(cell.stream, cell.draw, cell.examples, cell.data_dir)
    with threadpool_limits(1):  # threads that wait for a processor would slow each other down
        return scored(asked, answered(cell.method, asked))


def scored(asked: ChangingStream, answers: StreamAnswers) -> PolicyLosses:
    """Return the losses of the answers to a stream."""

    def loss(of: Any) -> float:
        return log_loss(answers.probabilities[of], asked.codes[of])

    at, change = np.flatnonzero(~answers.is_warming), asked.change
    first = at[0] if len(at) else len(asked.codes)
    return PolicyLosses(
        loss(slice(FIT_EVERY, None)),
        None if change is None else loss(slice(change, change + EXAMPLES_AFTER_CHANGE)),
        int(np.count_nonzero(answers.is_warming[first:])),
        answers.acted,
    )


def result(stream: str, method: str, draws: Sequence[PolicyLosses | str]) -> Result:
    """Return what a method reached on a stream, over its draws, or why it was not run."""
    values: Values = {"stream": stream, "method": method}
    begin = f"{stream:<16}{method:<11}"
    if skipped := [one for one in draws if isinstance(one, str)]:
        return Result(values | {"skipped": skipped[-1]}, [f"{begin}not run: {skipped[-1]}"])
    values["draws"], shown = len(draws), dict[str, str]()
    for name in ("log_loss", "log_loss_after", "warming"):
        found = [getattr(one, name) for one in draws]
        mean, error = (None, None) if None in found else kept.mean_and_error(found)
        values |= {name: mean, f"{name}_error": error}
        shown[name] = "-" if mean is None else kept.mean_shown(mean, error)
    values["acted"] = [one.acted for one in draws if not isinstance(one, str)]
    acted = np.mean(list(map(len, values["acted"])))
    line = (
        f"{begin}log loss {shown['log_loss']:<15}  after the change "
        f"{shown['log_loss_after']:<15}  warming {values['warming']:>7,.1f}  acted {acted:.1f}"
    )
    return Result(values, [line])
