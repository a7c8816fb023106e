"""Boosted trees that are retrained and recalibrated nightly, ours, and both together."""

import time
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from scipy.special import logit
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # ships no types

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream import frames
from online_svm.stream.alarm import Alarm
from online_svm.stream.input_batch import DelayedLabel, InputBatch
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Floats, Ints
from scripts.bench import kept
from scripts.bench.quality import memory
from scripts.bench.quality.memory import END, RETRAINED_EVERY, log_loss, nightly
from scripts.bench.quality.score_methods import isotonic, rolling
from scripts.bench.report import Result, Values
from scripts.command_line import DataDir, chosen
from workers.push.datasets import data_directory

STREAMS = ("employment", "flights", "elec", "adult")
LATE = (0, RETRAINED_EVERY)  # answers that follow an example's own before its label comes
CALIBRATED_ON = 5_000  # the newest labels that the isotonic regression is fitted to

OURS: dict[str, dict[str, str]] = {
    "ours": {},
    "ours, trees as member": {"scores": "probability", "score_use": "member"},
    "ours calibrates trees": {"scores": "probability"},
}


def run(
    streams: kept.Names = None,
    examples: Annotated[
        int | None, typer.Option(min=5_000, help="Of each stream, at most; default all.")
    ] = None,
    data_dir: DataDir = None,
) -> Iterator[Result]:
    """Measure what replaces boosted trees that are retrained every 2,000 rows on all rows.

    The trees as they are, and after isotonic regression on the last 5,000 labels; ours alone, with
    the score of the trees as a member, and as calibrator of the trees. Log loss over all rows and
    over the last 10,000, accuracy and what was announced, processor time over that of the
    calibrated trees, first alarm. Labels come at once, then 2,000 answers late. Rows before the
    first trees are not scored.
    """
    for name in chosen("--streams", streams, ",", STREAMS):
        X, y = memory.STREAMS[name](data_directory(data_dir))
        for late in LATE:
            with threadpool_limits(1):
                rows = measured(X[:examples], y[:examples], late)
            yield Result([{"stream": name, "late": late} | row for row in rows])


def measured(X: pd.DataFrame, y: Ints, late: int) -> list[Values]:
    """Return the figures of each method on a stream of two classes."""
    began = time.process_time()
    trees = nightly(X, y, late)[:, 1]
    first = late + RETRAINED_EVERY  # the row that the first trees answer
    trained = time.process_time() - began
    recalibrated = rolling(isotonic, CALIBRATED_ON, RETRAINED_EVERY)
    calibrated = np.concatenate((trees[:first], recalibrated(trees[first:], y[first:], late)))
    peer = time.process_time() - began
    found = [
        figures("trees", trees[first:], y[first:]) | {"time": trained / peer},
        figures("trees, isotonic", calibrated[first:], y[first:]) | {"time": 1.0},
    ]
    versions = np.arange(len(y)) // RETRAINED_EVERY
    scores = pd.DataFrame({"score": logit(trees), "score_version": versions.astype(str)})
    scores.loc[: first - 1] = None
    for name, settings in OURS.items():
        began = time.process_time()
        takes = pd.concat((scores, X), axis=1) if "scores" in settings else X
        p, alarms = answers(takes, y, late, settings)
        spent = time.process_time() - began + (trained if "scores" in settings else 0.0)
        found.append(figures(name, p[first:], y[first:]) | {"time": spent / peer} | alarms)
    return found


def answers(X: pd.DataFrame, y: Ints, late: int, settings: dict[str, Any]) -> tuple[Floats, Values]:
    """Return the probabilities of class 1, and the number of alarms and the first one."""
    delay = {"horizon": late + 1, "maturity": "arrival"} if late else {}
    config = PredictorConfig.model_validate({"classes": ("0", "1")} | settings | delay)
    predictor = OnlinePredictor(config)
    names = dict.fromkeys(X.columns if settings.get("score_use") or not settings else X.columns[:2])
    schema = predictor.schema.knowing(names).of_example(names)
    rows, labels, n = frames.rows(X[[*names]], schema), list(map(str, y.tolist())), len(y)
    if late:
        at = [i + max(0, i - late) for i in range(n)]  # entries before: examples, and labels
        come = {at[i] + 1: DelayedLabel(str(i - late), labels[i - late]) for i in range(late, n)}
        ids = list(map(str, range(n)))
        batch = InputBatch(rows, [None] * n, at, come, schema=schema, ids=ids)
        found = predictor.process(batch).found
    else:
        found = predictor.step_many(rows, labels, schema=schema)
    p = np.concatenate([one.point[:, 1] for one in found if isinstance(one, PredictionBlock)])
    alarms = [one for one in found if isinstance(one, Alarm)]
    first: Values = {"first_alarm": alarms[0].n, "words": alarms[0].words} if alarms else {}
    return p, {"alarms": len(alarms)} | first


def figures(name: str, p: Floats, y: Ints) -> Values:
    """Return the losses and the accuracy of the probabilities of class 1."""
    both = np.column_stack((1.0 - p, p))
    return {
        "method": name,
        "log_loss": log_loss(both, y),
        "at_end": log_loss(both[-END:], y[-END:]),
        "accuracy": float(((p > 0.5) == y).mean()),
        "announced": float(both.max(axis=1).mean()),
    }
