"""What a refit gives: scores of its own model, a scaling, one machine a class."""

import numpy as np
import pytest

from online_svm.config import PredictorConfig
from online_svm.refit import learner as learning
from online_svm.refit import scaling
from online_svm.refit.learner import Learner
from online_svm.refit.task import RefitTask
from online_svm.stream.split import training_mask


def data(n=200):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, n)
    return rng.normal(size=(n, 4)) + codes[:, None], codes


def tasks(window=80, every=25):
    X, codes = data()
    for freeze in range(every, len(X) + 1, every):
        start, first = max(0, freeze - window), freeze - every
        yield RefitTask(start, freeze, first, X[first:freeze], codes[start:freeze], np.ones(3))


@pytest.mark.parametrize("split", ["oldest", "interleaved"])
def test_scores_are_those_of_the_model_it_returns(split, monkeypatch):
    monkeypatch.setattr(learning, "TOLERANCE", 1e-5)
    learner = Learner(PredictorConfig(window=80, split=split, committee="single"))
    X, _ = data()
    for task in tasks():
        result = learner.refit(task)
        trains = training_mask(split, task.start, task.freeze, 0.7)
        again = result.model.scores(result.scaling.transform(X[task.start : task.freeze]))
        np.testing.assert_allclose(result.calibration_scores, again[~trains], atol=1e-9)
        np.testing.assert_allclose(result.training_scores, again[trains], atol=1e-9)


def test_the_scaling_is_fitted_when_T_has_doubled_and_at_every_nth_refit(monkeypatch):
    monkeypatch.setattr(scaling, "RESCALE_EVERY", 7)
    learner = Learner(PredictorConfig(window=80, split="oldest"))
    scalings = [learner.refit(task).scaling for task in tasks()]
    changes = [i + 1 for i in range(1, 8) if scalings[i] is not scalings[i - 1]]
    # T has 18, 35, 53, 56, 56, ... examples: it never doubles but from 18 to 53.
    assert changes == [3, 7]


@pytest.mark.parametrize("committee", ["single", "default"])
def test_a_class_that_joins_gives_the_refit_one_more_machine(committee):
    learner = Learner(PredictorConfig(window=80, committee=committee))
    X, codes = data(100)
    learner.refit(RefitTask(0, 50, 0, X[:50], codes[:50] % 2, np.ones(2)))
    result = learner.refit(RefitTask(20, 100, 50, X[50:], codes[20:], np.ones(3)))
    assert result.model.scores(X).shape == (100, 3)
    assert len(result.calibration_scores) + len(result.training_scores) == 80
