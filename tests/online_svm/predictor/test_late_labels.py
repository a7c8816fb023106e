"""Labels that come after their examples: scored by the original answer, learned in event order."""

import numpy as np
import pytest

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidExample
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock

SMALL = {
    "classes": ["a", "b"],
    "committee": "single",
    "kernel": "linear",
    "window": 60,
    "refit_every": 20,
    "metrics_every": 15,
    "monitors": "off",
}


def settings(**changes):
    return PredictorConfig.model_validate(SMALL | {"horizon": 12} | changes)


def stream(n, rng, classes=("a", "b"), longest=30, never=0.1):
    """Return events in order: examples by number, and the labels that come for them."""
    X = rng.normal(size=(n, 2))
    codes = np.clip(np.floor(X[:, 0] + 0.7 * rng.normal(size=n) + 1), 0, len(classes) - 1)
    labels = [classes[int(code)] for code in codes]
    delays = np.where(rng.random(n) < never, 10**6, rng.integers(0, longest, n))
    due = sorted((i + delay + 0.5, i) for i, delay in enumerate(delays) if delay > 0)
    events, k = [], 0
    for i in range(n):
        while k < len(due) and due[k][0] < i:
            events.append(("label", due[k][1], labels[due[k][1]]))
            k += 1
        events.append(("example", i, labels[i] if delays[i] == 0 else None))
        if rng.random() < 0.05 and i > 5:
            events.append(("label", int(rng.integers(i)), str(rng.choice(classes))))
    return X, labels, events


def follow(predictor, X, events, size):
    """Answer events in calls of `size`; return the answers one by one, and what labels gave."""
    answers, outcomes = [], []
    for begin in range(0, len(events), size):
        for kind, i, label in events[begin : begin + size]:
            if kind == "example":
                time = 1000 * i - 700 * (i % 3)
                predictor.late.accept(X[i], id=str(i), label=label, time=time)
                continue
            try:
                outcomes.append(predictor.late.label(str(i), label))
            except InvalidExample as error:
                outcomes.append(error.code)
        for answer in predictor.answer_accepted():
            rows = answer
            if isinstance(answer, PredictionBlock):
                rows = [answer.row(k) for k in range(len(answer))]
            answers += rows if isinstance(rows, list) else [rows]
    return answers, outcomes


CONFIGS = {
    "two classes": {},
    "arrival": {"maturity": "arrival"},
    "time": {"horizon_in": "time", "horizon": 9000, "max_pending": 9},
    "found classes": {"classes": None},
    "committee": {"committee": "default", "kernel": "rbf", "maps": ["platt", "mixed"]},
    "maps": {"maps_every": 7, "refit_lag": 0, "maps": ["isotonic", "mixed"]},
    "linear": {"learner": "linear"},
    "monitors": {"monitors": "default", "alarm_level": 0.5, "tolerance": 0.001},
}


@pytest.mark.parametrize("changes", CONFIGS.values(), ids=CONFIGS)
def test_where_calls_are_cut_changes_no_bit(changes):
    config = settings(**changes)
    X, _, events = stream(220, np.random.default_rng(3))
    one = OnlinePredictor(config)
    expected = follow(one, X, events, 1)
    assert len({type(answer) for answer in expected[0]}) == 2
    for size in (7, 64, 1024):
        other = OnlinePredictor(config)
        assert follow(other, X, events, size) == expected
        assert other.snapshot() == one.snapshot()


@pytest.mark.parametrize("changes", CONFIGS.values(), ids=CONFIGS)
def test_a_snapshot_at_any_point_continues_bit_for_bit(changes):
    config = settings(**changes)
    X, _, events = stream(150, np.random.default_rng(4))
    expected = follow(OnlinePredictor(config), X, events, 16)
    moving = OnlinePredictor(config)
    answers, outcomes = [], []
    for begin in range(0, len(events), 16):
        successor = OnlinePredictor(config)
        successor.restore(moving.snapshot())
        assert successor.snapshot() == moving.snapshot()
        moving = successor
        more = follow(moving, X, events[begin : begin + 16], 16)
        answers, outcomes = answers + more[0], outcomes + more[1]
    assert (answers, outcomes) == expected
