"""Calibration of the scores of frozen models, as labels come: ours and other methods."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

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
from scripts.bench.quality.compared import best_others, records
from scripts.bench.quality.methods import FIT_EVERY as WARM_UP
from scripts.bench.quality.score_methods import LOOP, METHODS, OURS, RAW
from scripts.bench.quality.streams import stream
from scripts.bench.report import Result, Values, check
from scripts.command_line import DataDir, chosen

EXAMPLES = 8000  # of a stream, at most
FITTED_SHARE = 0.2  # of the stream, at its beginning: the model is fitted on it, then frozen
LATE = (0, 250, 2000)
NEAR = 0.002  # a log loss that exceeds the best by less counts as near it
GOAL_NEAR, GOAL_SPEED, GOAL_COVERAGE = 22, 40_000, 0.87
RANGES = (0.0, 0.03, 0.1, 0.3, 0.7, 0.9, 0.97, 1.0)  # of p, for the coverage of intervals


STREAMS = ("elec2", "elec2-late", "adult-by-age", "bananas", "2cdt", "hyperplane", "mixed-drift",
           "agrawal-gradual")  # fmt: skip
"""Fixed before any result. All but bananas drift."""

MODELS: dict[str, Callable[[], Any]] = {
    "trees": partial(HistGradientBoostingClassifier, random_state=0),
    "logistic": partial(LogisticRegression, max_iter=1000),
    "network": partial(MLPClassifier, max_iter=300, random_state=0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCell(kept.Cell):
    """A method on the scores of one frozen model, with labels so late."""

    model: str
    late: int


@lru_cache(maxsize=2)
def scored(name: str, model: str, examples: int, data_dir: Path | None) -> tuple[Floats, Ints]:
    """Return the probabilities that a frozen model gives after its part, and the codes."""
    X, codes = stream(name, 0, data_dir)
    X, codes = X[:examples], codes[:examples]
    first = int(FITTED_SHARE * len(X))
    fitted = make_pipeline(StandardScaler(), MODELS[model]()).fit(X[:first], codes[:first])
    return np.ascontiguousarray(fitted.predict_proba(X[first:])[:, 1]), codes[first:]


def measure(cell: ScoreCell) -> list[Values]:
    """Run a cell."""
    with threadpool_limits(1):  # threads that wait for a processor would slow each other down
        p, codes = scored(cell.stream, cell.model, cell.examples or EXAMPLES, cell.data_dir)
        began = time.process_time()
        answers = METHODS[cell.method](p, codes, cell.late)
        return [figures(answers, codes, time.process_time() - began)]


def figures(answers: Floats, codes: Ints, seconds: float) -> Values:
    """Return the figures of answers, shape (n,), or (n, 3) with the ends of their intervals.

    The first 250 are not scored. The calibration error is debiased, the time that of a processor.
    """
    whole, truth = answers[WARM_UP:], codes[WARM_UP:]
    p = whole if whole.ndim == 1 else np.ascontiguousarray(whole[:, 0])
    both = np.column_stack((1.0 - p, p))
    found: Values = {
        "log_loss": log_loss(both, truth),
        "brier": brier(both, truth),
        "squared_calibration_error": squared_calibration_error(p, truth),
        "microseconds": 1e6 * seconds / len(codes),
    }
    if whole.ndim == 2:
        found["coverage"] = covered_by_range(p, whole[:, 1], whole[:, 2], truth)
        found["width"] = float((whole[:, 2] - whole[:, 1]).mean())
    return found


def covered_by_range(p: Floats, lower: Floats, upper: Floats, happened: Ints) -> list[list[float]]:
    """Return three numbers for each range of p, in which a bin of equal mass is by its mean p.

    Its examples, those in bins that the mean interval covers, and the mean number of these if all
    probabilities were perfect.
    """
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
    values = {"stream": chosen("--streams", streams, ",", STREAMS), "model": MODELS, "late": LATE}
    cells = kept.cells_of(ScoreCell, data_dir, **values, method=METHODS, examples=[examples])
    found = kept.measured_cells(cells, measure, results, jobs)
    if not found.empty:
        yield Result(records(found), columns={})
        yield from compared(with_calibration_error(found))


def with_calibration_error(found: DataFrame) -> DataFrame:
    """Add the root of the squared calibration error, which may be estimated below 0."""
    return found.assign(calibration_error=found.squared_calibration_error.clip(lower=0.0) ** 0.5)


FIGURES = ["log_loss", "brier", "calibration_error", "microseconds"]


def means(whole: DataFrame, late: int) -> DataFrame:
    """Return the means over the pairs, a row for each method, the lowest log loss first."""
    of_late = whole[whole.late == late]
    return of_late.groupby("method")[FIGURES].mean().sort_values("log_loss")


def beside(whole: DataFrame, late: int) -> DataFrame:
    """Return the log loss of the score, of ours, and of the best other method on each pair."""
    of_late = whole[whole.late == late]
    losses = of_late.pivot_table("log_loss", ["stream", "model"], "method", sort=False)
    return best_others(losses, OURS, NEAR, left_out=[LOOP]).assign(raw=losses[RAW])


def coverage(whole: DataFrame, late: int) -> list[Values]:
    """Return for each range of p that has some its examples, and two shares of them.

    Those in bins that the mean interval covers; and how many would be for perfect probabilities.
    """
    rows = whole[(whole.late == late) & (whole.method == OURS)].coverage
    sums = np.sum([np.array(one) for one in rows], axis=0)
    return [
        {"p": f"{low:g} to {high:g}", "examples": n, "covered": held / n, "perfect": fair / n}
        for (low, high), (n, held, fair) in zip(pairwise(RANGES), sums, strict=True)
        if n
    ]


def speed(whole: DataFrame) -> float:
    """Return examples a second of processor time in batches of 1,000, a mean over the pairs."""
    at_once = whole[(whole.late == 0) & (whole.method == LOOP)]
    return float(1e6 / at_once.microseconds.mean())


def reached(whole: DataFrame, late: int) -> tuple[int, int, float]:
    """Return the number of pairs, of those on which ours is best or near, and least coverage.

    The latter is of the ranges of p that have examples.
    """
    pairs = beside(whole, late)
    least = min(one["covered"] for one in coverage(whole, late))
    return len(pairs), int(pairs.near.sum()), float(least)


def compared(whole: DataFrame) -> Iterator[Result]:
    """Yield the means with the goals, the pairs, and the coverage."""
    for late in sorted(set(whole.late)):
        title, (n_pairs, n_near, least) = f"labels {late:,} late", reached(whole, late)
        checks = [
            check("pairs best or near", n_near, GOAL_NEAR, is_least=True),
            check("least coverage", least, GOAL_COVERAGE, is_least=True),
        ]
        of_all = records(means(whole, late).reset_index())
        yield Result(of_all, f"{title}: means over {n_pairs} pairs", None, checks)
        yield Result(records(beside(whole, late).reset_index()), f"{title}: log loss")
        width = whole[(whole.late == late) & (whole.method == OURS)].width.mean()
        covered = f"{title}: examples in covered bins; mean width {width:.4f}"
        yield Result(coverage(whole, late), covered)
    rate = speed(whole)
    fast = check("examples a second, batches of 1,000", rate, GOAL_SPEED, is_least=True)
    yield Result([], checks=[fast])
