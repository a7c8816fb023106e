"""Answers with a promised error rate: a decision is added, and nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest
from predictor_answers import alarms, reports, rows
from pydantic import ValidationError

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.input_batch import DelayedLabel, InputBatch

PROMISE = {"error": 0.1, "confidence": 0.9}
SETTINGS = {"classes": ("a", "b"), "window": 80, "refit_every": 20, "metrics_every": 10}


def stream(count=500, seed=3, swap_at=None):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count, 3))
    is_b = X[:, 0] + 0.1 * generator.normal(size=count) > 0
    if swap_at is not None:
        is_b[swap_at:] = ~is_b[swap_at:]
    labels = np.where(is_b, "b", "a").tolist()
    labels[70] = None
    return X, labels


def followed(config, **options):
    X, labels = stream(**options)
    predictor = OnlinePredictor(config)
    return predictor.step_many(X, labels, schema=predictor.schema.of_features(None, 3))


@pytest.mark.parametrize("promise", [PROMISE, {"error": 0.3, "miss": 0.2, "false_alarm": 0.2}])
def test_a_promise_adds_the_action_and_changes_nothing_else(promise):
    config = PredictorConfig(**SETTINGS, promise=promise)
    without = followed(config.model_copy(update={"promise": None}))
    found = followed(config)
    answers = rows(found)
    assert {row.action for row in answers} == {"a", "b", "review"}
    assert all(row.action in (row.label, "review") for row in answers)
    assert [replace(row, action=None) for row in answers] == rows(without)
    assert [replace(one, promise=None) for one in reports(found)] == reports(without)
    last = reports(found)[-1].promise
    assert last.holds
    is_ok = [row.status == "ok" for row in answers if row.n < reports(found)[-1].n]
    assert last.answered == sum(is_ok)
    assert last.decided == sum(row.action != "review" for row in answers[: len(is_ok)])


@pytest.mark.parametrize("policy", ["report", "refit", "reset"])
def test_an_alarm_sends_every_case_to_review_at_once(policy):
    slow = {"window": 200, "refit_every": 100, "alarm_level": 0.2, "committee": "single"}
    config = PredictorConfig(**SETTINGS | slow, promise={"error": 0.2}, on_drift=policy)
    found = followed(config, swap_at=380)
    raised = [one.n for one in alarms(found)]
    answers = rows(found)
    assert raised
    assert any(row.action != "review" for row in answers if row.n < raised[0])
    after = [row.action for row in answers if raised[0] <= row.n < raised[0] + 15]
    assert set(after) == {"review"}


def late(config):
    """Return the answers if labels come 25 examples late; a tenth never come."""
    X, labels = stream()
    came = {
        2 * i + 1: DelayedLabel(f"i{i - 25}", labels[i - 25] or "a")
        for i in range(25, len(X)) if i % 10
    }  # fmt: skip
    ids, nothing = [f"i{i}" for i in range(len(X))], [None] * len(X)
    batch = InputBatch(X, nothing, range(0, 2 * len(X), 2), came, ids=ids)
    return OnlinePredictor(config).process(batch).found


def test_late_labels_count_when_they_mature():
    config = PredictorConfig(**SETTINGS, promise=PROMISE, horizon=40)
    found = late(config)
    answers, last = rows(found), reports(found)[-1].promise
    assert {row.action for row in answers} == {"a", "b", "review"}
    assert last.holds
    assert last.withdrawn is None
    assert last.labels < reports(found)[-1].n


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"promise": {"confidence": 0.9}}, "must have a rate, as error"),
        ({"promise": {"error": 0}}, "promise"),
        ({"promise": {"errors": 0.1}}, "promise"),
        ({"classes": None}, "promise: declare the classes"),
        ({"classes": ("review", "b")}, "promise: declare the classes"),
        ({"classes": ("a", "b", "c"), "promise": {"miss": 0.1}}, "miss and false_alarm are"),
        ({"monitors": "off"}, "promise: an alarm withdraws it"),
        ({"horizon": 5, "maturity": "arrival"}, "promise: labels that come soon"),
        ({"costs": {"a": {"a": 0, "b": 2}, "b": {"a": 1, "b": 0}}}, "set one of the two"),
    ],
)
def test_what_a_promise_cannot_be_set_with_is_refused(settings, words):
    with pytest.raises(ValidationError, match=words):
        PredictorConfig(**{"classes": ("a", "b"), "promise": {"error": 0.1}} | settings)


def test_a_promise_is_stored_in_one_order():
    given = PredictorConfig(classes=("a", "b"), promise={"miss": 0.2, "error": 0.1})
    stored = given.model_dump(mode="json")
    assert list(stored["promise"].items()) == [("error", 0.1), ("miss", 0.2), ("confidence", 0.95)]
