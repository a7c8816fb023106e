"""Shift of the mean of each feature between two groups of rows. Descriptive: no test."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from online_svm.errors import InvalidInput
from online_svm.types import Floats


@dataclass(frozen=True, slots=True)
class FeatureShift:
    """Means of two groups of rows, and their difference.

    Attributes
    ----------
    before, after : ndarray of shape (n_features,)
        Means of the values that are there; NaN where none is.
    shift : ndarray of shape (n_features,)
        `after` less `before`, in standard deviations of a value (pooled; Cohen's d).
    z : ndarray of shape (n_features,)
        The same in standard errors of the difference (Welch's t). Both are 0 where nothing varies
        and nothing moved, and infinite where nothing varies and the value moved.
    """

    before: Floats
    after: Floats
    shift: Floats
    z: Floats


def feature_shift(before: ArrayLike, after: ArrayLike) -> FeatureShift:
    """Return how far each feature moved from one group of rows to another.

    Parameters
    ----------
    before, after : array-like of shape (m, n_features) and (n, n_features)
        At least two rows each. NaN is a missing value.

    Raises
    ------
    InvalidInput
        If the shapes do not fit.

    Examples
    --------
    >>> found = feature_shift([[0.0, 1.0], [2.0, 1.0]], [[2.0, 1.0], [4.0, 1.0]])
    >>> found.after - found.before, found.shift.round(3)
    (array([2., 0.]), array([1.414, 0.   ]))
    """
    one, two = (np.asarray(rows, dtype=np.float64) for rows in (before, after))
    is_table = one.ndim == two.ndim == 2
    if not is_table or one.shape[1] != two.shape[1] or min(len(one), len(two)) < 2:
        raise InvalidInput(
            f"rows: expected two groups of at least two rows with the same features, got shapes "
            f"{one.shape} and {two.shape}"
        )
    (n_one, mean_one, var_one), (n_two, mean_two, var_two) = _moments(one), _moments(two)
    moved = mean_two - mean_one
    pooled = ((n_one - 1) * var_one + (n_two - 1) * var_two) / np.maximum(n_one + n_two - 2, 1)
    error = var_one / np.maximum(n_one, 1) + var_two / np.maximum(n_two, 1)
    return FeatureShift(mean_one, mean_two, _in_units(moved, pooled), _in_units(moved, error))


def _moments(rows: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the count of each column, its mean, and its variance with n - 1."""
    is_there = ~np.isnan(rows)
    count = is_there.sum(axis=0).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(is_there, rows, 0.0).sum(axis=0) / count
        apart = rows - mean
        squares = np.where(is_there, apart * apart, 0.0).sum(axis=0)
    return count, mean, squares / np.maximum(count - 1, 1)


def _in_units(moved: Floats, variance: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(moved == 0.0, 0.0, moved / np.sqrt(variance))
