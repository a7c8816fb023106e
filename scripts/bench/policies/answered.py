"""Answers of the predictor under a policy, and of a peer, each before its label is learned."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.stream_monitors import ONE_CHANGE
from online_svm.stream.alarm import Alarm
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Bools, Floats
from scripts.bench.policies.streams import Stream
from scripts.bench.quality.answers import unknown
from scripts.bench.quality.river_models import adaptive_forest, of_river
from workers.history.backtest.kept_results import code_digest

ARF = "river ARF"


@dataclass(frozen=True, slots=True)
class Answered:
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


Method = Callable[[Stream], Answered]


def ours(stream: Stream, **changes: Any) -> Answered:
    """Return the headline for the default settings, but for some changes.

    Examples
    --------
    >>> from scripts.bench.policies.streams import stream
    >>> found = ours(stream("swap", 0, 60), on_drift="reset")
    >>> found.probabilities.shape, int(found.is_warming.sum()), found.acted
    ((60, 2), 10, [])
    """
    classes = tuple(str(code) for code in range(stream.n_classes))
    config = PredictorConfig.model_validate({"classes": classes} | changes)
    labels = [str(code) for code in stream.codes.tolist()]
    n = len(labels)
    said, is_warming, alarms = unknown(n, stream.n_classes), np.ones(n, dtype=np.bool_), []
    for answer in OnlinePredictor(config).step_many(stream.X, labels):
        if isinstance(answer, Alarm):
            alarms.append(answer)
        elif isinstance(answer, PredictionBlock) and answer.status == "ok":
            said[answer.n] = answer.point  # every example is labelled: n numbers them
            is_warming[answer.n] = False
    return Answered(said, is_warming, changes_acted_on(alarms))


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


def _river_forest(stream: Stream) -> Answered:
    (said,) = of_river(ARF, adaptive_forest)(stream.X, stream.codes, stream.n_classes).values()
    return Answered(said.probabilities, np.zeros(len(stream.X), dtype=np.bool_), [])


METHODS: dict[str, Method] = {
    "none": partial(ours, monitors="off"),
    "report": partial(ours, on_drift="report"),
    "refit": partial(ours, on_drift="refit"),
    "reset": partial(ours, on_drift="reset"),
    ARF: _river_forest,
}
"""`none` has no monitors; the next three are `on_drift`."""


def program(method: str) -> str:
    """Return which program a method is of: kept results are of it, and of no other.

    Examples
    --------
    >>> program("river ARF").partition(" ")[0]
    'river'
    """
    return f"river {version('river')}" if method == ARF else f"online-svm {code_digest()[:16]}"
