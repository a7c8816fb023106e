"""A scorer of its own for the exchangeability tests: Gaussian naive Bayes, in one pass.

The models of a feed are refitted too often to be compared with: a test needs many examples scored
by one. This scorer costs little, needs no examples kept, and takes every feature by itself: means
and variances by class. It need not be good, only fixed: that decides power, not validity.
"""

import math

import numpy as np

from online_svm.compiled.jit import inner
from online_svm.types import Floats

FEATURES = 64  # of a row, the first ones; the cost of a row is bounded
CLASSES = 16

_TINY = 1e-300


@inner
def gather(x: Floats, label: int, counts: Floats, means: Floats, squares: Floats) -> None:
    """Add a row to the moments of its class (Welford's recursion); a missing value adds nothing.

    Parameters
    ----------
    x : ndarray of shape (n_features,)
    label : int
        0 ... CLASSES - 1; other rows add nothing.
    counts, means, squares : ndarray of shape (CLASSES, n_features)
        Changed in place.
    """
    if not 0 <= label < len(counts):
        return
    for f in range(counts.shape[1]):
        if math.isfinite(x[f]):
            counts[label, f] += 1.0
            step = x[f] - means[label, f]
            means[label, f] += step / counts[label, f]
            squares[label, f] += step * (x[f] - means[label, f])


@inner
def log_densities(
    x: Floats, constants: Floats, means: Floats, precisions: Floats, logs: Floats
) -> None:
    """Fill `logs`, one a class, with ln(share of the class * density of the row in it)."""
    for c in range(len(logs)):
        total = constants[c]
        if total > -np.inf:
            for f in range(means.shape[1]):
                if math.isfinite(x[f]):
                    step = x[f] - means[c, f]
                    total -= 0.5 * precisions[c, f] * step * step
        logs[c] = total


@inner
def log_sum(logs: Floats, without: int) -> float:
    """Return ln of the sum of exp(logs), one left out (-1: none); -inf where nothing is left."""
    most = -np.inf
    for c in range(len(logs)):
        if c != without and logs[c] > most:
            most = logs[c]
    if most == -np.inf:
        return most
    total = 0.0
    for c in range(len(logs)):
        if c != without and logs[c] > -np.inf:
            total += math.exp(logs[c] - most)
    return most + math.log(total)


def frozen(counts: Floats, means: Floats, squares: Floats) -> tuple[Floats, Floats, Floats]:
    """Return constants, means and precisions of a scorer.

    A variance is that of the class and two examples more with the variance over all classes.

    Parameters
    ----------
    counts, means, squares : ndarray of shape (CLASSES, n_features)
        As `gather` made them.

    Returns
    -------
    constants : ndarray of shape (CLASSES,)
        -inf for a class without an example.
    means, precisions : ndarray of shape (CLASSES, n_features)
        A feature that does not vary has precision 0: it says nothing.
    """
    rows = counts.max(axis=1, initial=0.0)
    pooled = squares.sum(axis=0) / np.maximum(counts.sum(axis=0), 1.0)
    variances = (squares + 2.0 * pooled) / (counts + 2.0)
    varies = variances > _TINY
    precisions = np.where(varies, 1.0 / np.where(varies, variances, 1.0), 0.0)
    logs = np.where(varies, np.log(np.where(varies, variances, 1.0)), 0.0)
    shares = np.log(np.maximum(rows, 1.0) / max(rows.sum(), 1.0))
    constants = np.where(rows > 0.0, shares - 0.5 * logs.sum(axis=1), -np.inf)
    return constants, means.copy(), precisions


def overall(counts: Floats, means: Floats, squares: Floats) -> Floats:
    """Return mean and standard deviation of each feature over all classes, shape (2, n_features).

    Parameters
    ----------
    counts, means, squares : ndarray of shape (CLASSES, n_features)
        As `gather` made them.

    Examples
    --------
    >>> counts, means = np.array([[2.0], [2.0]]), np.array([[0.0], [4.0]])
    >>> overall(counts, means, np.zeros((2, 1))).ravel().tolist()
    [2.0, 2.0]
    """
    rows = np.maximum(counts.sum(axis=0), 1.0)
    mean = (counts * means).sum(axis=0) / rows
    variance = (squares + counts * (means - mean) ** 2).sum(axis=0) / rows
    return np.stack([mean, np.sqrt(variance)])


@inner
def follow(x: Floats, recent: Floats, memory: float) -> None:
    """Move exponentially weighted means, shape (n_features,), by what a row has."""
    for f in range(len(recent)):
        if math.isfinite(x[f]):
            recent[f] += (x[f] - recent[f]) / memory
