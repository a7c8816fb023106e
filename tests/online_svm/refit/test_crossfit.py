"""Cross-fitting against scikit-learn's SVC fitted fold by fold, and against itself."""

import numpy as np
import pytest
from predictor_answers import said
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from online_svm import PlattScaling
from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit import learner, scaling
from online_svm.refit.crossfit import FOLDS
from online_svm.stream.split import fold_numbers, window_parts


def stream(n, n_classes=2):
    rng = np.random.default_rng(n_classes)
    codes = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 3)) + codes[:, None], codes, [f"c{code}" for code in codes]


def config_of(**changes):
    settings = {"split": "crossfit", "gamma": 0.3, "refit_every": 40, "window": 100}
    return PredictorConfig.model_validate(settings | changes)


def separate_fits(X, codes, folds, n_classes, asked):
    """Return out-of-fold scores, and the mean scores of other rows."""
    targets = [codes == 1] if n_classes == 2 else [codes == k for k in range(n_classes)]
    own, mean = np.empty((len(X), len(targets))), np.zeros((len(asked), len(targets)))
    for f in range(FOLDS):
        for s, target in enumerate(targets):
            svc = SVC(gamma=0.3, tol=1e-7).fit(X[folds != f], target[folds != f])
            own[folds == f, s] = svc.decision_function(X[folds == f])
            mean[:, s] += svc.decision_function(asked) / FOLDS
    return own, mean


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_are_those_of_machines_fitted_one_by_one_without_each_fold(n_classes, monkeypatch):
    monkeypatch.setattr(learner, "TOLERANCE", 1e-7)
    monkeypatch.setattr(scaling, "RESCALE_EVERY", 1)
    X, codes, labels = stream(260, n_classes)
    config = config_of(refit_lag=0, metrics_every=10**6)
    predictor = OnlinePredictor(config)
    predictor.step_many(X[:240], labels[:240])
    held = slice(140, 240)
    scaler = StandardScaler().fit(X[held])
    own, mean = separate_fits(
        scaler.transform(X[held]), codes[held], fold_numbers(140, 240, FOLDS), n_classes,
        scaler.transform(X[240:]),
    )  # fmt: skip
    assert predictor.active is not None
    np.testing.assert_allclose(predictor.active.calibration.scores, own, atol=2e-5)
    found = predictor.active.score(X[240:])
    np.testing.assert_allclose(found, mean, atol=2e-5)
    training = predictor.active.result.training_scores
    np.testing.assert_allclose(training, predictor.active.score(X[held]), atol=1e-9)
    if n_classes == 2:
        platt = PlattScaling().fit(own[:, 0], codes[held] == 1)
        given = [answer.maps["platt"][1] for answer in said(predictor, X[240:], [None] * 20)]
        np.testing.assert_allclose(given, platt.predict(mean[:, 0]), atol=1e-4)


def test_the_whole_window_and_what_was_learned_since_calibrates():
    X, _, labels = stream(130)
    predictor = OnlinePredictor(config_of(refit_lag=15, window=80))
    predictor.step_many(X[:95], labels[:95])
    assert predictor.active is not None
    assert len(predictor.active.calibration.codes) == 80
    assert len(predictor.active.training_columns) == 80
    predictor.step_many(X[95:], labels[95:])
    assert len(predictor.active.calibration.codes) == 80  # the newest `window`


def test_the_guarantee_is_approximate_and_says_why():
    X, _, labels = stream(60)
    answer = said(OnlinePredictor(config_of(classes=("c0", "c1"))), X, labels)[-1]
    assert answer.guarantee == "approximate"
    assert "out of fold" in answer.reason


def test_a_fold_with_one_class_or_none_is_answered(monkeypatch):
    monkeypatch.setattr(learner, "FOLDS", 20)
    X = np.arange(12.0)[:, None]
    labels = ["c0"] * 9 + ["c1"] * 3
    answers = said(OnlinePredictor(config_of()), X, [*labels], 1)
    assert [answer.status for answer in answers] == ["warming"] * 10 + ["ok"] * 2
    assert all(np.isfinite(answer.scores).all() for answer in answers)


@pytest.mark.parametrize("seed", [0, 3])
def test_an_example_keeps_its_fold_in_every_window(seed):
    whole = fold_numbers(0, 20_000, 5, seed)
    np.testing.assert_array_equal(fold_numbers(700, 900, 5, seed), whole[700:900])
    counts = np.bincount(whole)
    assert len(counts) == 5
    assert np.abs(counts - 4000).max() < 4 * np.sqrt(20_000 * 0.2 * 0.8)


def test_the_parts_of_the_other_splits_exclude_each_other():
    for split in ("oldest", "interleaved"):
        trains, calibrates = window_parts(split, 3, 50, 0.7)
        assert (trains ^ calibrates).all()


def test_only_the_ordinary_machine_is_cross_fitted():
    with pytest.raises(ValueError, match="crossfit needs learner = 'svc'"):
        config_of(learner="psvm", classes=("c0", "c1"))
