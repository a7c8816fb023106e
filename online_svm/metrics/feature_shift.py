"""The shift of the mean of each feature between two groups of rows: a description, not a test."""

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
    old, new = (np.asarray(rows, dtype=np.float64) for rows in (before, after))
    is_table = old.ndim == new.ndim == 2
    if not is_table or old.shape[1] != new.shape[1] or min(len(old), len(new)) < 2:
        raise InvalidInput(
            f"rows: expected two groups of at least two rows with the same features, got shapes "
            f"{old.shape} and {new.shape}"
        )
    (n_old, mean_old, var_old), (n_new, mean_new, var_new) = _moments(old), _moments(new)
    change = mean_new - mean_old
    pooled = ((n_old - 1) * var_old + (n_new - 1) * var_new) / np.maximum(n_old + n_new - 2, 1)
    error = var_old / np.maximum(n_old, 1) + var_new / np.maximum(n_new, 1)
    return FeatureShift(mean_old, mean_new, _in_units(change, pooled), _in_units(change, error))


def _moments(rows: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the count, mean and sample variance of the values present in each column."""
    is_there = ~np.isnan(rows)
    count = is_there.sum(axis=0).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(is_there, rows, 0.0).sum(axis=0) / count
        deviation = rows - mean
        squares = np.where(is_there, deviation * deviation, 0.0).sum(axis=0)
    return count, mean, squares / np.maximum(count - 1, 1)


def _in_units(change: Floats, variance: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(change == 0.0, 0.0, change / np.sqrt(variance))
