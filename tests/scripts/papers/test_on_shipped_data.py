"""The methods of the five papers on data that come with scikit-learn: no download is needed."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from svc_reference import svc_intervals

from online_svm import ImpliedPosterior, PlattScaling, ProbabilisticSVC
from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock
from scripts.papers.evidential import LOGISTIC, Partition, combined_error, score_chunks

GAMMA = 0.02


@pytest.fixture(scope="module")
def cancer():
    """Benign or malignant: 150 examples to train on, 150 to calibrate, and the others."""
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X = StandardScaler().fit_transform(X)[order]
    return [(X[part], y[order][part]) for part in (slice(150), slice(150, 300), slice(300, None))]


@pytest.fixture(scope="module")
def machine(cancer):
    return SVC(gamma=GAMMA).fit(*cancer[0])


def test_platt_1999_the_sigmoid_is_scikit_learns_and_beats_the_clipped_score(cancer, machine):
    _, calibration, (X, y) = cancer
    sigmoid = PlattScaling().fit(machine.decision_function(calibration[0]), calibration[1])
    ours = sigmoid.predict(machine.decision_function(X))
    peer = CalibratedClassifierCV(FrozenEstimator(machine), method="sigmoid").fit(*calibration)
    assert ours == pytest.approx(peer.predict_proba(X)[:, 1], abs=1e-3)
    raw = np.clip((machine.decision_function(X) + 1) / 2, 1e-3, 1 - 1e-3)
    assert log_loss(y, ours) < log_loss(y, raw)


def test_lambrou_2012_the_intervals_are_those_of_a_machine_refitted_at_each_step():
    X, labels = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))[:100]
    X, y = StandardScaler().fit_transform(X)[order], labels[order].astype(str)
    config = PredictorConfig.paper(("0", "1", "2"), gamma=GAMMA, maps=())
    blocks = OnlinePredictor(config).step_many(X, y.tolist())
    answered = [block for block in blocks if isinstance(block, PredictionBlock)]
    ours = np.concatenate(
        [
            np.tile([0.0, 1.0], (len(block), 3, 1))
            if block.status == "warming"
            else np.stack([block.lower, block.upper], axis=2)
            for block in answered
        ]
    )
    same = np.isclose(ours, svc_intervals(X, y, GAMMA), rtol=0, atol=1e-15).all(axis=(1, 2))
    assert same.mean() >= 0.99


def test_nalbantov_and_ivanov_the_posterior_is_the_share_of_separately_fitted_machines(cancer):
    (X, y), _, (X_test, y_test) = cancer
    bank = ImpliedPosterior(n_models=19, C=1.0, gamma=GAMMA).fit(X, y)
    weights = np.arange(1, 20) / 20
    votes = sum(
        SVC(gamma=GAMMA, class_weight={0: 1 - z, 1: z}).fit(X, y).decision_function(X_test) > 0
        for z in weights
    )
    assert np.abs(bank.vote_shares(X_test) - (votes + 1) / 21).mean() < 1e-3
    assert np.mean(bank.predict(X_test) == y_test) > 0.9


def test_niaf_2014_an_annotators_probabilities_teach_what_classes_teach(cancer, machine):
    """Half of the examples carry a probability in place of the class."""
    (X, y), calibration, (X_test, y_test) = cancer
    sigmoid = PlattScaling().fit(machine.decision_function(calibration[0]), calibration[1])
    told = np.where(np.arange(len(y)) % 2, np.nan, sigmoid.predict(machine.decision_function(X)))
    signs = np.where(np.isnan(told), np.where(y == 1, 1, -1), 0)
    fitted = ProbabilisticSVC(C=1.0, C_prob=10.0, gamma=GAMMA, eta=0.05).fit(X, signs, prob=told)
    assert np.mean(fitted.predict(X_test) == np.where(y_test == 1, 1, -1)) > 0.9
    given = ~np.isnan(told)
    off = np.abs(fitted.predict_proba(X[given])[:, 1] - told[given])
    assert np.mean(off < 0.05 + 0.01) > 0.9


def test_evidential_calibration_classifiers_of_subsets_combine_to_a_good_one(cancer):
    (X, y), more, (X_test, y_test) = cancer
    X, y = np.concatenate([X, more[0]]), np.concatenate([y, more[1]])
    part = Partition.of(X, y == 1, X_test, y_test == 1)
    scored = score_chunks(part, [30] * 10, halves=True)
    for calibrate in LOGISTIC.values():
        assert combined_error(scored, calibrate, part.y_test) < 0.1
