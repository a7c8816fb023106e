"""The implied posterior as a published map: its banks follow the proper training set."""

from dataclasses import replace

import numpy as np
import pytest
from predictor_answers import stream
from sklearn.preprocessing import StandardScaler

from online_svm.compiled.kernels import Kernel
from online_svm.predictor.calibrators import implied_probabilities
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.refit import learner, scaling
from online_svm.refit.learner import Learner, train_banks
from online_svm.refit.task import RefitResult, RefitTask
from online_svm.stream.input_batch import Example
from online_svm.stream.split import training_mask
from online_svm.svm.exact.batch_solver import fixed_rows
from online_svm.svm.implied_bank import BankPlan, ImpliedBank
from online_svm.svm.implied_posterior import ImpliedPosterior


@pytest.fixture(autouse=True)
def _small_banks(request, monkeypatch):
    """Give a bank nine machines, to count them one by one, and let every refit fit the scaling."""
    monkeypatch.setattr(scaling, "RESCALE_EVERY", 1)
    if "huge_features" not in request.node.name:
        monkeypatch.setattr(learner, "BANK_MODELS", 9)


def config_of(**changes):
    settings = {"maps": ("platt", "implied"), "gamma": 0.3, "refit_every": 40}
    settings |= {"train_fraction": 0.7}
    return ProtocolConfig.model_validate(settings | {"window": 80} | changes)


def training_set(X, labels, freeze):
    """Return scaled training rows, their labels and the scaler of the refit at `freeze`."""
    start = freeze - 80
    trains = training_mask("interleaved", start, freeze, 0.7)
    scaler = StandardScaler().fit(X[start:freeze][trains])
    return scaler.transform(X[start:freeze][trains]), np.array(labels[start:freeze])[trains], scaler


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_published_map_is_the_implied_posterior_of_the_training_set(n_classes):
    X, labels = stream(200, n_classes)
    predictor = OnlinePredictor(config_of(refit_lag=0))
    predictor.step_many(X[:160], labels[:160])
    rows, targets, scaler = training_set(X, labels, 160)
    reference = ImpliedPosterior(n_models=9, C=1.0, gamma=0.3).fit(rows, targets)
    found = np.array([predictor.step(Example(x)).maps["implied"] for x in X[160:]])
    expected = reference.predict_proba(scaler.transform(X[160:]))
    np.testing.assert_allclose(found[:, :n_classes], expected, rtol=1e-12)
    np.testing.assert_array_equal(found[:, n_classes], 0.0)  # the slot of unseen labels


def task_of(codes, n_classes):
    X = np.random.default_rng(1).normal(size=(len(codes), 2)) + codes[:, None]
    return RefitTask(0, len(codes), 0, X, codes, np.ones(n_classes)), X


@pytest.mark.parametrize("split", ["oldest", "interleaved"])
def test_a_class_without_training_examples_gets_no_vote(split):
    task, X = task_of(np.arange(60) % 2, n_classes=3)
    result = Learner(config_of(split=split)).refit(task)
    shares = [bank.shares(X) for bank in result.banks]
    assert len(shares) == 3
    np.testing.assert_array_equal(shares[2], 1 / 11)
    assert np.ptp(shares[0]) > 0.5
    copy = RefitResult.from_state(result.state())
    assert copy.state() == result.state()


@pytest.mark.parametrize("present", [0, 1])
def test_a_training_set_of_one_class_gets_every_vote(present):
    task, X = task_of(np.full(30, present), n_classes=2)
    (bank,) = Learner(config_of()).refit(task).banks
    np.testing.assert_array_equal(bank.shares(X), 10 / 11 if present else 1 / 11)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_a_labelled_training_example_no_class_is_preferred(n_classes):
    banks = train_banks(config_of(), Kernel("rbf"), np.empty((0, 2)), np.arange(0), n_classes)
    found = implied_probabilities(banks, np.ones((4, 2)))
    np.testing.assert_allclose(found, np.full((4, n_classes), 1 / n_classes), rtol=1e-15)


def test_banks_are_trained_only_where_the_map_is_published():
    task, _ = task_of(np.arange(40) % 2, n_classes=2)
    assert Learner(config_of(maps=("platt",))).refit(task).banks == ()


def test_class_weights_have_no_part_in_the_implied_map():
    task, X = task_of(np.arange(40) % 2, n_classes=2)
    weighted = replace(task, weights=np.array([1.0, 5.0]))
    plain, uneven = Learner(config_of()).refit(task), Learner(config_of()).refit(weighted)
    np.testing.assert_array_equal(plain.banks[0].shares(X), uneven.banks[0].shares(X))
    assert (plain.model.scores(X) != uneven.model.scores(X)).any()


@pytest.mark.parametrize("spread", [0.0, 1e-16, 1.0])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_bank_over_huge_features_ends_and_gives_the_same_probabilities_again(kernel, spread):
    rng = np.random.default_rng(0)
    X = 1e100 * (1.0 - spread * rng.integers(0, 5, size=(20, 3)).astype(np.float64))
    codes = np.arange(20) % 2
    config = ProtocolConfig()
    banks = [train_banks(config, Kernel(kernel), X, codes, 2) for _ in range(2)]
    found = [implied_probabilities(bank, X) for bank in banks]
    assert found[0].tobytes() == found[1].tobytes()
    np.testing.assert_allclose(found[0].sum(axis=1), 1.0)
    assert ((found[0] > 0.0) & (found[0] < 1.0)).all()


def test_a_machine_stops_where_its_slacks_are_rounding():
    rng = np.random.default_rng(28)
    X = 1e100 * (1.0 - 1e-16 * rng.integers(0, 5, size=(8, 3)).astype(np.float64))
    positive = rng.integers(0, 2, 8).astype(bool)
    kernel = Kernel("linear")
    bank = ImpliedBank.fit(kernel, fixed_rows(kernel, X, 1.0), positive, np.ones(8), BankPlan(9))
    assert bank.steps < 10_000
