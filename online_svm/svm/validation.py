"""Check the inputs of the estimators; the base class of those that decide by a margin."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from online_svm.errors import InvalidInput, warn
from online_svm.stream.frames import check_table
from online_svm.stream.labels import refuse_missing
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Floats, Ints


def checked_examples(
    estimator: BaseEstimator,
    X: ArrayLike,
    y: ArrayLike,
    reset: bool = True,
    allow_nan: bool = False,
) -> tuple[Floats, NDArray[Any]]:
    """Return X as a float64 matrix and y as labels.

    With `reset` the number of features is recorded; otherwise it must equal the recorded one.
    Raises InvalidInput if X is not a finite matrix, or y does not have a class label for each row.
    """
    rows, labels = _validated(estimator, X, y, reset=reset, allow_nan=allow_nan)
    return rows, labels


def checked_rows(estimator: BaseEstimator, X: ArrayLike, allow_nan: bool = False) -> Floats:
    """Return X as a float64 matrix with the number of features in `fit`, or raise InvalidInput."""
    rows: Floats = _validated(estimator, X, reset=False, allow_nan=allow_nan)
    return rows


def checked_frame(estimator: BaseEstimator, frame: Any, reset: bool = False) -> Any:
    """Return a data frame unchanged after comparing its columns with the recorded ones.

    With `reset` they are recorded. Raises InvalidInput if the columns differ, or there is no row.
    """
    check_table(frame)
    try:
        validate_data(estimator, frame, reset=reset, skip_check_array=True)
    except ValueError as error:
        raise InvalidInput(str(error)) from error
    if not len(frame):
        raise InvalidInput("X: no rows; give at least one")
    return frame


def checked_labels(frame: Any, y: ArrayLike) -> NDArray[Any]:
    """Return y as labels of the rows of a data frame, or raise InvalidInput."""
    refuse_missing_labels(y)
    try:
        labels = np.asarray(column_or_1d(y, warn=True))
        check_consistent_length(frame, labels)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
    except (TypeError, ValueError) as error:
        raise InvalidInput(str(error)) from error
    return labels


def declared_classes(
    labels: ArrayLike, classes: ArrayLike | None = None, may_declare: bool = False
) -> NDArray[Any]:
    """Return the sorted classes: the declared ones, or else the labels.

    `may_declare`: whether the estimator's `partial_fit` takes `classes`. Raises InvalidInput if
    there are fewer than two classes.
    """
    refuse_missing_labels(classes)
    found = np.unique(np.asarray(labels if classes is None else classes))
    if len(found) < 2:
        only = f"one class only, {found.tolist()[0]!r}" if len(found) else "no class"
        declare = ", or name all that will come: partial_fit(X, y, classes=[...])"
        raise InvalidInput(f"y: {only}; give rows of two or more{declare * may_declare}")
    return found


def check_same_classes(known: NDArray[Any], classes: ArrayLike | None) -> None:
    """Raise InvalidInput if a later declaration differs from the known classes."""
    if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), known):
        raise InvalidInput(f"classes: they are {known} since the first call")


def class_codes(classes: NDArray[Any], labels: NDArray[Any]) -> Ints:
    """Return the index of each label among the sorted classes, or raise InvalidInput."""
    places = np.searchsorted(classes, labels)
    codes = np.minimum(places, len(classes) - 1).astype(np.int64)
    unknown = labels[classes[codes] != labels]
    if len(unknown):
        raise InvalidInput(f"y: label {unknown.tolist()[0]!r} is not one of {classes}")
    return codes


def warn_of_max_steps(max_steps: int, tol: float) -> None:
    """Warn that the solver stopped at its limit."""
    warn(f"max_steps={max_steps} reached before tol={tol}; raise either", ConvergenceWarning)


def _validated(
    estimator: BaseEstimator, X: Any, *y: ArrayLike, reset: bool, allow_nan: bool
) -> Any:
    """Return the result of scikit-learn's `validate_data`, or raise InvalidInput."""
    check_table(X)
    finite = "allow-nan" if allow_nan else True
    for labels in y:
        refuse_missing_labels(labels)
    try:
        found = validate_data(
            estimator, X, *y, dtype=np.float64, order="C", reset=reset, ensure_all_finite=finite
        )
        if y:
            check_classification_targets(found[1])
    except ValueError as error:
        raise InvalidInput(_advised(error)) from error
    return found


def refuse_missing_labels(y: Any) -> None:
    """Raise InvalidInput if a label is missing; scikit-learn reads some of these as texts."""
    if np.ma.is_masked(y):
        refuse_missing([np.ma.masked])
    if y is not None:
        values = np.asarray(y, dtype=None if hasattr(y, "dtype") else object)
        if values.dtype.kind not in "biuSU":  # others have a value for a missing label
            refuse_missing(values.ravel().tolist() if values.dtype.kind == "O" else values.ravel())


def _advised(error: Exception) -> str:
    """Return scikit-learn's message, with advice for rows with texts or gaps."""
    text = str(error)
    if text.startswith("Input X contains NaN"):
        return (
            'X contains NaN; OnlineClassifier takes it with missing="mean", or as a gap in a data '
            "frame"
        )
    if "could not convert string" in text:
        text += "; give rows with text to OnlineClassifier as a data frame"
    return text


class MarginClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that decides by the sign of a decision value, or by the largest of several.

    `fit` sets `classes_` and `_model`, which has one decision value for two classes, else one for
    each class.
    """

    classes_: NDArray[Any]
    _model: KernelModel

    def decision_function(self, X: ArrayLike) -> Floats:
        """Return the decision values: shape (n,) for two classes, where positive means the second.

        With more classes the shape is (n, K). The values of a row do not depend on the other rows.

        Raises InvalidInput if X is not a finite matrix with the number of features in `fit`.
        """
        check_is_fitted(self)
        scores = self._model.scores(checked_rows(self, X))
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of the largest decision value; ties go to the first class."""
        scores = self.decision_function(X)
        best = (scores > 0.0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])
