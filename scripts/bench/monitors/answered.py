"""Streams that our predictor answers: independent examples, late labels, and recorded ones."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.alarm import Alarm
from online_svm.stream.input_batch import InputBatch, LateLabel
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.scored_rows import ScoredRows
from online_svm.types import Floats, Ints
from scripts.bench.monitors.worlds import WatchedStream
from scripts.bench.quality.methods import answers_of
from scripts.bench.quality.streams import stream

INDEPENDENT = {f"i.i.d., {k} classes, our answers": k for k in (2, 3, 4, 7)}
"""Independent examples of a few classes, many of them with heavy tails. Nothing changes in them.
What is announced after a hundred examples is off by several points all the same: it was learned
from few."""

INDEPENDENT_ROWS = 1_500
"""With no tolerance for what was learned from few, alarms came between examples 100 and 1,008."""

FREEDOM = (np.inf, 3.0, 1.5, 1.0)
"""Degrees of freedom of the features' t distributions, in turn: from the normal to Cauchy's."""

LATE_ROWS, RATE, HORIZON = 3_000, 0.3, 250
SOONER = (240, 0)
"""Examples from an answer to its label, of the two classes."""

LATE = {
    f"positives sooner, by {maturity}": PredictorConfig.model_validate(
        {
            "classes": ("no", "yes"),
            "committee": "single",
            "horizon": HORIZON,
            "maturity": maturity,
        }
    )
    for maturity in ("horizon", "arrival")
}
"""Nothing changes in these streams: the two rules differ in when an example is learned."""

REAL: dict[str, int | None] = {"2cdt": 400, "2cht": 400, "moving-squares": None, "elec2": None}
"""Examples before the first change, where there is a moment: 2cdt and 2cht take a step every 400
examples, moving-squares moves at all times, and of Elec2 nobody knows."""


def independent(classes: int, seed: int) -> tuple[Floats, Ints]:
    """Return features of shape (`INDEPENDENT_ROWS`, 2, 4 or 8) and the codes of their labels.

    Each class has a centre of its own, all have one distribution about it. In every third stream
    some classes are rarer than others.

    Examples
    --------
    >>> X, codes = independent(3, seed=0)
    >>> len(X), np.unique(codes)
    (1500, array([0, 1, 2]))
    """
    rng = np.random.default_rng([classes, seed])
    d = int(rng.choice([2, 4, 8]))
    apart = float(rng.choice([0.7, 1.2, 2.0]))
    shares = np.full(classes, 1 / classes)
    if seed % 3 == 0:
        shares = rng.dirichlet(np.full(classes, 3.0))
    centres = 1.5 * apart / np.sqrt(d) * rng.normal(size=(classes, d))
    codes = rng.choice(classes, INDEPENDENT_ROWS, p=shares)
    freedom = FREEDOM[seed % len(FREEDOM)]
    shape = (INDEPENDENT_ROWS, d)
    noise = rng.normal(size=shape) if freedom == np.inf else rng.standard_t(freedom, shape)
    return centres[codes] + noise, codes


def independent_alarms(classes: int, seed: int) -> list[Alarm]:
    """Return the alarms of the default predictor in such a stream, in order."""
    X, codes = independent(classes, seed)
    answers = answers_of(X, codes, classes)
    return [one for one in answers if isinstance(one, Alarm)]


def late_alarms(
    config: PredictorConfig, seed: int, delays: tuple[int, int] = SOONER
) -> list[Alarm]:
    """Return the calibration alarms of the predictor in a stream of 3,000 examples, in order.

    Of the examples 30 % are of the second class; one of two features says which, with one standard
    deviation between the classes. Labels come so many examples after the answer, by class; both
    delays are less than the horizon.
    """
    rng = np.random.default_rng(seed)
    codes = (rng.random(LATE_ROWS) < RATE).astype(np.int64)
    X = rng.normal(size=(LATE_ROWS, 2))
    X[:, 0] += codes
    predictor = OnlinePredictor(config)
    rows, late, index = list[int](), dict[int, LateLabel](), 0
    for i in range(LATE_ROWS):
        rows.append(index)
        for code in (0, 1):
            known = i - delays[code]
            if known >= 0 and codes[known] == code:
                index += 1
                late[index] = LateLabel(str(known), ("no", "yes")[code])
        index += 1
    batch = InputBatch(X, [None] * LATE_ROWS, rows, late, ids=[str(i) for i in range(LATE_ROWS)])
    return [alarm for _, alarm in predictor.process(batch).alarms if alarm.kind == "calibration"]


@lru_cache(maxsize=1)
def answered(name: str) -> WatchedStream:
    """Return the first 10,000 examples of a stream with the answers of the predictor.

    It has the default settings, but for one machine in place of the committee, which takes a
    fraction of the time.
    """
    X, codes = stream(name, seed=0)
    return WatchedStream.of(scored(X, codes))


def scored(X: Floats, codes: Ints) -> ScoredRows:
    """Return the rows that the monitors of a feed see, of all models together."""
    answers = answers_of(X, codes, int(codes.max()) + 1, committee="single", monitors="off")
    parts = [
        ScoredRows.of(block, codes[block.n], X=X[block.n])
        for block in answers
        if isinstance(block, PredictionBlock) and block.status == "ok"
    ]
    # As of the last model: no monitor asks which one answered.
    names = ("n", "columns", "point", "lower", "upper", "venn_point", "scores", "category", "X")
    whole: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in names
    }
    return replace(parts[-1], **whole)
