"""The count table of Lambrou et al. (2012) the slow way: scikit-learn's SVC, refitted each step."""

import math

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from online_svm.types import Bools, Floats

Labels = NDArray[np.str_]


def svc_intervals(X: Floats, y: Labels, gamma: float, tol: float = 1e-3) -> Floats:
    """Return the interval of every class at each step of the online protocol (q = 0.7, C = 1).

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    y : ndarray of shape (n,)
    gamma : float
        Of the rbf kernel.
    tol : float
        Of the solver.

    Returns
    -------
    ndarray of shape (n, n_classes, 2)
        [0, 1] until the proper training set has two classes.
    """
    classes, gram = np.unique(y), rbf_kernel(X, gamma=gamma)
    vacuous = np.tile([0.0, 1.0], (len(classes), 1))
    steps = [
        _step(gram, y, n, classes, tol) if len(np.unique(y[: _training(n)])) > 1 else vacuous
        for n in range(len(y))
    ]
    return np.stack(steps)


def _training(n: int) -> int:
    """Return how many of n examples train."""
    return math.ceil(0.7 * n)


def _step(gram: Floats, y: Labels, n: int, classes: Labels, tol: float) -> Floats:
    q = _training(n)
    scores = np.stack([_scores(gram, y[:q] == c, q, n, tol) for c in classes], axis=1)
    chosen = scores.argmax(axis=1)  # of q ... n: the calibration set and the new example
    inside = y[q:n][chosen[:-1] == chosen[-1]]
    counts = np.array([np.sum(inside == c) for c in classes])
    bounds: Floats = np.stack([counts, counts + 1], axis=1) / (counts.sum() + 1)
    return bounds


def _scores(gram: Floats, target: Bools, q: int, n: int, tol: float) -> Floats:
    if target.all() or not target.any():
        return np.full(n + 1 - q, 1.0 if target.all() else -1.0)
    svc = SVC(C=1.0, kernel="precomputed", tol=tol).fit(gram[:q, :q], target)
    scores: Floats = svc.decision_function(gram[q : n + 1, :q])
    return scores
