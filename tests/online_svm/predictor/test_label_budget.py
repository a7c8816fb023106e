"""A label budget: known probabilities, weighted figures and monitors that hold for all examples."""

from dataclasses import replace

import numpy as np
import pytest
from predictor_answers import reports, rows
from pydantic import ValidationError

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.metrics.label_weights import most_examples, weighted_square
from online_svm.metrics.scores import squared_calibration_error
from online_svm.metrics.sequential.monitor_set import MonitorSet
from online_svm.metrics.windowed_validity import WindowedValidity
from online_svm.predictor.label_budget import LabelBudget
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.storage.state import pack, unpack
from online_svm.stream.input_batch import DelayedLabel, InputBatch
from online_svm.stream.prediction import PredictionBlock, ScoredRows

SMALL = {
    "classes": ["no", "yes"], "committee": "single", "kernel": "linear", "horizon": 60,
    "window": 300, "refit_every": 50, "monitors": "off", "label_budget": 0.1,
}  # fmt: skip


def settings(**changes):
    return PredictorConfig.model_validate(SMALL | changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"horizon": 0}, "set horizon to how long a label may take"),
        ({"label_budget": 0.0}, "label_budget"),
        ({"label_budget": 1.5}, "label_budget"),
        ({"label_budget": 0.005, "metrics_window": 1000}, "set metrics_window to at most 500"),
    ],
)
def test_a_budget_that_cannot_work_is_refused(changes, words):
    with pytest.raises(ValidationError, match=words):
        settings(**changes)


def test_a_feed_without_a_budget_stores_nothing_of_it():
    predictor = OnlinePredictor(settings(label_budget=None))
    block = run(predictor, *stream(5, 1), size=5)[0]
    assert block.label_wanted is None
    assert "label_budget" not in unpack(predictor.snapshot())[0]


@pytest.mark.parametrize("budget", [0.01, 0.05, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("spread", [0.02, 3.0])
def test_the_mean_probability_is_the_budget(budget, spread):
    rng = np.random.default_rng(1)
    unsure = np.concatenate(
        [rng.beta(spread, 3 * spread, 4000) * level for level in (0.9, 0.05, 0.5)]
    )
    chooser = LabelBudget(budget, seed=0)
    given = np.array([chooser.examples_for(max(0.01, u)) for u in unsure])
    assert given.max() <= most_examples(budget)
    assert (1 / given >= budget / 4).all()
    for part in np.split(1 / given, 3):
        assert part[1000:].mean() == pytest.approx(budget, rel=0.06)


def test_an_unsure_answer_is_wanted_more_often_than_a_sure_one():
    chooser = LabelBudget(0.05, seed=0)
    sure, unsure = zip(
        *((chooser.examples_for(0.1), chooser.examples_for(0.7)) for _ in range(900)), strict=True
    )
    assert np.mean(1 / np.array(unsure[100:])) > 2 * np.mean(1 / np.array(sure[100:]))


def stream(n, seed, hidden=0.0):
    """Return features, labels and cases that someone approves who sees more than the features."""
    rng = np.random.default_rng(seed)
    X, unseen = rng.normal(size=(n, 2)), rng.normal(size=n)
    labels = np.where(X[:, 0] + hidden * unseen + rng.normal(size=n) > 0, "yes", "no")
    return X, labels, X[:, 0] + hidden * unseen + 0.5 * rng.normal(size=n) < 0.5


def run(predictor, X, labels, approved, size):
    """Answer rows in batches; send the labels of wanted and of approved ones after each batch."""
    answers = []
    for begin in range(0, len(X), size):
        rows = range(begin, min(len(X), begin + size))
        part = X[begin : begin + size]
        ids = [str(i) for i in rows]
        found = predictor.process(
            InputBatch(part, [None] * len(part), range(len(part)), ids=ids, first=begin)
        )
        blocks = [each for each in found.found if isinstance(each, PredictionBlock)]
        answers += found.found
        wanted = [
            w for b in blocks for w in (b.label_wanted if b.label_wanted is not None else b.n < 0)
        ]
        due = [i for i, w in zip(rows, wanted, strict=True) if w or approved[i]]
        sent = {j: DelayedLabel(str(i), str(labels[i])) for j, i in enumerate(due)}
        answers += predictor.process(InputBatch(part[:0], [], [], sent)).found
    return answers


def test_figures_are_right_although_only_some_examples_get_labels():
    off, unweighted, weighted = [], [], []
    for seed in range(4):
        X, labels, approved = stream(4000, seed, hidden=1.5)
        config = settings(label_budget=0.05, metrics_window=2000, metrics_every=10)
        answers = run(OnlinePredictor(config), X, labels, approved, 60)
        said = rows(answers)
        p = np.array([each.probabilities[1] if each.status == "ok" else np.nan for each in said])
        gap = (labels == "yes") - p
        wanted = np.array([each.label_wanted for each in said])
        off.append(np.nanmean(gap))
        unweighted.append(np.nanmean(gap[wanted | approved]))
        report = reports(answers)[-1]
        yes = report.windowed.classes[1]
        weighted.append(yes.frequency - yes.probability)
        # The same by hand: inverse probabilities of the wanted and matured labels.
        learned = np.flatnonzero(wanted | approved)[: report.n]
        used = learned[(wanted & ~np.isnan(p))[learned]]
        k = np.array([1 / each.label_probability for each in said])[used]
        assert weighted[-1] == pytest.approx((k * gap[used]).sum() / k.sum(), abs=1e-9)
    assert np.mean(off) > 0.08
    assert np.mean(unweighted) < np.mean(off) - 0.06
    errors = np.array(weighted) - off
    assert abs(errors.mean()) < 3 * 0.037 / np.sqrt(len(errors))
    assert errors.std() < 2 * 0.037


@pytest.mark.parametrize("forged", [0.0, 1e-12, 2.0, np.nan])
def test_a_forged_probability_of_a_waiting_answer_is_refused(forged):
    X, labels, approved = stream(200, 9)
    predictor = OnlinePredictor(settings())
    run(predictor, X, labels, approved, 20)
    header, arrays = unpack(predictor.snapshot())
    (name,) = [name for name in arrays if name.endswith("label_probability")][-1:]
    broken = pack(header, arrays | {name: np.full_like(arrays[name], forged)})
    with pytest.raises(InvalidSnapshot, match="label_probability"):
        OnlinePredictor(settings()).restore(broken)


def test_labels_that_came_unasked_are_learned_and_in_no_figure():
    X, labels, approved = stream(1500, 4)
    every, some = (run(OnlinePredictor(settings(metrics_every=1)), X, labels, of, 60)
                   for of in (approved | True, approved & False))  # fmt: skip
    most, least = reports(every)[-1], reports(some)[-1]
    assert most.n == 1440
    assert most.budget.unasked + most.budget.labelled == 1440
    assert (most.budget.missing, least.budget.missing, least.budget.unasked) == (0, 0, 0)
    assert most.scored <= most.budget.labelled < 250
    assert least.n == least.budget.labelled


def test_wanted_labels_that_do_not_come_are_counted():
    X, labels, approved = stream(900, 5)
    predictor = OnlinePredictor(settings(metrics_every=1))
    answers = run(predictor, X[:300], labels, approved, 60)
    answers += predictor.process(InputBatch(X[300:], [None] * 600, range(600))).found
    said, report = rows(answers), reports(answers)[-1]
    lost = sum(each.label_wanted for each in said[300:840])
    # The report came with the last learned example, before the others were given up.
    assert lost > 20
    assert 0 < report.budget.labelled <= report.budget.wanted


def scored(rng, m, off=0.0, budget=0.1):
    """Return the wanted ones of m answers of two classes whose probability is `off` too low."""
    p = rng.uniform(0.1, 0.8, m)
    k = rng.choice([5, 10, 20, most_examples(budget)], m).astype(float)
    draws = rng.random(m)
    kept = draws < 1 / k
    point = np.stack([1 - p, p], axis=1)[kept]
    truth = (rng.random(m) < np.clip(p + off, 0, 1))[kept].astype(np.int64)
    n, category = np.arange(m)[kept] + 10_000, np.zeros(kept.sum(), dtype=np.int64)
    scores = np.where(rng.random((kept.sum(), 1)) < 0.5, 1.0, -1.0)
    return ScoredRows(
        n, ("a", "b"), truth, point, point, point, point, scores, category, model=1,
        X=np.empty((len(n), 0)), weights=k[kept], draws=draws[kept],
    )  # fmt: skip


def test_monitors_of_wanted_labels_keep_their_level_and_find_a_deviation():
    def alarms(off):
        config = PredictorConfig(alarm_level=0.1)
        found = 0
        for seed in range(60):
            monitors = MonitorSet(config, in_order=False, most=most_examples(0.1))
            rng = np.random.default_rng(seed)
            found += bool(monitors.update(scored(rng, 6000, off)))
        return found

    assert alarms(0.0) <= 6
    assert alarms(0.02) <= 6
    assert alarms(0.25) >= 55


def test_a_weighted_window_is_one_of_repeated_examples():
    rows = scored(np.random.default_rng(6), 4000)
    config = PredictorConfig(metrics_window=2000)
    weighted, repeated = WindowedValidity(config, 40), WindowedValidity(
        config.model_copy(update={"metrics_window": 100_000})
    )  # fmt: skip
    weighted.update(rows)
    repeated.update(replace(rows.repeated(), weights=None))
    ours, theirs = weighted.report(), repeated.report()
    for name in ("accuracy", "probability", "log_loss", "brier", "miscalibration", "uncertainty"):
        assert getattr(ours.overall, name) == getattr(theirs.overall, name)
    assert ours.overall.scored == len(rows)
    assert abs(ours.overall.z) < abs(theirs.overall.z)
    for one, other in zip(ours.reliability, theirs.reliability, strict=True):
        assert (one.frequency, one.count) == (other.frequency, other.count)
        assert one.upper - one.lower > other.upper - other.lower
    restored = WindowedValidity(config, 40).restore(weighted.state())
    assert restored.report() == ours


def test_the_error_of_equal_weights_is_the_debiased_one():
    rng = np.random.default_rng(7)
    p = rng.random(1500)
    happened = rng.random(1500) < p**2
    found = weighted_square(p, happened, np.full(1500, 7.0), 15)
    assert found == pytest.approx(squared_calibration_error(p, happened), rel=1e-9)


def test_the_error_of_right_probabilities_is_zero_on_average():
    rng, found = np.random.default_rng(8), []
    for _ in range(400):
        p = rng.random(300)
        weights = rng.choice([1.0, 20.0, 40.0], 300)
        found.append(weighted_square(p, rng.random(300) < p, weights, 15))
    assert abs(np.mean(found)) < 3 * np.std(found) / np.sqrt(len(found))
