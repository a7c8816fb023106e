"""Calibration of the scores of frozen models, as labels come: ours and other methods."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from pandas import DataFrame
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # ships no types

from online_svm.metrics.scores import (
    N_SIMULATIONS,
    EqualMassBins,
    brier,
    log_loss,
    squared_calibration_error,
)
from online_svm.types import Bools, Floats, Ints
from scripts.bench import kept
from scripts.bench.kept import program
from scripts.bench.quality import streams as sets
from scripts.bench.quality.methods import FIT_EVERY as WARM_UP
from scripts.bench.quality.river_track import stream as of_track
from scripts.bench.quality.score_methods import LOOP, METHODS, OURS, RAW
from scripts.bench.quality.streams import Examples
from scripts.bench.report import Result, check
from scripts.command_line import chosen, tell
from scripts.tables import printed
from workers.cli.common import DataDir
from workers.push.datasets import load

EXAMPLES = 8000  # of a stream, at most
FITTED_SHARE = 0.2  # of the stream, at its beginning: the model is fitted on it, then frozen
LATE = (0, 250, 2000)
NEAR = 0.002  # a log loss that exceeds the best by less counts as near it
GOAL_NEAR, GOAL_SPEED, GOAL_COVERAGE = 22, 40_000, 0.87
RANGES = (0.0, 0.03, 0.1, 0.3, 0.7, 0.9, 0.97, 1.0)  # of p, for the coverage of intervals


def _adult_by_age(data_dir: Path | None) -> Examples:
    """Return every fourth row of adult, the youngest first: the model knows only them."""
    data = load("adult", data_dir)
    X, codes = data.X[::4], sets.codes_of(data.y)[::4]
    order = np.argsort(X[:, 0], kind="stable")
    return X[order], codes[order]


def _agrawal(_: Path | None) -> Examples:
    return sets.as_examples(of_track("AGR_g", EXAMPLES))


def _known(name: str) -> Callable[[Path | None], Examples]:
    return lambda data_dir: sets.stream(name, 0, data_dir)


STREAMS: dict[str, Callable[[Path | None], Examples]] = {
    **{name: _known(name) for name in ("elec2", "elec2-late")},
    "adult-by-age": _adult_by_age,
    **{name: _known(name) for name in ("bananas", "2cdt", "hyperplane", "mixed-drift")},
    "agrawal-gradual": _agrawal,
}
"""Fixed before any result. All but bananas drift."""

MODELS: dict[str, Callable[[], Any]] = {
    "trees": partial(HistGradientBoostingClassifier, random_state=0),
    "logistic": partial(LogisticRegression, max_iter=1000),
    "network": partial(MLPClassifier, max_iter=300, random_state=0),
}


@dataclass(frozen=True, slots=True)
class ScoreCell:
    """All methods on the scores of one frozen model, with labels so late."""

    stream: str
    model: str
    late: int
    examples: int
    data_dir: Path | None = None

    def __str__(self) -> str:
        return f"{self.stream}, {self.model}, labels {self.late:,} late"

    @property
    def key(self) -> kept.Key:
        """What it is kept under."""
        names = ("stream", "model", "late", "examples")
        return {name: getattr(self, name) for name in names} | {"program": program(OURS)}


@dataclass(frozen=True, slots=True)
class MethodFigures:
    """Of one method; the first 250 answers are not scored."""

    log_loss: float
    brier: float
    squared_calibration_error: float  # debiased
    microseconds: float  # of processor time an example
    # For each range of p: examples in it, in bins that the mean interval covers, and the mean
    # number of these if all probabilities were perfect.
    coverage: list[list[float]] | None = None
    width: float | None = None  # mean, of the intervals


@lru_cache(maxsize=2)
def scored(name: str, model: str, examples: int, data_dir: Path | None) -> tuple[Floats, Ints]:
    """Return the probabilities that a frozen model gives after its part, and the codes."""
    X, codes = STREAMS[name](data_dir)
    X, codes = X[:examples], codes[:examples]
    first = int(FITTED_SHARE * len(X))
    fitted = make_pipeline(StandardScaler(), MODELS[model]()).fit(X[:first], codes[:first])
    return np.ascontiguousarray(fitted.predict_proba(X[first:])[:, 1]), codes[first:]


def measure(cell: ScoreCell) -> dict[str, MethodFigures]:
    """Run a cell."""
    with threadpool_limits(1):  # threads that wait for a processor would slow each other down
        p, codes = scored(cell.stream, cell.model, cell.examples, cell.data_dir)
        found = {}
        for name, answer in METHODS.items():
            tell(f"{cell}: {name}")
            began = time.process_time()
            answers = answer(p, codes, cell.late)
            found[name] = figures(answers, codes, time.process_time() - began)
        return found


def figures(answers: Floats, codes: Ints, seconds: float) -> MethodFigures:
    """Return the figures of answers, shape (n,), or (n, 3) with the ends of their intervals."""
    whole, truth = answers[WARM_UP:], codes[WARM_UP:]
    p = whole if whole.ndim == 1 else np.ascontiguousarray(whole[:, 0])
    both = np.column_stack((1.0 - p, p))
    has_intervals = whole.ndim == 2
    return MethodFigures(
        log_loss(both, truth),
        brier(both, truth),
        squared_calibration_error(p, truth),
        1e6 * seconds / len(codes),
        covered_by_range(p, whole[:, 1], whole[:, 2], truth) if has_intervals else None,
        float((whole[:, 2] - whole[:, 1]).mean()) if has_intervals else None,
    )


def covered_by_range(p: Floats, lower: Floats, upper: Floats, happened: Ints) -> list[list[float]]:
    """Return `MethodFigures.coverage`; a bin of equal mass is in the range of its mean p."""
    bins, rng = EqualMassBins.of(p), np.random.default_rng(0)
    low, high, means = bins.means(lower), bins.means(upper), bins.means(p)

    def holds(outcomes: Ints | Bools) -> Bools:
        frequencies = bins.frequencies(outcomes)
        return np.asarray((low <= frequencies) & (frequencies <= high))

    fair = np.mean([holds(rng.random(len(p)) < p) for _ in range(N_SIMULATIONS)], axis=0)
    place = np.clip(np.searchsorted(RANGES, means, side="right") - 1, 0, len(RANGES) - 2)
    parts = (bins.counts, bins.counts * holds(happened), bins.counts * fair)
    sums = [np.bincount(place, weights=part, minlength=len(RANGES) - 1) for part in parts]
    return [[float(one) for one in row] for row in zip(*sums, strict=True)]


def run(
    streams: kept.Names = None,
    examples: int = EXAMPLES,
    jobs: kept.Jobs = 1,
    results: kept.ResultsFile = Path("calibration.jsonl"),
    data_dir: DataDir = None,
) -> Iterator[Result]:
    """Measure the calibration of another model's scores, with labels 0, 250 and 2,000 late.

    Three models are fitted on the first fifth of each stream, then frozen; each method answers the
    rest. Log loss, Brier score, debiased calibration error and microseconds, means over the pairs
    of stream and model; the pairs on which ours is best or near it; coverage by ranges of p.
    """
    names = chosen("--streams", streams, ",", tuple(STREAMS))
    cells = [
        ScoreCell(name, model, late, examples, data_dir)
        for name in names
        for model in MODELS
        for late in LATE
    ]
    found = kept.measured_cells(cells, measure, dict[str, MethodFigures], results, jobs)
    lines = {cell: one for cell, one in found.items() if not isinstance(one, str)}
    for cell, one in found.items():
        if isinstance(one, str):
            tell(f"{cell}: not run: {one}")
    whole = table(lines)
    for plain in whole.to_dict("records"):
        has = plain.keys() if plain["method"] == OURS else plain.keys() - {"coverage", "width"}
        yield Result({name: value for name, value in plain.items() if name in has}, [])
    yield from compared(whole)


def table(found: Mapping[ScoreCell, Mapping[str, MethodFigures]]) -> DataFrame:
    """Return a row for each method of each cell."""
    return DataFrame(
        {
            "stream": cell.stream, "model": cell.model, "late": cell.late, "method": method,
            "log_loss": one.log_loss, "brier": one.brier,
            "calibration_error": max(one.squared_calibration_error, 0.0) ** 0.5,
            "microseconds": one.microseconds, "coverage": one.coverage, "width": one.width,
        }
        for cell, methods in found.items()
        for method, one in methods.items()
    )  # fmt: skip


FIGURES = ["log_loss", "brier", "calibration_error", "microseconds"]


def means(whole: DataFrame, late: int) -> DataFrame:
    """Return the means over the pairs, a row for each method, the lowest log loss first."""
    of_late = whole[whole.late == late]
    return of_late.groupby("method")[FIGURES].mean().sort_values("log_loss")


def beside(whole: DataFrame, late: int) -> DataFrame:
    """Return the log loss of the score, of ours, and of the best other method on each pair."""
    of_late = whole[whole.late == late]
    losses = of_late.pivot_table("log_loss", ["stream", "model"], "method", sort=False)
    others = losses.drop(columns=[OURS, LOOP])
    found = DataFrame({"raw": losses[RAW], "ours": losses[OURS]})
    found["other"], found["best"] = others.min(axis=1), others.idxmin(axis=1)
    found["near"] = found.ours <= found.other + NEAR
    return found


def coverage(whole: DataFrame, late: int) -> Sequence[Sequence[float]]:
    """Return for each range of p: its examples, the share covered, and that of perfect ones."""
    rows = whole[(whole.late == late) & (whole.method == OURS)].coverage
    sums = np.sum([np.array(one) for one in rows], axis=0)
    return [[n, held / n, fair / n] if n else [0.0, np.nan, np.nan] for n, held, fair in sums]


def speed(whole: DataFrame) -> float:
    """Return examples a second of processor time in batches of 1,000, a mean over the pairs."""
    at_once = whole[(whole.late == 0) & (whole.method == LOOP)]
    return float(1e6 / at_once.microseconds.mean())


@dataclass(frozen=True, slots=True)
class Goals:
    """What is to be reached, with labels so late."""

    n_pairs: int
    n_near: int
    least_coverage: float  # of the ranges of p that have examples

    @classmethod
    def of(cls, whole: DataFrame, late: int) -> Self:
        """Return what was measured."""
        pairs = beside(whole, late)
        least = min(share for n, share, _ in coverage(whole, late) if n)
        return cls(len(pairs), int(pairs.near.sum()), float(least))


def compared(whole: DataFrame) -> Iterator[Result]:
    """Yield the means, and the goals."""
    for late in sorted(set(whole.late)):
        of_all, goals = means(whole, late), Goals.of(whole, late)
        cells = [list(one) for one in of_all.itertuples()]
        title = f"labels {late:,} late: means over {goals.n_pairs} pairs"
        bounds = {"pairs best or near": (goals.n_near, GOAL_NEAR),
                  "least coverage": (goals.least_coverage, GOAL_COVERAGE)}  # fmt: skip
        yield Result(
            {"late": late, "means": of_all.reset_index().to_dict("records")},
            [printed(title, ["", *FIGURES], cells)],
            [check(name, *bound, is_least=True) for name, bound in bounds.items()],
        )
    fast = check("examples a second, batches of 1,000", speed(whole), GOAL_SPEED, is_least=True)
    yield Result({"examples_a_second": speed(whole)}, [""], [fast])
