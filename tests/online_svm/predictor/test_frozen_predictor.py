"""A published state answers as the predictor itself would answer an entry without a label."""

from itertools import pairwise

import numpy as np
import pytest

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.predictor.frozen_predictor import FrozenPredictor
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.storage.state import pack, unpack
from workers.message.encode import encode_block

KINDS = {
    "pair": {},
    "single": {"committee": "single", "taxonomy": "class-rank"},
    "discovered": {"classes": None},
    "three classes": {"classes": ("a", "b", "c")},
    "mixed maps": {"maps": ("platt", "venn-abers", "evidential-logistic", "implied", "mixed")},
    "gaps": {},
    "costs": {"costs": {y: {"a": y == "b", "b": 5.0 * (y == "a"), "review": 0.1} for y in "ab"}},
    "sets": {"set_coverage": 0.8},
    "promise": {"promise": {"error": 0.3, "confidence": 0.9}},
    "late labels": {"horizon": 7},
    "alarms": {"window": 2000, "refit_every": 200},
    "reset": {"window": 2000, "refit_every": 200, "on_drift": "reset"},
}


def config_of(kind):
    given = {"classes": ("a", "b"), "window": 80, "refit_every": 20, "metrics_every": 10}
    return PredictorConfig(**given | KINDS[kind])


def stream(kind, count, seed=3):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count, 3))
    names = ("a", "b", "c") if kind == "three classes" else ("a", "b")
    cuts = np.digitize(X[:, 0] + 0.5 * generator.normal(size=count), [-0.4, 0.5][: len(names) - 1])
    labels = [names[i] for i in cuts]
    if kind in ("alarms", "reset"):  # the relation turns round: an alarm is raised and stays open
        labels[300:] = ["b" if label == "a" else "a" for label in labels[300:]]
    if kind == "gaps":
        labels[100] = None
    return X, labels


def feed(predictor, X, labels):
    schema = predictor.schema.of_features(None, X.shape[1])
    predictor.step_many(X, labels, schema=schema)


def payloads(block, seq):
    return encode_block(block, [seq] * len(block), ["an id"] * len(block))


def answers_alike(predictor, X):
    """Check one state against a copy of the predictor that answers each row on its own."""
    state = FrozenPredictor.restore(predictor.frozen().snapshot(), predictor.config)
    said = payloads(state.answer(X), seq=predictor.n)
    for row, payload in zip(X, said, strict=True):
        own = OnlinePredictor(predictor.config)
        own.restore(predictor.snapshot())
        block = own.step_many(row[None, :], [None])[0]
        assert payloads(block, seq=predictor.n) == [payload]
    again = payloads(state.answer(X), seq=predictor.n)
    assert again == said, "an answer changed the state"
    assert state.snapshot() == predictor.frozen().snapshot()
    return said


@pytest.mark.parametrize("kind", KINDS)
def test_its_answers_are_those_of_the_predictor_at_that_n_byte_for_byte(kind):
    predictor = OnlinePredictor(config_of(kind))
    has_drift = kind in ("alarms", "reset")
    X, labels = stream(kind, 900)
    asked = np.random.default_rng(9).normal(size=(2, 3))
    seen = []
    cuts = [0, 5, 61, 140, 222, 240]
    if has_drift:
        cuts[3:] = range(300, 521, 13)
    for begin, stop in pairwise(cuts):
        feed(predictor, X[begin:stop], labels[begin:stop])
        seen += answers_alike(predictor, asked)
    assert b'"status":"warming"' in seen[0]
    assert b'"status":"ok"' in seen[-1]
    if kind == "gaps":
        assert b'"about":{"case":"unlabelled"}' in seen[5]
    if kind == "reset":  # what the model knew is given up at the alarm
        assert b'"status":"ok"' in seen[5]
        assert any(b'"status":"warming"' in payload for payload in seen[6:])
    if kind == "alarms":
        assert any(b'"about":{"case":"alarm"' in payload for payload in seen)


def test_a_damaged_or_foreign_state_is_refused_and_says_why():
    predictor = OnlinePredictor(config_of("pair"))
    feed(predictor, *stream("pair", 120))
    data = predictor.frozen().snapshot()
    with pytest.raises(InvalidSnapshot, match="another configuration"):
        FrozenPredictor.restore(data, config_of("late labels"))
    with pytest.raises(InvalidSnapshot):
        FrozenPredictor.restore(data[: len(data) // 2], predictor.config)
    with pytest.raises(InvalidSnapshot):
        FrozenPredictor.restore(predictor.snapshot(), predictor.config)
    turned = bytearray(data)
    turned[len(data) // 3] ^= 1
    with pytest.raises(InvalidSnapshot):
        FrozenPredictor.restore(bytes(turned), predictor.config)


NOT_FITTING = [
    ("pair", "n", -1), ("pair", "n", True), ("pair", "dimension", -1), ("pair", "dimension", 3.0),
    ("pair", "dimension", 4), ("pair", "guarantee", "perhaps"), ("pair", "notices", [1]),
    ("pair", "notices", "overall"), ("pair", "thresholds", [0.5]), ("promise", "thresholds", None),
    ("promise", "thresholds", []), ("promise", "thresholds", [0.5, 3.0]),
    ("promise", "thresholds", [-0.1, 0.5]), ("pair", "set_threshold", 0.5),
    ("sets", "set_threshold", None), ("sets", "set_threshold", 2.0),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "value"), NOT_FITTING, ids=str)
def test_a_published_state_that_contradicts_itself_is_refused(kind, name, value):
    predictor = OnlinePredictor(config_of(kind))
    feed(predictor, *stream(kind, 30))
    header, arrays = unpack(predictor.frozen().snapshot())
    FrozenPredictor.restore(pack(header, arrays), predictor.config)
    header[name] = value
    if value is None:
        del header[name]
    with pytest.raises(InvalidSnapshot, match=name.removeprefix("set_")):
        FrozenPredictor.restore(pack(header, arrays), predictor.config)
