"""Labels without bound: a feed takes so many classes, each of so many bytes."""

import json

import numpy as np
import pytest
from world import drain, payloads, push, session

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.admin.verify import verify
from workers.config.settings import Limits
from workers.feed.position import START
from workers.session.answer import process

COUNT = 2500
CONFIG = PredictorConfig(window=100, refit_every=50, refit_lag=0, metrics_every=100, gamma=0.5)


def flood(count=COUNT, taken=100, known=60, filling="é" * 126):
    """Return the fields of entries of ever new labels, 256 bytes each, then of the first ones."""
    labels = [f"{i:04}{filling}" for i in range(count)]
    labels += [labels[i % taken] for i in range(known)]
    X = np.random.default_rng(0).normal(size=(len(labels), 3)).round(3)
    pairs = zip(X, labels, strict=True)
    return [[b"x", json.dumps(x.tolist()).encode(), b"y", label.encode()] for x, label in pairs]


def numbered(entries):
    return [(b"%d-0" % (i + 1), fields) for i, fields in enumerate(entries)]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_2500_distinct_long_labels_are_bounded_and_the_same_in_batches_of_any_size():
    entries, outcomes = numbered(flood()), []
    for size in (1, 7, 1024):
        predictor, position, out, met = OnlinePredictor(CONFIG), START, [], []
        for begin in range(0, len(entries), size):
            outcome = process(predictor, Limits(), position, entries[begin : begin + size])
            position = outcome.after
            out += outcome.out
            met += outcome.met
        outcomes.append((out, met, position, predictor.snapshot()))
    assert all(outcome == outcomes[0] for outcome in outcomes)
    out, met, position, snapshot = outcomes[0]
    rejected = [json.loads(payload)["code"] for payload in out if b'"rejected"' in payload]
    assert rejected == ["too_many_classes"] * (COUNT - 100)
    assert position.n == 160
    assert json.loads(out[-1])["status"] == "ok"
    assert max(map(len, out)) < 1 << 16
    assert max(len(report) for _, report in met) < 1 << 15
    assert len(snapshot) < 3 << 20  # three machines a class, the monitors of 64, a window


def test_labels_of_control_characters_make_answers_of_at_most_192_kib():
    entries = numbered(flood(100, filling="\x01" * 252))
    outcome = process(OnlinePredictor(CONFIG), Limits(), START, entries)
    assert not outcome.dlq
    assert json.loads(outcome.out[-1])["status"] == "ok"
    assert 1 << 16 < max(map(len, outcome.out)) < 192 << 10
    assert max(len(report) for _, report in outcome.met) < 96 << 10


@pytest.mark.parametrize(("label", "is_taken"), [("é" * 128, True), ("é" * 128 + "a", False)])
def test_the_bytes_of_a_label_are_bounded_unless_it_is_declared(label, is_taken):
    batch = numbered([[b"x", b"[1]", b"y", label.encode()]])
    discovered = process(OnlinePredictor(PredictorConfig()), Limits(), START, batch)
    assert (b'"warming"' in discovered.out[0]) == is_taken
    if not is_taken:
        answer = json.loads(discovered.out[0])
        assert (answer["code"], answer["reason"]) == ("label", "y has more than 256 bytes")
    declared = OnlinePredictor(PredictorConfig(classes=("a", label)))
    assert b'"warming"' in process(declared, Limits(), START, batch).out[0]


def test_a_rejected_class_leaves_no_trace():
    entries = flood(40, taken=4)
    kept = entries[:4] + entries[40:]
    config = PredictorConfig(window=40, refit_every=20, refit_lag=0, gamma=0.5)
    flooded, plain = OnlinePredictor(config), OnlinePredictor(config)
    outcome = process(flooded, Limits(max_classes=4), START, numbered(entries))
    assert len(outcome.dlq) == 36
    process(plain, Limits(max_classes=4), START, numbered(kept))
    assert flooded.snapshot() == plain.snapshot()


def test_declared_classes_are_not_counted():
    config = PredictorConfig(classes=("a", "b", "c"))
    batch = numbered([[b"x", b"[1]", b"y", label] for label in (b"a", b"b", b"c")])
    outcome = process(OnlinePredictor(config), Limits(max_classes=2), START, batch)
    assert not outcome.dlq


def test_a_feed_whose_classes_are_not_counted_takes_any_number():
    outcome = process(
        OnlinePredictor(CONFIG.model_copy(update={"refit_every": 500})),
        Limits(max_classes=None),
        START,
        numbered([[b"x", b"[1]", b"y", b"%d" % i] for i in range(110)]),
    )
    assert not outcome.dlq


def test_a_restart_goes_on_with_the_classes_there_were(store):
    entries, limits = flood(40, taken=6), Limits(max_classes=6, dedupe_window=10)
    push(store, entries)
    config = PredictorConfig(window=40, refit_every=20, refit_lag=0, gamma=0.5)
    for until in (3, 5, 30, 60, len(entries)):
        drain(session(store, 7, config, limits=limits, snapshot_every=15, keep_input=True), until)
    assert verify(store).is_identical
    expected = process(OnlinePredictor(config), limits, START, numbered(entries))
    assert [payload for _, payload in payloads(store)[0]] == expected.out
