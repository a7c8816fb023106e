"""OnlinePredictor against a slow reading of the specification, and what it answers at the edges."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from literal_predictor import Literal
from predictor_answers import rows, stream

from online_svm import config as settings
from online_svm.errors import InvalidExample, InvalidInput
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.refit import learner, scaling
from online_svm.storage.state import pack, unpack
from online_svm.stream.input_batch import Example

DECLARED = {"classes": ("c0", "c1"), "features": 3}
PSVM = ProtocolConfig(**DECLARED, learner="psvm", window=60, refit_every=25)


SCHEDULES = {
    "paper": {"window": None, "refit_every": 1, "refit_lag": 0, "scale": "none"},
    "rolling": {"window": 60, "refit_every": 25, "refit_lag": 20},
    "slow": {"window": 40, "refit_every": 100, "refit_lag": 99},
}
LONGEST = ("paper", "interleaved", 3)


@pytest.mark.parametrize(("schedule", "split", "n_classes"), [
    pytest.param(*case, marks=[pytest.mark.slow] * (case == LONGEST))
    for case in product(SCHEDULES, ("oldest", "interleaved"), (2, 3))
])  # fmt: skip
def test_intervals_are_those_of_the_specification_read_literally(
    schedule, split, n_classes, monkeypatch
):
    schedule = SCHEDULES[schedule]
    monkeypatch.setattr(learner, "TOLERANCE", 1e-6)
    monkeypatch.setattr(scaling, "RESCALE_EVERY", 1)
    X, labels = stream(100 if schedule["refit_every"] == 1 else 160, n_classes)
    classes = tuple(f"c{k}" for k in range(n_classes))
    config = ProtocolConfig(classes=classes, split=split, gamma=0.3, committee="single", **schedule)
    literal = Literal(config)
    expected = [literal.step(x, y) for x, y in zip(X, labels, strict=True)]
    answers = rows(OnlinePredictor(config).step_many(X, labels))
    nothing = np.tile([0.0, 1.0], (n_classes, 1))
    agree = [
        np.allclose(a.venn or nothing, nothing if e is None else e[1], rtol=0, atol=1e-15)
        for a, e in zip(answers, expected, strict=True)
    ]
    assert sum(agree) >= 0.99 * len(agree)


@pytest.mark.parametrize(
    ("early_until", "changes", "expected"),
    [
        (None, {"committee": "single", "refit_lag": 13}, [10, 20, 40, 63, 113]),
        (None, {"committee": "default", "refit_lag": 13}, [10, 14, 20, 28, 40, 63, 113]),
        (150, {"committee": "single"}, [10, 20, 40, 50, 100, 199, 249]),
        (150, {"committee": "default"},
         [10, 14, 20, 28, 40, 50, 56, 80, 100, 110, 145, 199, 249]),
    ],
)  # fmt: skip
def test_models_take_effect_at_once_while_early_and_exactly_lag_examples_after_their_freeze_later(
    early_until, changes, expected, monkeypatch
):
    if early_until is not None:
        monkeypatch.setattr(settings, "EARLY_UNTIL", early_until)
    X, labels = stream(130 if early_until is None else 260)
    config = ProtocolConfig(window=60, refit_every=50, **changes)
    versions = [p.model for p in rows(OnlinePredictor(config).step_many(X, labels))]
    assert [n for n in range(1, len(X)) if versions[n] != versions[n - 1]] == expected


def test_before_two_classes_the_base_rate_answers_without_a_guarantee():
    predictor = OnlinePredictor(ProtocolConfig(classes=("a", "b")))
    answers = [predictor.step(Example([float(i)], "a")) for i in range(45)]
    assert {(p.status, p.method, p.guarantee) for p in answers} == {("warming", "experts", "none")}
    assert (answers[0].probabilities, answers[0].intervals) == ((0.5, 0.5), ((0.0, 1.0),) * 2)
    assert all(p.lower <= p.probability <= p.upper for p in answers)
    rates = [p.probabilities[0] for p in answers]
    assert rates == sorted(rates)
    assert rates[-1] > 45 / 46
    report = predictor.step_many(np.ones((55, 1)), ["a"] * 55)[-1]
    assert (report.n, report.scored, report.venn.predicted.accuracy) == (100, 0, None)


@pytest.mark.parametrize(
    ("committee", "methods"), [("single", ["venn", "venn"]), ("default", ["experts", "experts"])]
)
def test_a_third_class_takes_effect_with_its_method_at_the_next_refit(committee, methods):
    X, labels = stream(200)
    labels = [*labels[:110], *["new"] * 5, *labels[115:]]
    config = ProtocolConfig(refit_every=50, refit_lag=10, committee=committee)
    answers = rows(OnlinePredictor(config).step_many(X, labels))
    for n in (109, 159):
        assert (answers[n].classes, answers[n].method) == (("c0", "c1", None), methods[0])
    assert (answers[160].classes, answers[160].method) == (("c0", "c1", "new", None), methods[1])
    assert answers[109].intervals[2][0] == 0.0
    assert {p.guarantee for p in answers[10:]} == {"approximate"}
    assert [len(answers[n].scores) for n in (159, 160)] == [1, 3]


def learned(config):
    """Return a predictor that has learned sixty examples of three features."""
    predictor = OnlinePredictor(config)
    predictor.step_many(*stream(60))
    return predictor


def test_an_unlabelled_example_is_answered_and_not_learned():
    predictor = learned(ProtocolConfig(**DECLARED))
    before, arrays = unpack(predictor.snapshot())
    assert predictor.step(Example([0.0, 1.0, 2.0])).status == "ok"
    after, following = unpack(predictor.snapshot())
    # Only that it came is noted, for the guarantee and for the shares of answers with a label.
    assert (before.pop("unlabelled"), after.pop("unlabelled")) == (None, 60)
    counted = [header["agreement"].pop("answers") for header in (before, after)]
    assert counted[1] == counted[0] + 1
    asked = [of.pop("agreement.asked") for of in (arrays, following)]
    assert asked[1].sum() == asked[0].sum() + 1
    watched = [name for name in arrays if name.startswith("monitors.tests.features.")]
    assert following["monitors.tests.features.rows"] == arrays["monitors.tests.features.rows"] + 1
    for name in watched:
        del arrays[name], following[name]
    assert pack(after, following) == pack(before, arrays)


LABELLED = ProtocolConfig(**DECLARED)
X = [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("config", "example", "code"),
    [
        (LABELLED, Example([1.0, 2.0]), "dimension"),
        (LABELLED, Example([1.0, 2.0, math.nan], "c0"), "not_finite"),
        (LABELLED, Example(X, "other"), "label"),
        (LABELLED, Example({"a": 1.0}, "c0"), "unparsable"),
        (LABELLED, Example(X, p=0.5), "unsupported"),
        (PSVM, Example(X, "c0", 0.5), "duplicate_field"),
        (PSVM, Example(X, p=1.5), "out_of_range"),
        (PSVM, Example(X, p=-0.1), "out_of_range"),
        (PSVM, Example(X, p=math.nan), "not_finite"),
        (PSVM, Example(X, p=math.inf), "not_finite"),
        (PSVM, Example(X, p=10**400), "not_finite"),
        (PSVM, Example(X, p=True), "unparsable"),
        (PSVM, Example(X, p="0.5"), "unparsable"),
        (PSVM, Example([1.0, 2.0], p=0.5), "dimension"),
    ],
)
def test_an_example_that_cannot_be_used_is_rejected_by_code_and_changes_nothing(
    config, example, code
):
    predictor = learned(config)
    before = predictor.snapshot()
    with pytest.raises(InvalidExample) as refused:
        predictor.step(example)
    assert refused.value.code == code
    assert predictor.snapshot() == before


@pytest.mark.parametrize(
    ("config", "labels", "probabilities", "told"),
    [
        (LABELLED, ["c0"], None, "1 for 2 rows"),
        (LABELLED, [None, None], [0.5, 0.5], "use learner psvm"),
        (PSVM, ["c0", None], [0.5, math.nan], "row 0 has a label as well"),
        (PSVM, [None, None], [0.5, 1.1], "row 1 has one that is not in"),
        (PSVM, [None, None], [0.5], "for 2 rows"),
    ],
)
def test_columns_that_contradict_each_other_are_refused(config, labels, probabilities, told):
    given = None if probabilities is None else np.array(probabilities)
    with pytest.raises(InvalidInput, match=told):
        OnlinePredictor(config).step_many(np.ones((2, 3)), labels, given)


def test_a_missing_value_counts_as_the_training_mean():
    X, labels = stream(100)
    config = ProtocolConfig(missing="mean", scale="standard", maps=())
    with_gap, filled = OnlinePredictor(config), OnlinePredictor(config)
    with_gap.step_many(X, labels)
    filled.step_many(X, labels)
    mean = filled.active.result.scaling.fill
    gap = with_gap.step(Example([X[0, 0], None, X[0, 2]]))
    assert gap.scores == filled.step(Example([X[0, 0], mean[1], X[0, 2]])).scores


def test_named_features_are_answered_like_the_array_in_sorted_order():
    X, labels = stream(60)
    arrays, names = OnlinePredictor(ProtocolConfig()), OnlinePredictor(ProtocolConfig())
    for x, label in zip(X, labels, strict=True):
        named = {"b": x[1], "c": x[2], "a": x[0]}
        answer = names.step(Example(named, label))
        assert answer.imputed == 0
        assert arrays.step(Example(x, label)) == replace(answer, imputed=None)
