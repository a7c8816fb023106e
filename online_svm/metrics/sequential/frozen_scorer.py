"""A scorer of its own for the exchangeability tests: Gaussian naive Bayes, in one pass.

The models of a feed are refitted too often to be compared with: a test needs many examples scored
by one. This scorer costs little, needs no examples kept, and takes every feature by itself: means
and variances by class. It need not be good, only fixed: that decides power, not validity.
"""

import math
from typing import NamedTuple

import numpy as np

from online_svm.compiled.elementary import exp, log, logs
from online_svm.compiled.jit import inner
from online_svm.compiled.ordered_sums import sum_rows
from online_svm.types import Floats

FEATURES = 64  # of a row, the first ones; the cost of a row is bounded
CLASSES = 16

_TINY = 1e-300

MEMORY = 250.0  # rows behind the recent mean of a feature


class Moments(NamedTuple):
    """Counts, means and sums of squares of each feature, by class; (CLASSES, n_features) each."""

    counts: Floats
    means: Floats
    squares: Floats


class FrozenScorer(NamedTuple):
    """Gaussian densities, by class.

    Attributes
    ----------
    constants : ndarray of shape (CLASSES,)
        -inf for a class without an example.
    means, precisions : ndarray of shape (CLASSES, n_features)
        A feature that does not vary has precision 0: it says nothing.
    """

    constants: Floats
    means: Floats
    precisions: Floats


@inner
def take(
    x: Floats, label: int, moments: Moments, scorer: FrozenScorer, recent: Floats, logs: Floats
) -> None:
    """Add a row to the moments of its class, move the recent means, and find its densities.

    All three in one pass over the features, since that takes most of the time of these tests. A
    missing value adds nothing.

    Parameters
    ----------
    x : ndarray of shape (n_features,)
    label : int
        0 ... CLASSES - 1; other rows add nothing to moments.
    moments : Moments
        Changed in place (Welford's recursion).
    scorer : FrozenScorer
    recent : ndarray of shape (n_features,)
        Means that are exponentially weighted, of `MEMORY` rows; changed in place.
    logs : ndarray of shape (n_classes,)
        Becomes ln(share of the class * density of the row in it). Empty while there is no scorer:
        then there are moments alone.
    """
    counts, means, squares = moments
    constants, centres, precisions = scorer
    has_class = 0 <= label < len(counts)
    for c in range(len(logs)):
        logs[c] = constants[c]
    for f in range(len(recent)):
        value = x[f]
        if not math.isfinite(value):
            continue
        if has_class:
            counts[label, f] += 1.0
            step = value - means[label, f]
            means[label, f] += step / counts[label, f]
            squares[label, f] += step * (value - means[label, f])
        if not len(logs):
            continue
        recent[f] += (value - recent[f]) / MEMORY
        for c in range(len(logs)):
            if logs[c] > -np.inf:
                step = value - centres[c, f]
                logs[c] -= 0.5 * precisions[c, f] * step * step


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
    if len(logs) == 2 and without >= 0:
        return most + 0.0  # the only one that is left
    for c in range(len(logs)):
        if c != without and logs[c] > -np.inf:
            total += exp(logs[c] - most)
    return most + log(total)


def frozen(moments: Moments) -> FrozenScorer:
    """Return the scorer of the rows that were gathered.

    A variance is that of the class and two examples more with the variance over all classes.
    """
    counts, means, squares = moments
    rows = counts.max(axis=1, initial=0.0)
    pooled = sum_rows(squares) / np.maximum(sum_rows(counts), 1.0)
    variances = (squares + 2.0 * pooled) / (counts + 2.0)
    varies = variances > _TINY
    precisions = np.where(varies, 1.0 / np.where(varies, variances, 1.0), 0.0)
    widths = np.where(varies, logs(np.where(varies, variances, 1.0)), 0.0)
    shares = logs(np.maximum(rows, 1.0) / max(math.fsum(rows), 1.0))
    constants = np.where(rows > 0.0, shares - 0.5 * sum_rows(widths.T), -np.inf)
    return FrozenScorer(constants, means.copy(), precisions)


def overall(moments: Moments) -> Floats:
    """Return mean and standard deviation of each feature over all classes, shape (2, n_features).

    Examples
    --------
    >>> counts, means = np.array([[2.0], [2.0]]), np.array([[0.0], [4.0]])
    >>> overall(Moments(counts, means, np.zeros((2, 1)))).ravel().tolist()
    [2.0, 2.0]
    """
    counts, means, squares = moments
    rows = np.maximum(sum_rows(counts), 1.0)
    mean = sum_rows(counts * means) / rows
    apart = means - mean
    variance = sum_rows(squares + counts * (apart * apart)) / rows
    return np.stack([mean, np.sqrt(variance)])
