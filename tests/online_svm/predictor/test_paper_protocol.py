"""The online protocol of Lambrou et al. (2012) on their data, against scikit-learn at each step."""

import numpy as np
import pytest
from svc_reference import svc_intervals

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock

SIGMA = 0.6
GAMMA = 1 / (2 * SIGMA**2)


def shuffled(data, seed, n):
    order = np.random.default_rng(seed).permutation(len(data.y))[:n]
    return data.X[order], np.asarray(data.y)[order].astype(str)


@pytest.mark.parametrize("name", ["car", "wine"])
@pytest.mark.parametrize("seed", [0, 1])
def test_intervals_are_those_of_scikit_learn_refitted_at_each_step(name, seed, data_set):
    X, y = shuffled(data_set(name), seed, 300)
    config = PredictorConfig.paper(tuple(np.unique(y)), gamma=GAMMA, maps=())
    blocks = OnlinePredictor(config).step_many(X, y.tolist())
    answered = [block for block in blocks if isinstance(block, PredictionBlock)]
    ours = np.concatenate([_intervals(block, len(np.unique(y))) for block in answered])
    same = np.isclose(ours, svc_intervals(X, y, GAMMA), rtol=0, atol=1e-15).all(axis=(1, 2))
    assert same.mean() >= 0.99


def _intervals(block, n_classes):
    if block.status == "warming":
        return np.tile([0.0, 1.0], (len(block), n_classes, 1))
    return np.stack([block.venn_lower, block.venn_upper], axis=2)
