"""Answers with a promised error rate: a decision is added, and nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from online_svm.config import PredictorConfig
from online_svm.predictor.frozen_predictor import FrozenPredictor
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.alarm import Alarm
from online_svm.stream.input_batch import DelayedLabel, InputBatch
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.validity_report import ValidityReport

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


def followed(config, cuts=(500,), **options):
    X, labels = stream(**options)
    found, predictor, begin = [], OnlinePredictor(config), 0
    for stop in cuts:
        schema = predictor.schema.of_features(None, 3)
        found += predictor.step_many(X[begin:stop], labels[begin:stop], schema=schema)
        state, begin = predictor.snapshot(), stop
        predictor = OnlinePredictor(config)
        predictor.restore(state)
    return found


def rows_of(answers):
    return [
        one.row(i) for one in answers if isinstance(one, PredictionBlock) for i in range(len(one))
    ]


def reports_of(answers):
    return [one for one in answers if isinstance(one, ValidityReport)]


@pytest.mark.parametrize("promise", [PROMISE, {"error": 0.3, "miss": 0.2, "false_alarm": 0.2}])
def test_a_promise_adds_the_action_and_changes_nothing_else(promise):
    config = PredictorConfig(**SETTINGS, promise=promise)
    without = followed(config.model_copy(update={"promise": None}))
    found = followed(config)
    rows = rows_of(found)
    assert {row.action for row in rows} == {"a", "b", "review"}
    assert all(row.action in (row.label, "review") for row in rows)
    assert [replace(row, action=None) for row in rows] == rows_of(without)
    assert [replace(one, promise=None) for one in reports_of(found)] == reports_of(without)
    last = reports_of(found)[-1].promise
    assert last.holds
    is_ok = [row.status == "ok" for row in rows if row.n < reports_of(found)[-1].n]
    assert last.answered == sum(is_ok)
    assert last.decided == sum(row.action != "review" for row in rows[: len(is_ok)])


def test_batches_and_restarts_change_no_decision():
    config = PredictorConfig(**SETTINGS, promise=PROMISE)
    found, cut = followed(config), followed(config, cuts=(1, 33, 34, 290, 500))
    assert rows_of(cut) == rows_of(found)
    assert reports_of(cut) == reports_of(found)


@pytest.mark.parametrize("policy", ["report", "refit", "reset"])
def test_an_alarm_sends_every_case_to_review_at_once(policy):
    slow = {"window": 200, "refit_every": 100, "alarm_level": 0.2, "committee": "single"}
    config = PredictorConfig(**SETTINGS | slow, promise={"error": 0.2}, on_drift=policy)
    found = followed(config, swap_at=380)
    raised = [one.n for one in found if isinstance(one, Alarm) and one.kind != "comparison"]
    rows = rows_of(found)
    assert raised
    assert any(row.action != "review" for row in rows if row.n < raised[0])
    after = [row.action for row in rows if raised[0] <= row.n < raised[0] + 15]
    assert set(after) == {"review"}
    assert rows_of(followed(config, cuts=(200, 401, 444, 500), swap_at=380)) == rows


def late(config, cuts, horizon=40):
    """Return the answers if labels come 25 examples late; a tenth never come."""
    X, labels = stream()
    items = []
    for i in range(len(X)):
        items.append((X[i], f"i{i}"))
        if i >= 25 and i % 10:
            items.append(DelayedLabel(f"i{i - 25}", labels[i - 25] or "a"))
    found, predictor, begin, accepted = [], OnlinePredictor(config), 0, 0
    for stop in (*cuts, len(items)):
        part = items[begin:stop]
        rows = [(k, item) for k, item in enumerate(part) if not isinstance(item, DelayedLabel)]
        labelled = {k: item for k, item in enumerate(part) if isinstance(item, DelayedLabel)}
        batch = InputBatch(
            np.array([x for _, (x, _) in rows]).reshape(-1, 3),
            [None] * len(rows),
            [k for k, _ in rows],
            labelled,
            ids=[id for _, (_, id) in rows],
            first=accepted,
            schema=predictor.schema.of_features(None, 3),
        )
        found += predictor.process(batch).found
        accepted += len(part)
        state, begin = predictor.snapshot(), stop
        predictor = OnlinePredictor(config)
        predictor.restore(state)
    return found


def test_late_labels_count_when_they_mature():
    config = PredictorConfig(**SETTINGS, promise=PROMISE, horizon=40)
    found = late(config, ())
    rows, last = rows_of(found), reports_of(found)[-1].promise
    assert {row.action for row in rows} == {"a", "b", "review"}
    assert last.holds
    assert last.withdrawn is None
    assert last.labels < reports_of(found)[-1].n
    cut = late(config, (1, 60, 61, 400, 777))
    assert rows_of(cut) == rows
    assert reports_of(cut) == reports_of(found)


def test_a_frozen_predictor_decides_by_the_thresholds_in_force():
    config = PredictorConfig(**SETTINGS, promise=PROMISE)
    X, labels = stream()
    predictor = OnlinePredictor(config)
    frozen = FrozenPredictor.restore(predictor.frozen().snapshot(), config)
    assert frozen.answer(X[:1]).row(0).action == "review"
    predictor.step_many(X, labels, schema=predictor.schema.of_features(None, 3))
    frozen = FrozenPredictor.restore(predictor.frozen().snapshot(), config)
    found = [frozen.answer(x[None]).row(0).action for x in X[:50]]
    assert {"a", "b"} <= set(found)
    answers = rows_of(predictor.step_many(X[:1], [None], schema=predictor.schema))
    assert answers[0].action == found[0]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"promise": {"confidence": 0.9}}, "must have a rate, as error"),
        ({"promise": {"error": 0}}, "promise"),
        ({"promise": {"errors": 0.1}}, "promise"),
        ({"classes": None}, "promise: declare the classes"),
        ({"classes": ("review", "b")}, "promise: declare the classes"),
        (
            {"classes": ("a", "b", "c"), "promise": {"miss": 0.1}},
            "miss and false_alarm are",
        ),
        ({"monitors": "off"}, "promise: an alarm withdraws it"),
        ({"horizon": 5, "maturity": "arrival"}, "promise: labels that come soon"),
        ({"given_answers": True}, "promise: is about the answers of the feed"),
        ({"costs": {"a": {"a": 0, "b": 2}, "b": {"a": 1, "b": 0}}}, "set one of the two"),
    ],
)
def test_what_a_promise_cannot_be_set_with_is_refused(settings, words):
    with pytest.raises(ValidationError, match=words):
        PredictorConfig(**{"classes": ("a", "b"), "promise": {"error": 0.1}} | settings)


def test_a_promise_is_stored_in_one_order_and_only_where_it_is_set():
    given = PredictorConfig(classes=("a", "b"), promise={"miss": 0.2, "error": 0.1})
    stored = given.model_dump(mode="json")
    assert list(stored["promise"].items()) == [("error", 0.1), ("miss", 0.2), ("confidence", 0.95)]
    assert "promise" not in PredictorConfig(classes=("a", "b")).model_dump(mode="json")
