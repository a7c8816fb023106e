"""A refit is a function of its tasks, wherever and in however many pieces it is computed."""

from typing import Any

import numpy as np
import pytest

from online_svm.config import PredictorConfig
from online_svm.refit import learner as learning
from online_svm.refit import scaling
from online_svm.refit.learner import Learner
from online_svm.refit.task import RefitResult, RefitTask
from online_svm.stream.split import training_mask


def data(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, n)
    return rng.normal(size=(n, 4)) + codes[:, None], codes


def tasks(window: int | None = 80, every: int = 25) -> list[RefitTask]:
    X, codes = data()
    made, first = [], 0
    for freeze in range(every, len(X) + 1, every):
        start = 0 if window is None else max(0, freeze - window)
        first = max(first, start)
        made.append(
            RefitTask(start, freeze, first, X[first:freeze], codes[start:freeze], np.ones(3))
        )
        first = freeze
    return made


CHANGES: list[dict[str, Any]] = [
    {"split": "oldest"},
    {"committee": "single", "scale": "none"},
    {"committee": "single", "class_weight": "balanced"},
    {"committee": "default"},
    {"committee": ("logistic", "cauchy"), "scale": "none", "class_weight": "balanced"},
    {"split": "crossfit"},
]

IDS = ["oldest", "unscaled", "balanced", "committee", "two members", "crossfit"]


@pytest.mark.parametrize("changes", CHANGES, ids=IDS)
def test_a_learner_loaded_from_its_state_gives_the_same_bytes(changes: dict[str, Any]) -> None:
    config = PredictorConfig(window=80, **changes)
    whole = Learner(config)
    moved = Learner(config)
    for task in tasks():
        passed = RefitTask.from_state(task.state())
        assert whole.refit(task).state() == moved.refit(passed).state()
        assert whole.state() == moved.state()
        moved = Learner.from_state(moved.state(), config)


@pytest.mark.parametrize("changes", CHANGES, ids=IDS)
def test_a_result_survives_the_pipe(changes: dict[str, Any]) -> None:
    result = Learner(PredictorConfig(window=80, **changes)).refit(tasks()[0])
    copy = RefitResult.from_state(result.state())
    X = data()[0]
    np.testing.assert_array_equal(result.model.scores(X), copy.model.scores(X))
    np.testing.assert_array_equal(result.calibration_scores, copy.calibration_scores)
    np.testing.assert_array_equal(result.scaling.transform(X), copy.scaling.transform(X))


@pytest.mark.parametrize("split", ["oldest", "interleaved"])
def test_scores_are_those_of_the_model_it_returns(
    split: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "TOLERANCE", 1e-5)
    settings: dict[str, Any] = {"split": split, "committee": "single"}
    config = PredictorConfig(window=80, **settings)
    learner = Learner(config)
    X, _ = data()
    for task in tasks():
        result = learner.refit(task)
        trains = training_mask(split, task.start, task.freeze, 0.7)
        again = result.model.scores(result.scaling.transform(X[task.start : task.freeze]))
        np.testing.assert_allclose(result.calibration_scores, again[~trains], atol=1e-9)
        np.testing.assert_allclose(result.training_scores, again[trains], atol=1e-9)


def test_the_scaling_is_fitted_when_T_has_doubled_and_at_every_nth_refit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scaling, "RESCALE_EVERY", 7)
    learner = Learner(PredictorConfig(window=80, split="oldest"))
    scalings = [learner.refit(task).scaling for task in tasks()]
    changes = [i + 1 for i in range(1, 8) if scalings[i] is not scalings[i - 1]]
    # T has 18, 35, 53, 56, 56, ... examples: it never doubles but from 18 to 53.
    assert changes == [3, 7]


@pytest.mark.parametrize("committee", ["single", "default"])
def test_a_class_that_joins_gives_the_refit_one_more_machine(committee: Any) -> None:
    config = PredictorConfig(window=80, committee=committee)
    learner = Learner(config)
    X, codes = data(100)
    two = codes % 2
    learner.refit(RefitTask(0, 50, 0, X[:50], two[:50], np.ones(2)))
    result = learner.refit(RefitTask(20, 100, 50, X[50:], codes[20:], np.ones(3)))
    assert result.model.scores(X).shape == (100, 3)
    assert len(result.calibration_scores) + len(result.training_scores) == 80
