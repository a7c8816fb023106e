"""The count table of Lambrou et al. (2012) the slow way: scikit-learn's SVC, refitted each step."""

import math

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC


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
    """Return how many of n examples train."""
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
