"""river's OnlineClassifier: all of river's checks, and the answers of the predictor."""

import itertools
import pickle
import subprocess
import sys

import pandas as pd
import pytest
from river import datasets
from river.checks import common, yield_checks

from online_svm import Example, OnlinePredictor, PredictorConfig
from online_svm.errors import InvalidExample
from online_svm.river import OnlineClassifier

LIGHT = {"committee": "single"}
BINARY = {"classes": [False, True]}


def checks(model, *slow):
    """Yield each check of river for a model, with a name that says which it is."""
    for i, check in enumerate(yield_checks(model)):
        marks = [pytest.mark.slow] * (check.__name__ in slow)
        yield pytest.param(model, check, id=f"{check.__name__}-{i}", marks=marks)


LONG = "check_bounded_memory_growth"


@pytest.mark.parametrize(("model", "check"), [*checks(OnlineClassifier(**LIGHT), LONG)])
def test_it_passes_all_checks_of_river(model, check):
    check(model.clone())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "check"), [*checks(OnlineClassifier()), *checks(OnlineClassifier(**BINARY))]
)
def test_it_passes_all_checks_of_river_as_it_is_made_without_settings(model, check):
    check(model.clone())


def test_the_same_seed_gives_the_same_and_another_one_another():
    model = OnlineClassifier(**BINARY, **LIGHT)
    common.check_seeding_is_idempotent(model, [*datasets.Phishing().take(200)])
    found = [answers(OnlineClassifier(**BINARY, **LIGHT, seed=s), phishing(150)) for s in (0, 0, 1)]
    assert found[0] == found[1] != found[2]


def phishing(count):
    return [*itertools.islice(datasets.Phishing(), count)]


def answers(model, rows):
    """Return the probabilities of each row as it is asked, before it is learned."""
    found = []
    for x, y in rows:
        found.append(model.predict_proba_one(x))
        model.learn_one(x, y)
    return found


def test_each_row_has_the_answer_that_the_predictor_gives_it():
    rows = phishing(260)
    model = OnlineClassifier(**BINARY)
    predictor = OnlinePredictor(PredictorConfig(classes=("false", "true")))
    known = 0
    for x, y in rows:
        asked, interval = model.predict_proba_one(x), model.predict_interval_one(x)
        model.predict_proba_one(dict.fromkeys(x, 0.0))  # what is only asked leaves no trace
        answer = predictor.step(Example(x, str(y).lower()))
        model.learn_one(x, y)
        known += answer.status == "ok"
        assert tuple(asked.values()) == answer.probabilities
        assert tuple(interval.values()) == answer.intervals
    assert known > 240


def test_each_label_has_a_probability_once_seen():
    model = OnlineClassifier(**LIGHT)
    x = {"a": 1.0}
    assert (model.predict_proba_one(x), model.predict_one(x)) == ({}, None)
    assert model.predict_interval_one(x) == {}
    model.learn_one(x, "b")
    assert (model.predict_proba_one(x), model.predict_one(x)) == ({"b": 1.0}, "b")
    for i in range(60):
        model.learn_one({"a": float(i % 2), "b": i}, "ab"[i % 2])
    assert model.predict_one({"a": 1.0}) == "b"
    model.learn_one(x, 7)
    found = model.predict_proba_one(x)
    assert [*found] == [7, "a", "b"]
    assert 0.0 < found[7] < 0.3
    assert sum(found.values()) == pytest.approx(1.0)
    intervals = model.predict_interval_one(x)
    assert all(low <= found[label] <= high for label, (low, high) in intervals.items())


def test_rows_of_a_frame_are_learned_as_one_by_one():
    rows = phishing(120)
    one, many = OnlineClassifier(**BINARY, **LIGHT), OnlineClassifier(**BINARY, **LIGHT)
    for x, y in rows:
        one.learn_one(x, y)
    frame, labels = pd.DataFrame([x for x, _ in rows]), pd.Series([y for _, y in rows])
    for begin in range(0, 120, 40):
        many.learn_many(frame[begin : begin + 40], labels[begin : begin + 40])
    assert pickle.dumps(one) == pickle.dumps(many)
    found = many.predict_proba_many(frame[50:60])
    assert [*found.index] == [*range(50, 60)]
    assert found.to_dict("records") == [one.predict_proba_one(x) for x, _ in rows[50:60]]
    assert many.predict_many(frame[:3]).tolist() == [one.predict_one(x) for x, _ in rows[:3]]


def test_class_weight_moves_what_is_predicted():
    rows = phishing(300)
    plain, weighed = (
        OnlineClassifier(**BINARY, **LIGHT, class_weight=w) for w in (None, {True: 9})
    )
    for x, y in rows:
        plain.learn_one(x, y)
        weighed.learn_one(x, y)
    assert sum(weighed.predict_one(x) for x, _ in rows) > sum(plain.predict_one(x) for x, _ in rows)
    for x, _ in rows[:50]:
        p = weighed.predict_proba_one(x)
        assert weighed.predict_one(x) == (9 * p[True] > p[False])


def test_an_example_that_cannot_be_used_changes_nothing():
    model = OnlineClassifier(**BINARY, **LIGHT)
    model.learn_one({"a": 1.0}, True)
    before = pickle.dumps(model)
    for x, y, why in [
        ({}, True, "x is empty"),
        ({"a": [1]}, True, "feature 'a': a value is an array"),
        ({"a": 1.0}, "x", "'x' is not declared"),
    ]:
        with pytest.raises(InvalidExample, match=why):
            model.learn_one(x, y)
    assert pickle.dumps(model) == before


def test_without_river_one_line_says_what_to_install():
    program = "import sys; sys.modules['river'] = None; import online_svm.river"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stderr.splitlines()[-1] == (
        "ImportError: online_svm.river needs river: pip install 'online-svm[service]'"
    )
