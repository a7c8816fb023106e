"""Checks of what the estimators of this package are given."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from online_svm.errors import InvalidInput
from online_svm.types import Floats


def checked_examples(
    estimator: BaseEstimator, X: ArrayLike, y: ArrayLike
) -> tuple[Floats, NDArray[Any]]:
    """Return X as a float64 matrix and y as labels, and note the number of features.

    Raises
    ------
    InvalidInput
        If X is not a finite matrix, or y not one class label for each of its rows.
    """
    try:
        rows, labels = validate_data(estimator, X, y, dtype=np.float64)
        check_classification_targets(labels)
    except ValueError as error:
        raise InvalidInput(str(error)) from error
    return rows, labels


def checked_more(
    estimator: BaseEstimator, X: ArrayLike, y: ArrayLike
) -> tuple[Floats, NDArray[Any]]:
    """Return X and y as `checked_examples` does, X of as many features as were noted.

    Raises
    ------
    InvalidInput
        If X is not such a finite matrix, or y not one class label for each of its rows.
    """
    try:
        rows, labels = validate_data(estimator, X, y, dtype=np.float64, reset=False)
        check_classification_targets(labels)
    except ValueError as error:
        raise InvalidInput(str(error)) from error
    return rows, labels


def checked_rows(estimator: BaseEstimator, X: ArrayLike) -> Floats:
    """Return X as a float64 matrix of as many features as the estimator was fitted on.

    Raises
    ------
    InvalidInput
        If it is not such a matrix, or not finite.
    """
    try:
        rows: Floats = validate_data(estimator, X, dtype=np.float64, reset=False)
    except ValueError as error:
        raise InvalidInput(str(error)) from error
    return rows
