"""Descriptive shift of the mean of each feature between two groups of rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from online_svm.errors import InvalidInput
from online_svm.types import Floats


@dataclass(frozen=True, slots=True)
class FeatureShift:
    """Feature means of two groups of rows, and their difference; all shapes (n_features,).

    Without variance, `shift` and `z` are 0 if the mean is unchanged and infinite otherwise.
    """

    before: Floats  # mean of the values present; NaN if there are none
    after: Floats  # like `before`
    shift: Floats  # `after` - `before` in pooled standard deviations (Cohen's d)
    z: Floats  # `after` - `before` in standard errors of the difference (Welch's t)


def feature_shift(before: ArrayLike, after: ArrayLike) -> FeatureShift:
    """Return the shift of each feature between two groups of at least two rows; NaN is missing.

    Raises InvalidInput if the shapes do not fit.
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
    """Return the count, mean and sample variance of the values present in each column."""
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
