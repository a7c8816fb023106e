"""river's OnlineClassifier: all of river's checks, and the answers of the predictor."""

import itertools
import pickle
import subprocess
import sys

import pandas as pd
import pytest
from river import datasets, naive_bayes
from river.checks import common, yield_checks
from system_tools import package

from online_svm import Example, OnlinePredictor, PredictorConfig
from online_svm.errors import InvalidExample, InvalidInput
from online_svm.river import OnlineClassifier, calibrate

LIGHT = {"committee": "single"}
BINARY = {"classes": [False, True]}


def checks(model, slow=""):
    """Yield each check of river for a model; that of memory and further data sets are slow.

    So are all of them where the models are named.
    """
    seen = {"check_bounded_memory_growth"}
    for i, check in enumerate(yield_checks(model)):
        marks = [pytest.mark.slow] * (bool(slow) or check.__name__ in seen)
        seen.add(check.__name__)
        yield pytest.param(model, check, id=f"{slow}{check.__name__}-{i}", marks=marks)


@pytest.mark.parametrize(("model", "check"), [
    *checks(OnlineClassifier(**LIGHT)), *checks(OnlineClassifier(), "default-"),
    *checks(OnlineClassifier(**BINARY), "declared-"),
])  # fmt: skip
def test_it_passes_all_checks_of_river(model, check):
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


ROWS = {"u": [0.5, 1.5, 2.5] * 9, "v": [1.0, -1.0, 0.0] * 9}
SAYS = ["yes", "no", "no"] * 9


POLARS = ("polars", "pip install polars")


@pytest.mark.parametrize(
    ("library", "kind"),
    [(POLARS, "DataFrame"), (("pyarrow", "pip install 'online-svm[archive]'"), "table")],
)
def test_frames_of_other_libraries_are_learned_as_those_of_pandas(library, kind):
    make = getattr(package(*library), kind)
    labels = package(*POLARS).Series(SAYS)
    models = [OnlineClassifier(**LIGHT) for _ in range(2)]
    models[0].learn_many(pd.DataFrame(ROWS), pd.Series(SAYS))
    models[1].learn_many(make(ROWS), labels)
    wanted, found = (
        model.predict_proba_many(X)
        for model, X in zip(models, (pd.DataFrame(ROWS), make(ROWS)), strict=True)
    )
    assert found.equals(wanted)


@pytest.mark.parametrize(
    ("X", "says"),
    [
        (pd.DataFrame(ROWS).set_axis(["u", "u"], axis=1), "two columns have the name 'u'"),
        (pd.DataFrame(ROWS).set_axis([1, "1"], axis=1), "two columns have the name '1'"),
        ([{"u": 1.0}], r"pandas\.DataFrame\(X\)"),
    ],
)
def test_rows_in_a_form_that_river_has_not_are_refused_by_name(X, says):
    model = OnlineClassifier(**LIGHT)
    with pytest.raises(InvalidInput, match=says):
        model.learn_many(X, SAYS)
    with pytest.raises(InvalidInput, match=says):
        model.predict_proba_many(X)


def test_a_lazy_frame_is_refused_with_what_collects_it():
    test_rows_in_a_form_that_river_has_not_are_refused_by_name(
        package(*POLARS).DataFrame(ROWS).lazy(), r"give X\.collect\(\)"
    )


@pytest.mark.parametrize("labels", [("ham", "spam"), (1, 2)])
def test_calibrated_models_of_other_labels_name_the_parameter(labels):
    fresh = calibrate(naive_bayes.GaussianNB())
    with pytest.raises(InvalidExample, match="classes="):
        fresh.learn_one({"u": 1.0}, labels[1])
    learned = naive_bayes.GaussianNB()
    for i in range(10):
        learned.learn_one({"u": i % 2}, "ab"[i % 2])
    with pytest.raises(InvalidInput, match=r"calibrate\(model, classes="):
        calibrate(learned).predict_proba_one({"u": 1.0})
    assert set(calibrate(learned, classes=["a", "b"]).predict_proba_one({"u": 1.0})) == {"a", "b"}


def test_without_river_one_line_says_what_to_install():
    program = "import sys; sys.modules['river'] = None; import online_svm.river"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stderr.splitlines()[-1] == (
        "ImportError: online_svm.river needs river: pip install 'online-svm[service]'"
    )
