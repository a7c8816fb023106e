"""Scores to fit a sigmoid on: held out, cross-validated, or those of training (Platt 1999, 2.2).

This is for finished data sets; the predictor takes its scores from the calibration set.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split

from online_svm.errors import InvalidInput
from online_svm.types import Bools, Floats


class TrainedScorer(Protocol):
    """A two-class estimator by scikit-learn's conventions."""

    def fit(self, X: Any, y: Any) -> Any:
        """Train."""
        ...

    def decision_function(self, X: Any) -> Any:
        """Return one score a row, positive for the second class."""
        ...

    def predict(self, X: Any) -> Any:
        """Return one class a row (scikit-learn's cross-validation asks that it exists)."""
        ...


@dataclass(frozen=True, slots=True)
class LabelledScores:
    """What a `ScoreMap` is fitted on.

    Attributes
    ----------
    scores : ndarray of shape (n_samples,)
    labels : ndarray of bool of shape (n_samples,)
        True for the class that sorts last, as positive scores mean.
    """

    scores: Floats
    labels: Bools


def holdout_scores(
    estimator: TrainedScorer, X: Any, y: ArrayLike, *, fraction: float = 0.3, seed: int = 0
) -> LabelledScores:
    """Train on a part and score the rest.

    Parameters
    ----------
    estimator : TrainedScorer
        Is cloned; the copy is trained.
    X : array or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Two classes.
    fraction : float, default=0.3
        Share of each class that is held out; 0.3 is Platt's.
    seed : int, default=0
        Of the random split.

    Returns
    -------
    LabelledScores
        Of the held-out examples.

    Raises
    ------
    InvalidInput
        If `y` has not two classes, or `fraction` leaves one side empty.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> X = np.arange(20.0)[:, np.newaxis]
    >>> holdout_scores(SVC(), X, np.arange(20) > 9).scores.shape
    (6,)
    """
    positive = _positive(y)
    if not 0.0 < fraction < 1.0:
        raise InvalidInput(f"fraction: must lie between 0 and 1, not {fraction}")
    try:
        X_fit, X_held, y_fit, y_held = train_test_split(
            X, positive, test_size=fraction, random_state=seed, stratify=positive
        )
    except ValueError as error:  # a side with fewer examples than classes
        raise InvalidInput(f"fraction: {fraction} cannot split this sample: {error}") from error
    fitted = clone(estimator).fit(X_fit, y_fit)
    return LabelledScores(_scores(fitted.decision_function(X_held)), y_held)


def cross_validated_scores(
    estimator: TrainedScorer, X: Any, y: ArrayLike, *, n_splits: int = 3, seed: int = 0
) -> LabelledScores:
    """Score each part by an estimator trained on the others: as many scores as examples.

    Parameters
    ----------
    estimator : TrainedScorer
        Is cloned; the copies are trained.
    X : array or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Two classes.
    n_splits : int, default=3
        Parts, with each class spread evenly; 3 is Platt's.
    seed : int, default=0
        Of the random parts.

    Returns
    -------
    LabelledScores
        In the order of the rows.

    Raises
    ------
    InvalidInput
        If `y` has not two classes, or one has fewer examples than there are parts.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> X = np.arange(20.0)[:, np.newaxis]
    >>> cross_validated_scores(SVC(), X, np.arange(20) > 9).labels.sum()
    np.int64(10)
    """
    positive = _positive(y)
    rarest = min(np.count_nonzero(positive), np.count_nonzero(~positive))
    if not 2 <= n_splits <= rarest:
        raise InvalidInput(
            f"n_splits: must lie in 2..{rarest}, the size of the rarer class, not {n_splits}"
        )
    folds = StratifiedKFold(n_splits, shuffle=True, random_state=seed)
    scores = cross_val_predict(estimator, X, positive, cv=folds, method="decision_function")
    return LabelledScores(_scores(scores), positive)


def training_scores(estimator: TrainedScorer, X: Any, y: ArrayLike) -> LabelledScores:
    """Score the examples the estimator was trained on. Only for comparison: biased, often badly.

    Parameters
    ----------
    estimator : TrainedScorer
        Is cloned; the copy is trained.
    X : array or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Two classes.

    Returns
    -------
    LabelledScores
        In the order of the rows.

    Raises
    ------
    InvalidInput
        If `y` has not two classes.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> training_scores(SVC(), np.arange(4.0)[:, np.newaxis], ["a", "a", "b", "b"]).labels
    array([False, False,  True,  True])
    """
    positive = _positive(y)
    fitted = clone(estimator).fit(X, positive)
    return LabelledScores(_scores(fitted.decision_function(X)), positive)


def _positive(y: ArrayLike) -> Bools:
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    if len(classes) != 2:
        raise InvalidInput(f"y: a sigmoid needs two classes, got {len(classes)}")
    return np.asarray(codes == 1, dtype=np.bool_)


def _scores(values: Any) -> Floats:
    return np.asarray(values, dtype=np.float64)
