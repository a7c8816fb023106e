"""The memory of arrays, held against what the arrays were made of."""

from dataclasses import dataclass

import numpy as np
import pytest

from online_svm.config import PredictorConfig
from online_svm.refit.learner import Learner
from online_svm.refit.task import RefitTask
from online_svm.storage.memory import array_bytes


@dataclass(frozen=True, slots=True)
class Foreign:
    """Not of the package: what it holds is not its business."""

    held: object


def test_arrays_within_foreign_objects_do_not_count():
    assert array_bytes([Foreign(np.zeros(10)), np.zeros(3)]) == 24


@pytest.mark.parametrize("committee", ["single", "default"])
def test_a_learner_takes_its_rows_its_points_and_its_kernel_rows(committee):
    changes = {} if committee == "default" else {"committee": "single"}
    config = PredictorConfig(classes=("a", "b"), window=400, **changes)
    generator = np.random.default_rng(3)
    X = generator.normal(size=(400, 5))
    learner = Learner(config)
    learner.refit(RefitTask(0, 400, 0, X, (X[:, 0] > 0).astype(np.int64), np.ones(2)))
    taken = array_bytes(learner)
    machines = 2 if committee == "default" else 1
    kernel_rows = machines * 256 * 400 * 4
    assert kernel_rows + X.nbytes < taken < 3 * kernel_rows + 10 * X.nbytes
    assert array_bytes(Learner.from_state(learner.state(), config)) == pytest.approx(taken, rel=0.1)
