"""OnlineCalibrator: the checks of scikit-learn and river, and the answers of the predictor."""

import pickle

import numpy as np
import pandas as pd
import pytest
from river import datasets, naive_bayes
from river.checks import yield_checks
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from online_svm import Example, OnlineCalibrator, OnlinePredictor, PredictorConfig
from online_svm.errors import InvalidConfig, InvalidExample, InvalidInput
from online_svm.river import calibrate

CONFIG = PredictorConfig(classes=["a", "b"], scores="probability")


@parametrize_with_checks([OnlineCalibrator(LogisticRegression())])
def test_it_passes_all_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([OnlineCalibrator(LogisticRegression(), "margin")])
def test_with_margins_it_passes_all_checks_of_scikit_learn(estimator, check):
    check(estimator)


LONG = "check_bounded_memory_growth"


def river_checks():
    """Yield each check of river; those of further data sets are slow."""
    seen = {LONG}
    for check in yield_checks(calibrate(naive_bayes.GaussianNB())):
        marks = [pytest.mark.slow] * (check.__name__ in seen)
        seen.add(check.__name__)
        yield pytest.param(check, id=check.__name__, marks=marks)


@pytest.mark.parametrize("check", [*river_checks()])
def test_it_passes_all_checks_of_river(check):
    check(calibrate(naive_bayes.GaussianNB()).clone())


def pairs(count=700, seed=0):
    """Return scores that are too extreme, and labels."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(size=count)
    labels = np.where(rng.uniform(size=count) < 1.0 / (1.0 + np.exp(-odds)), "b", "a")
    return 1.0 / (1.0 + np.exp(-3.0 * odds)), labels


def test_answers_are_those_of_the_predictor_fed_the_same_pairs():
    scores, labels = pairs()
    predictor = OnlinePredictor(CONFIG)
    answers = [
        predictor.step(Example(score=score, y=label)).probabilities
        for score, label in zip(scores.tolist(), labels.tolist(), strict=True)
    ]
    model = OnlineCalibrator().partial_fit(scores[:300], labels[:300], classes=["a", "b"])
    before = model.predict_proba(scores[300:301])
    found = model.progressive_proba(scores[300:], labels[300:])
    assert np.array_equal(found, np.array(answers[300:]))
    assert np.array_equal(before[0], found[0])


def test_update_one_learns_what_partial_fit_learns():
    scores, labels = pairs(60)
    whole = OnlineCalibrator().partial_fit(scores, labels)
    single = OnlineCalibrator().partial_fit(scores[:40], labels[:40])
    for score, label in zip(scores[40:], labels[40:], strict=True):
        single.update_one(score, label)
    assert np.array_equal(whole.predict_proba(scores), single.predict_proba(scores))


def test_three_classes_take_one_margin_each():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 600)
    margins = rng.normal(size=(600, 3)) + 2.0 * np.eye(3)[labels]
    model = OnlineCalibrator(scores="margin").partial_fit(margins, labels)
    found = model.predict_proba(margins)
    assert found.shape == (600, 3)
    assert np.allclose(found.sum(axis=1), 1.0)
    assert (model.predict(margins) == labels).mean() > 0.75


def test_a_copy_continues_with_the_same_answers():
    scores, labels = pairs()
    model = OnlineCalibrator().partial_fit(scores[:400], labels[:400], version="one")
    copy = pickle.loads(pickle.dumps(model))
    for one in (model, copy):
        one.partial_fit(scores[400:], labels[400:], version="two")
    assert np.array_equal(model.predict_proba(scores), copy.predict_proba(scores))


def test_scores_that_cannot_be_used_are_named():
    with pytest.raises(InvalidExample, match=r"score is 1\.5"):
        OnlineCalibrator().partial_fit([0.5, 1.5], ["a", "b"])
    with pytest.raises(InvalidExample, match="one number for each class"):
        OnlineCalibrator().partial_fit([[0.5, 0.2, 0.1]] * 2, ["a", "b"])
    with pytest.raises(InvalidExample, match="not finite"):
        OnlineCalibrator(scores="margin").partial_fit([0.0, np.inf], ["a", "b"])
    with pytest.raises(InvalidInput, match="one class only"):
        OnlineCalibrator().partial_fit([0.5, 0.5], ["a", "a"])
    with pytest.raises(InvalidConfig, match="scores"):
        OnlineCalibrator(scores="rank").partial_fit([0.5, 0.5], ["a", "b"])


def test_river_counts_scores_before_the_classifier_learned_their_example():
    model = calibrate(naive_bayes.GaussianNB())
    for x, y in datasets.Phishing().take(300):
        model.learn_one(x, y)
    assert set(model.predict_proba_one(x)) == {False, True}
    low, high = model.predict_interval_one(x)[True]
    assert low <= model.predict_proba_one(x)[True] <= high


def test_a_fitted_classifier_is_calibrated_from_its_first_score_on():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] + rng.logistic(size=400) > 0, "b", "a")
    fitted = LogisticRegression().fit(X[:200], y[:200])
    model = OnlineCalibrator.from_prefit(fitted)
    before = model.predict_proba(X[200:])
    assert np.corrcoef(before[:, 1], fitted.predict_proba(X[200:])[:, 1])[0, 1] > 0.999
    assert model.predict_interval(X[200:]).shape == (200, 2, 2)
    first_labels = np.flatnonzero(y == "a")[:3]  # of one class alone
    model.partial_fit(X[first_labels], y[first_labels]).partial_fit(X[200:], y[200:])
    late = OnlineCalibrator(LogisticRegression()).fit(X[:200], y[:200])
    assert [*model.classes_] == [*late.classes_] == ["a", "b"]
    with pytest.raises(InvalidInput, match="features"):
        model.predict_proba(X[:, :2])


def test_a_single_column_named_as_the_first_class_is_not_the_second():
    scores, labels = np.linspace(0.1, 0.9, 20), [False, True] * 10
    with pytest.raises(InvalidInput, match="it has the columns False; give one for each of the cl"):
        OnlineCalibrator().partial_fit(pd.DataFrame({False: scores}), labels)
    both = pd.DataFrame({True: scores, False: 1.0 - scores})
    assert np.array_equal(
        OnlineCalibrator().partial_fit(both, labels).predict_proba(both),
        OnlineCalibrator()
        .partial_fit(np.c_[1.0 - scores, scores], labels)
        .predict_proba(np.c_[1.0 - scores, scores]),
    )
