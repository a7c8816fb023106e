"""Scores to fit a sigmoid on: held-out, cross-validated or training scores (Platt 1999, 2.2).

These functions serve complete data sets. The online predictor uses its calibration set instead.
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
    """A two-class estimator that follows scikit-learn's conventions."""

    def fit(self, X: Any, y: Any) -> Any:
        """Train the estimator."""
        ...

    def decision_function(self, X: Any) -> Any:
        """Return one score a row, positive for the second class."""
        ...

    def predict(self, X: Any) -> Any:
        """Return one class a row; scikit-learn's cross-validation requires this method."""
        ...


@dataclass(frozen=True, slots=True)
class LabelledScores:
    """Scores and labels that a `ScoreMap` can be fitted on."""

    scores: Floats  # shape (n_samples,)
    labels: Bools  # shape (n_samples,); True for the class that sorts last


def holdout_scores(
    estimator: TrainedScorer, X: Any, y: ArrayLike, *, fraction: float = 0.3, seed: int = 0
) -> LabelledScores:
    """Train a clone of the estimator on one part of the data, and score the rest.

    `y` has two classes. `fraction` is the held-out share of each class; 0.3 is Platt's choice.
    Raises InvalidInput if `y` does not have two classes, or `fraction` leaves one side empty.
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
    """Score each of `n_splits` stratified parts with a clone trained on the other parts.

    The scores are in the order of the rows; 3 parts are Platt's choice. Raises InvalidInput if `y`
    does not have two classes, or one class has fewer examples than there are parts.
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
    """Score the examples that a clone was trained on; biased, for comparison only."""
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
