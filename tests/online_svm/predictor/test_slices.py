"""Slices of a stream: figures of groups of examples, by text that is no feature."""

import numpy as np
import pytest
from predictor_answers import alarms, flat, reports

from online_svm.errors import InvalidExample
from online_svm.predictor import answer_scoring
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.stream.input_batch import Example
from online_svm.stream.validity_report import ValidityReport

SETTINGS = {
    "classes": ("no", "yes"), "committee": "single", "maps": (), "window": 100, "refit_every": 50,
    "metrics_every": 40, "metrics_window": 60, "slices": ("country", "age"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _few_values(monkeypatch):
    """Tell three values of a slice apart, not twenty."""
    monkeypatch.setattr(answer_scoring, "SLICE_VALUES", 3)


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
    return OnlinePredictor(ProtocolConfig(**SETTINGS | changes))


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
    for one, other in zip(flat(with_slices), flat(without), strict=True):
        if isinstance(one, ValidityReport):
            assert one.windowed.overall == other.windowed.overall
        else:
            assert one == other


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
    assert set(one._engine.scoring.slice_codes(many, len(many))[:, 0].tolist()) == {3}
    assert len(one.snapshot()) == before


def test_an_alarm_and_a_report_name_a_slice_by_its_value_and_not_by_its_code():
    config = ProtocolConfig(
        classes=("no", "yes"), committee="single", slices=("age", "country"), refit_every=100,
        refit_lag=0, window=200,
    )  # fmt: skip
    rng, m = np.random.default_rng(0), 1400
    country = rng.choice(["DE", "FR"], m)
    X, y = rng.normal(size=(m, 2)), rng.random(m) < 0.5
    y[(country == "FR") & (np.arange(m) > 700)] = True  # the features do not tell the countries
    labels = np.where(y, "yes", "no").tolist()
    values = [(None, str(value)) for value in country]
    answers = OnlinePredictor(config).step_many(X, labels, slices=values)
    assert "country=FR" in {alarm.name for alarm in alarms(answers) if alarm.scope == "slice"}
    tests = [test for report in reports(answers) for test in report.monitors.tests]
    told = {test["name"] for test in tests if test["scope"] == "slice"}
    assert set() < told <= {"country=FR", "country=DE"}
