"""Read the scores of a classifier that a user gives: any object with scikit-learn's methods."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from online_svm.errors import InvalidInput
from online_svm.types import Floats

ScoreKind = Literal["probability", "margin"]

METHODS: dict[ScoreKind, str] = {"probability": "predict_proba", "margin": "decision_function"}

MAX_FOLDS = 5
"""Folds of the cross-fitted scores, as in `CalibratedClassifierCV`."""


def fitted_classes(estimator: Any) -> list[Any]:
    """Return the classes of a fitted classifier in its own order, or raise InvalidInput."""
    if isinstance(estimator, type):
        raise InvalidInput(f"estimator: {estimator.__name__} is a class; give a fitted instance")
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        name = name_of(estimator)
        raise InvalidInput(f"estimator: {name} has no classes_; give a classifier after its fit")
    if any(np.ndim(part) for part in classes):
        name = name_of(estimator)
        raise InvalidInput(f"estimator: {name} has several outputs; give a classifier for each")
    found: list[Any] = np.asarray(classes).tolist()
    return found


def check_fitted(estimator: Any, classes: Sequence[Any], kind: ScoreKind) -> None:
    """Raise InvalidInput unless a fitted classifier gives scores of these classes.

    It may lack a class if its scores are probabilities.
    """
    known = fitted_classes(estimator)
    check_method(estimator, kind)
    if unknown := [label for label in known if label not in classes]:
        raise InvalidInput(
            f"estimator: its class {unknown[0]!r} is none of {list(classes)}, the classes so far"
        )
    if kind == "margin" and len(known) < len(classes):
        absent = next(label for label in classes if label not in known)
        raise InvalidInput(
            f"estimator: {name_of(estimator)} gives no margin of class {absent!r}, which it did "
            "not learn; fit it with rows of all classes"
        )


def check_method(estimator: Any, kind: ScoreKind) -> None:
    """Raise InvalidInput unless a classifier has the method that gives this kind of score."""
    if hasattr(estimator, METHODS[kind]):
        return
    for other, method in METHODS.items():
        if hasattr(estimator, method):
            raise InvalidInput(
                f"estimator: {name_of(estimator)} has no {METHODS[kind]}; scores={other!r} takes "
                f"its {method}"
            )
    raise InvalidInput(
        f"estimator: {name_of(estimator)} has neither predict_proba nor decision_function; give a "
        "classifier that has one of them"
    )


def fitted_and_scored(
    estimator: Any, X: Any, labels: NDArray[Any], classes: Sequence[Any], kind: ScoreKind
) -> tuple[Any, Floats]:
    """Return a clone fitted on all rows, and scores of the rows by clones that did not learn them.

    The scores are cross-fitted, as by `CalibratedClassifierCV` with `ensemble=False`; their shape
    is that of `scores`. A `FrozenEstimator` stays as it is, and scores the rows itself.

    Raises InvalidInput if the classifier cannot use the rows, or a class has one row only.
    """
    if isinstance(estimator, FrozenEstimator):
        check_fitted(estimator, classes, kind)
        return estimator, scores(estimator, X, classes, kind)
    check_method(estimator, kind)
    with _errors_of(estimator):
        fitted = clone(estimator).fit(X, labels)
    check_fitted(fitted, classes, kind)
    known, counts = np.unique(labels, return_counts=True)
    if counts.min() < 2:
        raise InvalidInput(
            f"y: class {known[counts.argmin()].item()!r} has one row, and cross-fitting needs two; "
            "give more, or a fitted estimator: OnlineCalibrator.from_prefit(estimator)"
        )
    folds = StratifiedKFold(min(MAX_FOLDS, int(counts.min())))
    with _errors_of(estimator):
        found = cross_val_predict(clone(estimator), X, labels, cv=folds, method=METHODS[kind])
    return fitted, _by_class(fitted, found, known.tolist(), classes, kind)


def scores(estimator: Any, X: Any, classes: Sequence[Any], kind: ScoreKind) -> Floats:
    """Return the scores of X, which is passed on unchanged, by a fitted classifier.

    The shape is (n, K) in the order of `classes`, or (n, 1) for the margins of two classes. A class
    that the classifier does not know has the probability 0.

    Raises InvalidInput if it cannot use X, or its values are not one a class.
    """
    with _errors_of(estimator):
        found = getattr(estimator, METHODS[kind])(X)
    return _by_class(estimator, found, fitted_classes(estimator), classes, kind)


def name_of(estimator: Any) -> str:
    """Return the name of the class of a classifier, frozen or not."""
    return type(thawed(estimator)).__name__


def thawed(estimator: Any) -> Any:
    """Return the estimator in a `FrozenEstimator`, or any other one itself."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def _by_class(
    estimator: Any, found: Any, known: Sequence[Any], classes: Sequence[Any], kind: ScoreKind
) -> Floats:
    """Return what the method gave, one column for each of `known`, in the order of `classes`."""
    values, n_known = np.asarray(found, dtype=np.float64), len(known)
    if kind == "margin" and n_known == 2 and values.ndim == 1:
        return values[:, None] if known == list(classes) else -values[:, None]
    is_paired = kind == "margin" and n_known > 2 and _compares_pairs(estimator)
    if is_paired or values.ndim != 2 or values.shape[1] != n_known:
        remedy = 'give it decision_function_shape="ovr"' if is_paired else "give another classifier"
        raise InvalidInput(
            f"estimator: {METHODS[kind]} of {name_of(estimator)} does not give one number for each "
            f"of the {n_known} classes; {remedy}"
        )
    ordered = np.zeros((len(values), len(classes)))
    ordered[:, [classes.index(label) for label in known]] = values
    return ordered


def _compares_pairs(estimator: Any) -> bool:
    """Return whether a support vector classifier in it gives a margin for each pair of classes."""
    estimator = thawed(estimator)
    parameters = estimator.get_params() if hasattr(estimator, "get_params") else {}
    return any(
        value == "ovo" and name.rpartition("__")[2] == "decision_function_shape"
        if isinstance(value, str)
        else isinstance(value, FrozenEstimator) and _compares_pairs(value)
        for name, value in parameters.items()
    )


@contextmanager
def _errors_of(estimator: Any) -> Iterator[None]:
    """Raise what a classifier says about its input as InvalidInput; a TypeError remains one."""
    try:
        yield
    except (AttributeError, LookupError, ValueError) as error:
        raise InvalidInput(f"{name_of(estimator)}: {error}") from error
