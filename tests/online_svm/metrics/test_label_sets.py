"""Sets of labels: which classes are in them, their coverage, and their state."""

import numpy as np
import pytest

from online_svm import OnlineCalibrator, OnlineClassifier, river
from online_svm.config import PredictorConfig
from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.metrics.label_sets import STEP, LabelSets, mass_ahead
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.input_batch import Example
from online_svm.stream.prediction import PredictionBlock

CONFIG = PredictorConfig(set_coverage=0.9)


def distributions(m, k, seed=0):
    """Return probabilities of which many are equal."""
    drawn = np.random.default_rng(seed).integers(0, 4, size=(m, k)) + 1.0
    return drawn / drawn.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("k", [1, 2, 3, 10])
def test_ahead_of_a_class_are_more_probable_ones_and_equal_ones_before_it(k):
    point = distributions(50, k)
    for row, found in zip(point, mass_ahead(point), strict=True):
        for c in range(k):
            ahead = [row[j] for j in range(k) if row[j] > row[c] or (row[j] == row[c] and j < c)]
            assert found[c] == pytest.approx(sum(ahead), abs=1e-15)


def masses(kind, m):
    """Return the probability ahead of each label in a sequence that nobody foresees."""
    rng = np.random.default_rng(3)
    if kind == "honest":
        return rng.random(m)
    if kind == "turned at half":
        return np.where(np.arange(m) < m // 2, 0.0, 0.999)
    return np.where(np.arange(m) // 37 % 2 == 0, 0.0, rng.random(m))


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.99])
@pytest.mark.parametrize("kind", ["honest", "turned at half", "by turns"])
def test_misses_of_any_labels_in_a_row_are_bounded(kind, coverage):
    m = 3000
    ahead = masses(kind, m)
    thresholds = LabelSets(PredictorConfig(set_coverage=coverage)).learn(ahead, np.arange(m))
    excess = np.concatenate([[0.0], np.cumsum((ahead > thresholds) - (1.0 - coverage))])
    most_in_a_row = (excess - np.minimum.accumulate(excess)).max()
    assert most_in_a_row <= (1.0 + STEP) / STEP


def test_rows_without_a_label_change_nothing():
    sets = LabelSets(CONFIG)
    before = sets.state()
    assert sets.learn(np.full(5, -1.0), np.array([0, 3, 5])).tolist() == [0.9, 0.9, 0.9]
    assert sets.state() == before


def test_any_division_into_blocks_gives_the_same_thresholds():
    ahead = np.random.default_rng(0).random(400)
    whole, parts = LabelSets(CONFIG), LabelSets(CONFIG)
    found = whole.learn(ahead, np.arange(400))
    pieces = [parts.learn(one, np.arange(len(one))) for one in np.array_split(ahead, 23)]
    assert np.array_equal(found, np.concatenate(pieces))
    assert whole.state() == parts.state()
    assert whole.report().recent_labels == 400
    assert whole.report().coverage == (ahead <= found).mean()


@pytest.mark.parametrize(
    "change", [{"threshold": 1.2}, {"threshold": -0.1}, {"covered": 9}, {"recent": [1, 2]}]
)
def test_a_state_that_cannot_be_is_refused(change):
    sets = LabelSets(CONFIG)
    state = sets.state()
    with pytest.raises(InvalidSnapshot):
        sets.restore(state._replace(header=state.header | change))


# In a stream


def examples(m, seed=0, classes="abc"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 3))
    best = X.argmax(axis=1)
    drawn = np.where(rng.random(m) < 0.6, best, rng.integers(0, 3, m))
    return X, [classes[c] for c in drawn]


def blocks(answers):
    return [one for one in answers if isinstance(one, PredictionBlock)]


def test_answers_have_the_set_of_the_threshold_before_them():
    X, labels = examples(600)
    predictor = OnlinePredictor(
        PredictorConfig(classes=["a", "b", "c"], memory=0, set_coverage=0.9)
    )
    threshold, covered, counted = 0.9, 0, 0
    for block in blocks(predictor.step_many(X, labels)):
        for i in range(len(block)):
            row = block.row(i)
            ahead = dict(zip("abc", mass_ahead(block.point[i : i + 1])[0], strict=True))
            assert row.set == tuple(c for c in "abc" if ahead[c] <= threshold)
            if block.status == "ok":
                label = labels[row.n]
                hit = label in row.set
                threshold = max(0.0, threshold + (-STEP * (1.0 - 0.9) if hit else STEP * 0.9))
                covered, counted = covered + hit, counted + 1
    found = predictor._engine.scoring.sets.report()
    assert (found.labels, found.coverage) == (counted, covered / counted)
    assert abs(found.coverage - 0.9) < (1.0 + STEP) / STEP / counted


def test_late_labels_count_by_the_threshold_before_them():
    X, labels = examples(400)
    predictor = OnlinePredictor(
        PredictorConfig(
            classes=["a", "b", "c"], horizon=1000, memory=0, maturity="arrival", set_coverage=0.9
        )
    )
    threshold, sets = 0.9, predictor._engine.scoring.sets
    misses = 0.75 * (1.0 - 0.9)
    masses = {}
    for i, x in enumerate(X):
        answer = predictor.step(Example(x.tolist(), id=str(i)))
        if answer.status == "ok":
            p = np.array([answer.probabilities])
            masses[i] = dict(zip("abc", mass_ahead(p)[0], strict=True))
        if i >= 50:
            j = i - 50
            predictor.label(str(j), labels[j])
            if j in masses:
                hit = masses[j][labels[j]] <= threshold
                threshold = max(0.0, threshold + STEP * (-misses if hit else 1.0 - misses))
    assert predictor._engine.scoring.sets is sets
    assert sets.threshold == threshold
    assert sets.report().labels > 200


def test_without_set_coverage_there_are_no_sets():
    predictor = OnlinePredictor(PredictorConfig())
    assert predictor.step(Example([1.0], "a")).set is None
    assert predictor._engine.scoring.sets is None


# Estimators

SETTINGS = {"set_coverage": 0.9}


def test_the_estimators_set_is_that_of_a_feed():
    X, labels = examples(500)
    model = OnlineClassifier(memory=0, settings=SETTINGS)
    model.partial_fit(X[:400], labels[:400], classes=[*"cab"])
    feed = OnlinePredictor(PredictorConfig(classes=["a", "b", "c"], memory=0, **SETTINGS))
    feed.step_many(X[:400], labels[:400])
    found = model.predict_set(X[400:])
    for x, row in zip(X[400:], found, strict=True):
        answer = feed.step(Example(x.tolist()))
        assert {*model.classes_[row]} == {*answer.set}
    assert 1.0 < found.sum(axis=1).mean() < 3.0


def test_a_calibrators_set_has_the_most_probable_class():
    rng = np.random.default_rng(0)
    scores = rng.random(400)
    model = OnlineCalibrator(settings=SETTINGS)
    model.partial_fit(scores, rng.random(400) < scores, classes=[False, True])
    found, p = model.predict_set(scores), model.predict_proba(scores)
    assert found[np.arange(400), p.argmax(axis=1)].all()
    assert 1.0 < found.sum(axis=1).mean() < 2.0


def test_an_estimator_without_the_setting_says_how_to_set_it():
    model = OnlineClassifier().partial_fit(np.eye(2), ["a", "b"])
    with pytest.raises(InvalidInput, match=r"settings=\{'set_coverage': 0.9\}"):
        model.predict_set(np.eye(2))


def test_labels_that_the_model_has_not_seen_are_in_the_set_together():
    model = river.OnlineClassifier(settings=SETTINGS)
    assert model.predict_set_one({"a": 1.0}) == []
    X, labels = examples(300)
    for x, label in zip(X[:60], labels[:60], strict=True):
        model.learn_one(dict(enumerate(x)), label)
    model.learn_one(dict(enumerate(X[60])), "new")
    found = model.predict_set_one(dict(enumerate(X[61])))
    assert {*found} <= {*"abc", "new"}
    assert model.predict_one(dict(enumerate(X[61]))) in found
