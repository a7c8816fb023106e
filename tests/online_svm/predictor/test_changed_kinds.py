"""A feature that comes in another kind than was learned is told, and read as missing."""

import warnings
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from predictor_answers import predictor_of, restored

from online_svm import OnlineClassifier, river
from online_svm.errors import InvalidSnapshot
from online_svm.predictor.changed_kinds import ChangedKinds
from online_svm.stream.input_batch import Example, InputBatch

N = 300
BITS = np.random.default_rng(0).integers(0, 2, N)
LABELS = np.where(BITS == 1, "b", "a")
FORMS = {
    "numbers": lambda x: int(x),
    "texts of numbers": lambda x: str(x),
    "true and false": lambda x: bool(x),
    "texts of true and false": lambda x: "True" if x else "False",
    "texts": lambda x: "yes" if x else "no",
    "times": lambda x: f"2024-01-0{x + 1}",
}
CHANGES = [
    ("numbers", "texts of numbers", None),
    ("numbers", "true and false", ("numbers", "true and false")),
    ("numbers", "texts of true and false", ("numbers", "true and false")),
    ("numbers", "texts", ("numbers", "texts")),
    ("numbers", "times", ("numbers", "times")),
    ("true and false", "numbers", None),
    ("true and false", "texts", None),
    ("true and false", "times", ("true and false", "times")),
    ("texts", "texts", None),
    ("texts", "numbers", ("categories", "numbers")),
    ("texts", "true and false", ("categories", "true and false")),
    ("times", "texts", ("times", "texts")),
    ("times", "true and false", ("times", "true and false")),
]


def frame(form):
    return pd.DataFrame({"flag": [FORMS[form](x) for x in BITS], "other": np.zeros(N)})


def told(call):
    """Return what a call returns, and the sentences of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call()
    return found, [str(each.message) for each in caught]


@pytest.mark.parametrize(("learned", "came", "expected"), CHANGES)
def test_an_estimator_warns_of_a_kind_that_changed(learned, came, expected):
    model = OnlineClassifier(window=200, refit_every=100).fit(frame(learned), LABELS)
    for method in (model.predict, model.predict_proba, model.predict_interval):
        _, sentences = told(lambda method=method: method(frame(came)))
        if expected is None:
            assert sentences == []
        else:
            was, now = expected
            assert sentences == [
                f"feature 'flag' was learned as {was} and came as {now}: these values ({N} so "
                "far) count as missing; send the kind that was learned"
            ]
    predicted, _ = told(lambda: model.predict(frame(came)))
    assert (predicted == LABELS).all() == (expected is None)


def test_a_change_that_a_refit_ends_within_a_call_is_told():
    model = OnlineClassifier(window=80, refit_every=40).fit(frame("numbers"), LABELS)
    _, sentences = told(lambda: model.progressive_proba(frame("true and false"), LABELS))
    assert len(sentences) == 1
    assert "came as true and false" in sentences[0]
    assert told(lambda: model.progressive_proba(frame("true and false"), LABELS))[1] == []


def test_a_warning_names_the_line_of_the_caller():
    def here(call):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        (warning,) = caught
        return warning.filename, warning.lineno

    def line(call):
        return __file__, call.__code__.co_firstlineno

    changed = frame("true and false")
    model = OnlineClassifier(window=200, refit_every=100).fit(frame("numbers"), LABELS)
    copies = iter([deepcopy(model) for _ in range(2)])
    asks = [
        lambda: model.predict(changed),
        lambda: model.predict_proba(changed),
        lambda: model.predict_interval(changed),
        lambda: model.score(changed, LABELS),
        lambda: next(copies).partial_fit(changed[:20], LABELS[:20]),
        lambda: next(copies).progressive_proba(changed[:20], LABELS[:20]),
    ]
    for call in asks[:3] + asks[4:]:
        assert here(call) == line(call)
    assert Path(here(asks[3])[0]).parts[-2:] == ("sklearn", "base.py")  # its own line asks
    one = river.OnlineClassifier(window=200, refit_every=100)
    for x, y in zip(BITS.tolist(), LABELS.tolist(), strict=True):
        one.learn_one({"flag": x, "other": 0}, y)
    copies = iter([deepcopy(one) for _ in range(2)])
    for call in (
        lambda: one.predict_one({"flag": True}),
        lambda: one.predict_proba_one({"flag": True}),
        lambda: one.predict_interval_one({"flag": True}),
        lambda: one.predict_proba_many(changed),
        lambda: next(copies).learn_one({"flag": True}, "a"),
        lambda: next(copies).learn_many(changed, pd.Series(LABELS)),
    ):
        assert here(call) == line(call)


def test_a_feed_counts_the_values_whatever_the_batches_and_restarts():
    asked = [{"flag": bool(x)} for x in BITS[:50]] + [{"flag": "soon"}] * 3

    def counted(size):
        predictor = predictor_of(classes=["a", "b"])
        for x, y in zip(BITS.tolist(), LABELS.tolist(), strict=True):
            predictor.step(Example({"flag": x}, y))
        assert predictor.changed_kinds == ()
        for begin in range(0, len(asked), size):
            rows = asked[begin : begin + size]
            X = np.array([predictor.schema.row(x) for x in rows])
            labels = [None] * len(rows)
            predictor.process(InputBatch(X, labels, range(len(rows)), {}))
            predictor = restored(predictor)
        return predictor

    one, many = counted(1), counted(53)
    assert one.snapshot() == many.snapshot()
    assert [(kind.feature, kind.came, kind.values) for kind in one.changed_kinds] == [
        ("flag", "texts", 3),
        ("flag", "true and false", 50),
    ]


def test_a_kind_that_a_new_model_learned_is_told_no_longer():
    predictor = predictor_of(classes=["a", "b"], window=80, refit_every=40)
    for x, y in zip(BITS[:60].tolist(), LABELS[:60].tolist(), strict=True):
        predictor.step(Example({"flag": x}, y))
    predictor.step(Example({"flag": True}))
    assert predictor.changed_kinds
    for x, y in zip(BITS.tolist(), LABELS.tolist(), strict=True):
        predictor.step(Example({"flag": bool(x)}, y))
    assert predictor.changed_kinds == ()


def test_the_version_of_a_score_is_no_feature():
    settings = {"classes": ["a", "b"], "scores": "probability", "score_use": "member"}
    predictor = predictor_of(**settings)
    for x, y in zip(BITS.tolist(), LABELS.tolist(), strict=True):
        predictor.step(Example({"flag": x}, y, score=0.2 + 0.6 * x, score_version="a"))
    predictor.step(Example({"flag": 1}, score=0.5, score_version=2))
    assert predictor.changed_kinds == ()


@pytest.mark.parametrize(
    "stored",
    [[1], [[0, 0, 1]], [[0, 9, 1, 1]], [[0, 0, 9, 1]], [[0, 0, 1, -1]], [[0, 0, 1, 1]] * 2],
)
def test_a_damaged_count_is_refused(stored):
    with pytest.raises(InvalidSnapshot, match="counts"):
        ChangedKinds().restore({"counts": np.array(stored)})
