"""From the counts of a category to lower, upper and point probabilities.

For category k with label counts N_k[y], N their sum and c classes, the distribution for the
assumed label j is p^j(y) = (N_k[y] + [y = j]) / (N + 1) (Lambrou et al. 2012, eq. 2, with the
example itself counted). Everything below follows from it.
"""

import numpy as np

from online_svm.types import Floats, Ints


def intervals(counts: Ints, size: Ints | None = None) -> Floats:
    """Return lower and upper probabilities, shape (n, c, 2), for rows of counts, shape (n, c).

    An empty category gives [0, 1]. `size` is N of each row, where it is known already.

    Examples
    --------
    >>> intervals(np.array([[1, 2], [0, 0]])).tolist()
    [[[0.25, 0.5], [0.5, 0.75]], [[0.0, 1.0], [0.0, 1.0]]]
    """
    total = _totals(counts, size)
    bounds = np.empty((*counts.shape, 2))
    np.divide(counts, total, out=bounds[:, :, 0])
    np.divide(counts + 1, total, out=bounds[:, :, 1])
    return bounds


def multiprobabilities(counts: Ints) -> Floats:
    """Return p^j(y) at [row, j, y], shape (n, c, c), for rows of counts, shape (n, c).

    Examples
    --------
    >>> multiprobabilities(np.array([[1, 2]])).tolist()
    [[[0.5, 0.5], [0.25, 0.75]]]
    """
    c = counts.shape[1]
    total = counts.sum(axis=1)[:, None, None] + 1
    joined: Floats = (counts[:, None, :] + np.eye(c, dtype=np.int64)) / total
    return joined


def mean_points(counts: Ints, size: Ints | None = None) -> Floats:
    """Return the mean over the c distributions, (N_k[y] + 1/c) / (N + 1), shape (n, c).

    This is the paper's point probability (its eq. 3). `size` is N of each row, where it is known.

    Examples
    --------
    >>> mean_points(np.array([[1, 2]])).tolist()
    [[0.375, 0.625]]
    """
    c = counts.shape[1]
    points: Floats = (counts + 1.0 / c) / _totals(counts, size)
    return points


def _totals(counts: Ints, size: Ints | None) -> Ints:
    """Return N + 1 of each row, shape (n, 1)."""
    totals: Ints = (counts.sum(axis=1) if size is None else size)[:, None] + 1
    return totals
