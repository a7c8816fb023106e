"""The online protocol of Lambrou et al. (2012) against scikit-learn, refitted at each step."""

import math

import numpy as np
from predictor_answers import blocks
from sklearn.datasets import load_wine
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.protocol import ProtocolConfig


def svc_intervals(X, y, gamma, tol=1e-3):
    """Return the interval of every class at each step of the online protocol (q = 0.7, C = 1).

    Its shape is (n, n_classes, 2); it is [0, 1] until the proper training set has two classes.
    `gamma` is of the rbf kernel, `tol` of the solver.
    """
    classes, gram = np.unique(y), rbf_kernel(X, gamma=gamma)
    vacuous = np.tile([0.0, 1.0], (len(classes), 1))
    steps = [
        _step(gram, y, n, classes, tol) if len(np.unique(y[: _training(n)])) > 1 else vacuous
        for n in range(len(y))
    ]
    return np.stack(steps)


def _training(n):
    return math.ceil(0.7 * n)


def _step(gram, y, n, classes, tol):
    q = _training(n)
    scores = np.stack([_scores(gram, y[:q] == c, q, n, tol) for c in classes], axis=1)
    chosen = scores.argmax(axis=1)  # of q ... n: the calibration set and the new example
    inside = y[q:n][chosen[:-1] == chosen[-1]]
    counts = np.array([np.sum(inside == c) for c in classes])
    return np.stack([counts, counts + 1], axis=1) / (counts.sum() + 1)


def _scores(gram, target, q, n, tol):
    if target.all() or not target.any():
        return np.full(n + 1 - q, 1.0 if target.all() else -1.0)
    svc = SVC(C=1.0, kernel="precomputed", tol=tol).fit(gram[:q, :q], target)
    return svc.decision_function(gram[q : n + 1, :q])


def test_on_the_wines_of_scikit_learn_intervals_are_those_of_its_machine():
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[:100]
    X, y = StandardScaler().fit_transform(X)[order], y[order].astype(str)
    config = ProtocolConfig.paper(tuple(np.unique(y)), gamma=0.02, maps=())
    answered = blocks(OnlinePredictor(config).step_many(X, y.tolist()))
    ours = np.concatenate(
        [np.tile([0.0, 1.0], (len(block), 3, 1)) if block.status == "warming"
         else np.stack([block.venn_lower, block.venn_upper], axis=2) for block in answered]
    )  # fmt: skip
    same = np.isclose(ours, svc_intervals(X, y, 0.02), rtol=0, atol=1e-15).all(axis=(1, 2))
    assert same.mean() >= 0.99
