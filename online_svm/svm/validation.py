"""Checks of what the estimators of this package are given."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, validate_data

from online_svm.errors import InvalidInput
from online_svm.types import Floats, Ints


def checked_examples(
    estimator: BaseEstimator,
    X: ArrayLike,
    y: ArrayLike,
    reset: bool = True,
    allow_nan: bool = False,
) -> tuple[Floats, NDArray[Any]]:
    """Return X as a float64 matrix and y as labels.

    With `reset` the number of features is noted; without, it must be the one that was noted.
    `allow_nan` lets NaN pass in X.

    Raises
    ------
    InvalidInput
        If X is not such a finite matrix, or y not one class label for each of its rows.
    """
    try:
        finite = "allow-nan" if allow_nan else True
        rows, labels = validate_data(
            estimator, X, y, dtype=np.float64, reset=reset, ensure_all_finite=finite
        )
        check_classification_targets(labels)
    except ValueError as error:
        raise InvalidInput(_told(error)) from error
    return rows, labels


def checked_rows(estimator: BaseEstimator, X: ArrayLike, allow_nan: bool = False) -> Floats:
    """Return X as a float64 matrix of as many features as the estimator was fitted on.

    `allow_nan` lets NaN pass.

    Raises
    ------
    InvalidInput
        If it is not such a matrix, or not finite.
    """
    try:
        finite = "allow-nan" if allow_nan else True
        rows: Floats = validate_data(
            estimator, X, dtype=np.float64, reset=False, ensure_all_finite=finite
        )
    except ValueError as error:
        raise InvalidInput(_told(error)) from error
    return rows


def checked_frame(estimator: BaseEstimator, frame: Any, reset: bool = False) -> Any:
    """Return a data frame as it is, if its columns are those that were noted.

    With `reset` they are noted.

    Raises
    ------
    InvalidInput
        If they are others, or there is no row.
    """
    try:
        validate_data(estimator, frame, reset=reset, skip_check_array=True)
    except ValueError as error:
        raise InvalidInput(str(error)) from error
    if not len(frame):
        raise InvalidInput("X: no rows; give at least one")
    return frame


def checked_labels(frame: Any, y: ArrayLike) -> NDArray[Any]:
    """Return y as labels of the rows of a data frame.

    Raises
    ------
    InvalidInput
        If it is not one class label for each of them.

    Examples
    --------
    >>> import pandas as pd
    >>> checked_labels(pd.DataFrame({"a": [1, 2]}), pd.Series(["no", "yes"])).tolist()
    ['no', 'yes']
    """
    try:
        labels = np.asarray(column_or_1d(y, warn=True))
        check_consistent_length(frame, labels)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
    except ValueError as error:
        raise InvalidInput(str(error)) from error
    return labels


def declared_classes(labels: NDArray[Any], classes: ArrayLike | None = None) -> NDArray[Any]:
    """Return the classes, sorted: those declared, or else those of the labels.

    Raises
    ------
    InvalidInput
        If there are fewer than two.

    Examples
    --------
    >>> declared_classes(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    found = np.unique(labels if classes is None else np.asarray(classes))
    if len(found) < 2:
        only = f"one class only, {found.tolist()[0]!r}" if len(found) else "no class"
        raise InvalidInput(f"y: {only}; declare or show at least two")
    return found


def check_same_classes(known: NDArray[Any], classes: ArrayLike | None) -> None:
    """Refuse a later declaration of other classes; None declares nothing.

    Raises
    ------
    InvalidInput
        If the classes differ.
    """
    if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), known):
        raise InvalidInput(f"classes: they are {known} since the first call")


def class_codes(classes: NDArray[Any], labels: NDArray[Any]) -> Ints:
    """Return the place of each label among the sorted classes.

    Raises
    ------
    InvalidInput
        If a label is not one of them.

    Examples
    --------
    >>> class_codes(np.array(["no", "yes"]), np.array(["yes", "no", "yes"])).tolist()
    [1, 0, 1]
    """
    places = np.searchsorted(classes, labels)
    codes = np.minimum(places, len(classes) - 1).astype(np.int64)
    unknown = labels[classes[codes] != labels]
    if len(unknown):
        raise InvalidInput(f"y: label {unknown.tolist()[0]!r} is not one of {classes}")
    return codes


def warn_of_max_steps(max_steps: int, tol: float) -> None:
    """Warn, at the line that called `fit`, that the solver ended at its limit."""
    warnings.warn(
        f"max_steps={max_steps} reached before tol={tol}; raise either",
        ConvergenceWarning,
        stacklevel=4,
    )


def _told(error: Exception) -> str:
    """Return what scikit-learn says, and what to do where a row has text.

    Examples
    --------
    >>> _told(ValueError("could not convert string to float: 'a'")).split("; ")[1]
    'give rows with text to OnlineClassifier as a data frame'
    """
    said = str(error)
    if "could not convert string" in said:
        said += "; give rows with text to OnlineClassifier as a data frame"
    return said
