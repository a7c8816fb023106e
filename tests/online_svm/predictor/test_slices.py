"""Slices of a stream: figures of groups of examples, by text that is no feature."""

import numpy as np
import pytest

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidExample
from online_svm.metrics.windowed import windowed_validity
from online_svm.predictor import answer_scoring
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.input_batch import Example
from online_svm.stream.prediction import ValidityReport

SETTINGS = {
    "classes": ("no", "yes"),
    "committee": "single",
    "maps": (),
    "window": 100,
    "refit_every": 50,
    "metrics_every": 40,
    "metrics_window": 60,
    "slices": ("country", "age"),
}


@pytest.fixture(autouse=True)
def _few_values(monkeypatch):
    """Tell three values of a slice apart, not twenty."""
    for module in (answer_scoring, windowed_validity):
        monkeypatch.setattr(module, "SLICE_VALUES", 3)


def stream(m=240, seed=0):
    """Return rows, labels and slices; some examples have no slices, some only one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 2))
    labels = np.where(X[:, 0] + rng.normal(size=m) > 0, "yes", "no").tolist()
    countries = [("DE", "FR", "IT", "ES", "PL", None)[i] for i in rng.integers(0, 6, m)]
    ages = [("old", "young", None)[i] for i in rng.integers(0, 3, m)]
    pairs = zip(countries, ages, strict=True)
    return X, labels, [None if i % 11 == 0 else pair for i, pair in enumerate(pairs)]


def predictor(**changes):
    return OnlinePredictor(PredictorConfig(**SETTINGS | changes))


def reports(answers):
    return [answer for answer in answers if isinstance(answer, ValidityReport)]


def test_a_slice_counts_its_own_examples_and_the_values_too_many_are_counted_together():
    X, labels, slices = stream()
    report = reports(predictor().step_many(X, labels, slices=slices))[-1]
    last = slices[180:240]
    countries = [pair[0] for pair in slices if pair is not None and pair[0] is not None]
    known = list(dict.fromkeys(countries))[:3]
    expected = {name: sum(pair is not None and pair[0] == name for pair in last) for name in known}
    others = sum(pair is not None and pair[0] is not None and pair[0] not in known for pair in last)
    found = {one.value: one.scores.scored for one in report.windowed.slices["country"]}
    assert found == expected | {None: others}
    assert sum(found.values()) < report.windowed.overall.scored


def test_slices_change_no_answer():
    X, labels, slices = stream()
    with_slices = predictor().step_many(X, labels, slices=slices)
    without = predictor(slices=()).step_many(X, labels)
    for one, other in zip(with_slices, without, strict=True):
        if not isinstance(one, ValidityReport):
            assert [one.row(i) for i in range(len(one))] == [
                other.row(i) for i in range(len(other))
            ]
        else:
            assert one.windowed.overall == other.windowed.overall


def test_an_example_that_is_scored_late_is_in_the_slice_it_was_sent_with():
    X, labels, slices = stream(120)
    at_once, late = predictor(), predictor(horizon=7)
    expected = reports(at_once.step_many(X, labels, slices=slices))
    for i, (x, pair) in enumerate(zip(X, slices, strict=True)):
        late.step_many(x[None], [None], ids=[str(i)], slices=[pair])
        late.label(str(i), labels[i])
    found = reports(late.step_many(X[:7], [None] * 7))
    counts = [
        {one.value: one.scores.scored for one in report.windowed.slices["age"]}
        for report in (expected[-1], found[-1])
    ]
    assert counts[0] == counts[1]


def test_one_example_may_name_its_slices():
    one = predictor()
    one.step(Example([1.0, 2.0], "yes", slices={"country": "DE"}))
    assert one.snapshot() != predictor().snapshot()
    before = one.snapshot()
    with pytest.raises(InvalidExample, match="no slice 'land'; it has country, age"):
        one.step(Example([1.0, 2.0], "yes", slices={"land": "DE"}))
    with pytest.raises(InvalidExample, match="the feed has no slices"):
        predictor(slices=()).step(Example([1.0, 2.0], "yes", slices={"land": "DE"}))
    assert one.snapshot() == before


def test_a_hundred_thousand_values_of_a_slice_take_no_memory():
    one = predictor(metrics_every=10**6)
    one.step_many(np.zeros((10, 2)), [None] * 10, slices=[(f"v{i}", None) for i in range(10)])
    before = len(one.snapshot())
    many = [(f"w{i}\x1b[2J", None) for i in range(100_000)]
    assert set(one._answerer.scoring.slice_codes(many, len(many))[:, 0].tolist()) == {3}
    assert len(one.snapshot()) == before


@pytest.mark.parametrize(
    ("slices", "told"),
    [
        (("a", "a"), "a name is given twice"),
        (tuple(map(str, range(17))), "the limit is 16"),
        (("a" * 65,), "at most 64"),
    ],
)
def test_names_that_cannot_work_are_refused(slices, told):
    with pytest.raises(ValueError, match=told):
        PredictorConfig(slices=slices)


def test_slices_need_windowed_figures():
    with pytest.raises(ValueError, match="set metrics_window"):
        PredictorConfig(slices=("country",), metrics_window=None)
