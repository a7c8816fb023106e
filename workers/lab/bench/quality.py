"""How good the probabilities are, beside those of others, on streams answered in order."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import (  # type: ignore[import-untyped]  # ships no type information
    threadpool_limits,
)
from typing_extensions import override

from online_svm.metrics.scores import accuracy, brier, expected_calibration_error, log_loss
from online_svm.types import Floats, Ints
from workers.errors import BadConfiguration
from workers.lab.bench.quality_methods import EVERY, METHODS, WARM_UP
from workers.lab.bench.quality_streams import STREAMS, stream
from workers.lab.bench.report import Result
from workers.lab.parallel import each

MEASURES = ("log_loss", "brier", "accuracy", "ece", "seconds")
SHUFFLES, QUICK_SHUFFLES = 10, 2


@dataclass(frozen=True, slots=True)
class Task:
    """One method on one order of one stream; `limit` keeps the first examples only."""

    stream: str
    seed: int
    method: str
    data_dir: Path | str | None = None
    limit: int | None = None

    def __str__(self) -> str:
        return f"{self.stream}, order {self.seed}, {self.method}"


@dataclass(frozen=True, slots=True)
class Quality(Result):
    """What one method reached on one stream, over all its orders.

    Attributes
    ----------
    stream, method : str
    examples : int
        Of the stream; the first 250 are answered, but not scored.
    values : dict of str to ndarray of shape (n_orders,)
        Each of `MEASURES`.
    """

    stream: str
    method: str
    examples: int
    values: dict[str, Floats]

    def mean(self, measure: str) -> float:
        """Return the mean of a measure over the orders."""
        return float(self.values[measure].mean())

    def error(self, measure: str) -> float | None:
        """Return the standard error of that mean; None for a single order."""
        return standard_error(self.values[measure])

    @override
    def plain(self) -> dict[str, object]:
        found: dict[str, object] = {name: self.mean(name) for name in MEASURES}
        return {
            "stream": self.stream,
            "method": self.method,
            "examples": self.examples,
            "orders": len(self.values["log_loss"]),
            **found,
            "log_loss_error": self.error("log_loss"),
        }


def run(
    tell: Callable[[str], None],
    shuffles: int = SHUFFLES,
    data_dir: Path | str | None = None,
    streams: Sequence[str] = tuple(STREAMS),
    limit: int | None = None,
) -> tuple[list[Quality], list[str]]:
    """Measure every method on every order of every stream.

    Parameters
    ----------
    tell : callable
        Is told which task has ended.
    shuffles : int
        Orders of a stream whose order has no meaning, by the seeds 0, 1, ...
    data_dir : path, optional
        Where the data files are; see `workers.push.datasets.data_directory`.
    streams : sequence of str
        Some of `STREAMS`.
    limit : int, optional
        Examples of each stream, at most.

    Returns
    -------
    qualities : list of Quality
    skipped : list of str
        What could not be measured, and why.
    """
    tasks = tasks_of(streams, shuffles, data_dir, limit)
    results = each(measure, tasks, tell)
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    skipped = []
    for task, result in zip(tasks, results, strict=True):
        if isinstance(result, str):
            skipped.append(f"{task.stream}, {task.method}: {result}")
            continue
        for name, values in result.items():
            found.setdefault((task.stream, name), []).append(values)
    return [_collected(*key, rows) for key, rows in found.items()], list(dict.fromkeys(skipped))


def tasks_of(
    streams: Sequence[str],
    shuffles: int,
    data_dir: Path | str | None = None,
    limit: int | None = None,
) -> list[Task]:
    """Return the tasks of a run: one order of a stream in time order, `shuffles` of another.

    Examples
    --------
    >>> len(tasks_of(["phishing", "elec2"], shuffles=3)) == (3 + 1) * len(METHODS)
    True
    """
    return [
        Task(name, seed, method, data_dir, limit)
        for name in streams
        for method in METHODS
        for seed in range(shuffles if STREAMS[name].is_shuffled else 1)
    ]


def measure(task: Task) -> dict[str, dict[str, float]] | str:
    """Return the measures of each of a method's answers by its name, or why there are none."""
    method = METHODS[task.method]
    try:
        X, codes = stream(task.stream, task.seed, task.data_dir)
        X, codes = X[: task.limit], codes[: task.limit]
        with threadpool_limits(1):  # threads that wait for a processor would slow the peers down
            method(X[:WARM_UP], codes[:WARM_UP])
            start = time.perf_counter()
            answers = method(X, codes)
            seconds = time.perf_counter() - start
    except BadConfiguration as error:
        return str(error)
    size = {"examples": float(len(X)), "seconds": seconds}
    return {
        f"{task.method}: {name}" if len(answers) > 1 else task.method: size
        | scored(positive[EVERY:], codes[EVERY:])
        for name, positive in answers.items()
    }


def scored(positive: Floats, codes: Ints) -> dict[str, float]:
    """Return the measures of probabilities of class 1, log loss clipped at 1e-6.

    Examples
    --------
    >>> scored(np.array([0.2, 0.9]), np.array([0, 1]))["accuracy"]
    1.0
    """
    both = np.column_stack((1.0 - positive, positive))
    return {
        "log_loss": log_loss(both, codes),
        "brier": brier(both, codes),
        "accuracy": accuracy(both.argmax(axis=1), codes),
        "ece": expected_calibration_error(positive, codes, n_bins=15),
    }


def standard_error(values: Floats) -> float | None:
    """Return the standard error of the mean; None for one value.

    Examples
    --------
    >>> standard_error(np.array([1.0, 3.0])), standard_error(np.ones(1))
    (1.0, None)
    """
    n = len(values)
    return float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else None


def _collected(name: str, method: str, rows: list[dict[str, float]]) -> Quality:
    values = {key: np.array([row[key] for row in rows]) for key in MEASURES}
    return Quality(name, method, int(rows[0]["examples"]), values)
