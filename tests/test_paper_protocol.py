"""The online protocol of Lambrou et al. (2012) on their data, against scikit-learn at each step."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from online_svm.config import PredictorConfig
from online_svm.prediction import PredictionBlock
from online_svm.predictor import OnlinePredictor
from workers.data import Dataset

SIGMA = 0.6
GAMMA = 1 / (2 * SIGMA**2)


def shuffled(data: Dataset, seed: int, n: int) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    order = np.random.default_rng(seed).permutation(len(data.y))[:n]
    return data.X[order], np.asarray(data.y)[order].astype(str)


def reference_intervals(X: NDArray[np.float64], y: NDArray[np.str_]) -> NDArray[np.float64]:
    """Return intervals from counts of scikit-learn's classes, refitted at every step."""
    classes = np.unique(y)
    gram = rbf_kernel(X, gamma=GAMMA)
    intervals = []
    for n in range(len(X)):
        q = math.ceil(0.7 * n)
        if len(np.unique(y[:n])) < 2:
            intervals.append(np.tile([0.0, 1.0], (len(classes), 1)))
            continue
        scores = np.stack([_one_score(gram, y[:q] == c, q, n) for c in classes], axis=1)
        chosen = scores.argmax(axis=1)  # of q ... n: the calibration set and the new example
        inside = y[q:n][chosen[:-1] == chosen[-1]]
        counts = np.array([np.sum(inside == c) for c in classes])
        intervals.append(np.stack([counts, counts + 1], axis=1) / (counts.sum() + 1))
    return np.array(intervals)


def _one_score(
    gram: NDArray[np.float64], target: NDArray[np.bool_], q: int, n: int
) -> NDArray[np.float64]:
    if target.all() or not target.any():
        return np.full(n + 1 - q, 1.0 if target.all() else -1.0)
    svc = SVC(C=1.0, kernel="precomputed", tol=1e-4).fit(gram[:q, :q], target)
    decision: NDArray[np.float64] = svc.decision_function(gram[q : n + 1, :q])
    return decision


@pytest.mark.parametrize("name", ["car", "wine"])
@pytest.mark.parametrize("seed", [0, 1])
def test_intervals_are_those_of_scikit_learn_refitted_at_each_step(
    name: str, seed: int, data_set: Callable[[str], Dataset]
) -> None:
    X, y = shuffled(data_set(name), seed, 300)
    config = PredictorConfig.paper(tuple(np.unique(y)), gamma=GAMMA, maps=())
    blocks = OnlinePredictor(config).step_many(X, y.tolist())
    answered = [block for block in blocks if isinstance(block, PredictionBlock)]
    ours = np.concatenate([_intervals(block, len(np.unique(y))) for block in answered])
    same = np.isclose(ours, reference_intervals(X, y), rtol=0, atol=1e-15).all(axis=(1, 2))
    assert same.mean() >= 0.99


def _intervals(block: PredictionBlock, n_classes: int) -> NDArray[np.float64]:
    if block.status == "warming":
        return np.tile([0.0, 1.0], (len(block), n_classes, 1))
    return np.stack([block.lower, block.upper], axis=2)
