"""Labels without bound: a feed takes so many classes, each of so many bytes."""

import json

import numpy as np
import pytest
from pure_replay import replay, replayed
from world import drain, payloads, push, session

from online_svm.config import PredictorConfig
from workers.admin.verify import verify
from workers.config.settings import Limits

COUNT = 2500
CONFIG = PredictorConfig(window=100, refit_every=50, refit_lag=0, metrics_every=100, gamma=0.5)
SMALL = PredictorConfig(window=40, refit_every=20, refit_lag=0, gamma=0.5)


def flood(count=COUNT, taken=100, known=60, filling="é" * 126):
    """Return the fields of entries of ever new labels, 256 bytes each, then of the first ones."""
    labels = [f"{i:04}{filling}" for i in range(count)]
    labels += [labels[i % taken] for i in range(known)]
    X = np.random.default_rng(0).normal(size=(len(labels), 3)).round(3)
    pairs = zip(X, labels, strict=True)
    return [[b"x", json.dumps(x.tolist()).encode(), b"y", label.encode()] for x, label in pairs]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_2500_distinct_long_labels_are_bounded_and_the_same_in_batches_of_any_size():
    entries, outcomes = flood(), []
    for size in (1, 7, 1024):
        *found, predictor = replayed(CONFIG, entries, size=size)
        outcomes.append([*found, predictor.snapshot()])
    assert all(outcome == outcomes[0] for outcome in outcomes)
    out, met, position, snapshot = outcomes[0]
    rejected = [json.loads(payload)["code"] for payload in out if b'"rejected"' in payload]
    assert rejected == ["too_many_classes"] * (COUNT - 100)
    assert position.n == 160
    assert json.loads(out[-1])["status"] == "ok"
    assert max(map(len, out)) < 1 << 16
    assert max(len(report) for _, report in met) < 1 << 15
    # Three machines a class, the monitors of 64, a window; twice a forest of 120 trees, whose 64
    # leaves have two bytes for each of 101 classes.
    assert len(snapshot) < (3 << 20) + 2 * 120 * 64 * 101 * 2


def test_labels_of_control_characters_make_answers_of_at_most_192_kib():
    ((outcome, _),) = replay(CONFIG, flood(100, filling="\x01" * 252))
    assert not outcome.dlq
    assert json.loads(outcome.out[-1])["status"] == "ok"
    assert 1 << 16 < max(map(len, outcome.out)) < 192 << 10
    assert max(len(report) for _, report in outcome.met) < 96 << 10


@pytest.mark.parametrize(("label", "is_taken"), [("é" * 128, True), ("é" * 128 + "a", False)])
def test_the_bytes_of_a_label_are_bounded_unless_it_is_declared(label, is_taken):
    entry = ["x", "[1]", "y", label]
    (discovered,) = replayed(PredictorConfig(), [entry])[0]
    assert (b'"warming"' in discovered) == is_taken
    if not is_taken:
        answer = json.loads(discovered)
        assert (answer["code"], answer["reason"]) == ("label", "y has more than 256 bytes")
    assert b'"warming"' in replayed(PredictorConfig(classes=("a", label)), [entry])[0][0]


def test_a_rejected_class_leaves_no_trace():
    entries = flood(40, taken=4)
    ((outcome, flooded),) = replay(SMALL, entries, Limits(max_classes=4))
    assert len(outcome.dlq) == 36
    ((_, plain),) = replay(SMALL, entries[:4] + entries[40:], Limits(max_classes=4))
    assert flooded.snapshot() == plain.snapshot()


@pytest.mark.parametrize(("config", "most", "labels"), [
    ({"classes": ("a", "b", "c")}, 2, "abc"),
    ({"refit_every": 500}, None, map(str, range(110))),
], ids=["declared", "without a bound"])  # fmt: skip
def test_classes_that_are_not_counted_are_taken_in_any_number(config, most, labels):
    entries = [["x", "[1]", "y", label] for label in labels]
    ((outcome, _),) = replay(PredictorConfig(**config), entries, Limits(max_classes=most))
    assert not outcome.dlq


def test_a_restart_goes_on_with_the_classes_there_were(store):
    entries, limits = flood(40, taken=6), Limits(max_classes=6, dedupe_window=10)
    push(store, entries)
    for until in (3, 5, 30, 60, len(entries)):
        drain(session(store, 7, SMALL, limits=limits, snapshot_every=15, keep_input=True), until)
    assert verify(store).is_identical
    assert [payload for _, payload in payloads(store)[0]] == replayed(SMALL, entries, limits)[0]
