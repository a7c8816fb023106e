"""Online Platt scaling with calibeating (Gupta and Ramdas 2023), of scores of any model."""

import numpy as np
from scipy.special import expit, logit

from online_svm.types import Floats, Ints

GAMMA = 0.1  # the step is 1 / GAMMA; the curvature begins as 1 / GAMMA^2: the paper's, of all data
RADIUS = 100.0  # of the ball that slope and intercept stay in
BINS = 10
FARTHEST = 1e-6  # probabilities nearer than this to 0 or 1 count as so far


def online_platt(scores: Floats, happened: Ints) -> Floats:
    """Return sigmoid(a s + b) of each score, a and b moved by each label after its answer.

    The moves are online Newton steps (Hazan, Agarwal and Kale 2007) from a = 1, b = 0.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    happened : ndarray of shape (n,)
        0 or 1.

    Examples
    --------
    >>> said = online_platt(np.tile([2.0, -2.0], 500), np.tile([1, 0, 1, 0, 0, 1], 200)[:1000])
    >>> said[:2].round(2).tolist(), said[-2:].round(1).tolist()  # two in three are right
    ([0.88, 0.12], [0.7, 0.3])
    """
    found = np.empty(len(scores))
    weights, curvature = np.array([1.0, 0.0]), np.eye(2) / GAMMA**2
    for n, row in enumerate(np.column_stack((scores, np.ones(len(scores))))):
        found[n] = expit(row @ weights)
        gradient = (found[n] - happened[n]) * row
        curvature += np.outer(gradient, gradient)
        weights = _into_ball(weights - np.linalg.solve(curvature, gradient) / GAMMA, curvature)
    return found


def _into_ball(weights: Floats, curvature: Floats) -> Floats:
    """Return the point of the ball that is nearest by (x - w)' curvature (x - w)."""
    if np.linalg.norm(weights) <= RADIUS:
        return weights
    target = curvature @ weights

    def at(multiplier: float) -> Floats:
        """Return the minimum under a multiplier of the constraint."""
        return np.asarray(np.linalg.solve(curvature + multiplier * np.eye(2), target))

    low, high = 0.0, 1.0
    while np.linalg.norm(at(high)) > RADIUS:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.linalg.norm(at(middle)) > RADIUS else (low, middle)
    return at(high)


def calibeaten(probabilities: Floats, happened: Ints) -> Floats:
    """Return the frequency so far among answers whose probability was in the same tenth.

    That is calibeating by tracking (Foster and Hart 2023). Each tenth begins with its midpoint, as
    if it had come of one example.

    Examples
    --------
    >>> calibeaten(np.array([0.52, 0.58, 0.91]), np.array([0, 1, 1])).tolist()
    [0.55, 0.275, 0.95]
    """
    sums, counts = (np.arange(BINS) + 0.5) / BINS, np.ones(BINS)
    bins = np.minimum((probabilities * BINS).astype(np.int64), BINS - 1)
    found = np.empty(len(probabilities))
    for n, b in enumerate(bins.tolist()):
        found[n] = sums[b] / counts[b]
        sums[b] += happened[n]
        counts[b] += 1.0
    return found


def online_platt_of_classes(base: Floats, codes: Ints, *, calibeats: bool) -> Floats:
    """Return the map of each class against the rest, normalised; of two classes one map.

    Parameters
    ----------
    base : ndarray of shape (n, K)
        Probabilities of a model, whose log-odds are scaled.
    codes : ndarray of shape (n,)

    Examples
    --------
    >>> base, codes = np.tile([0.2, 0.8], (400, 1)), np.tile([0, 1], 200)
    >>> online_platt_of_classes(base, codes, calibeats=False)[-1].round(1).tolist()
    [0.5, 0.5]
    """
    scores = logit(np.clip(base, FARTHEST, 1.0 - FARTHEST))

    def of_class(k: int) -> Floats:
        said = online_platt(scores[:, k], codes == k)
        return calibeaten(said, codes == k) if calibeats else said

    if base.shape[1] == 2:
        positive = of_class(1)
        return np.column_stack((1.0 - positive, positive))
    found = np.column_stack([of_class(k) for k in range(base.shape[1])])
    return np.asarray(found / found.sum(axis=1, keepdims=True))
