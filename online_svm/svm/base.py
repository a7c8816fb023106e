"""Base of the support vector classifiers as scikit-learn estimators."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from online_svm.svm.kernel_model import KernelModel
from online_svm.svm.validation import (
    check_same_classes,
    checked_examples,
    checked_rows,
    class_codes,
    declared_classes,
)
from online_svm.types import Floats, Ints


class MarginClassifier(ClassifierMixin, BaseEstimator):
    """A classifier by the sign of a decision value, or by the largest of several.

    Fitting sets `classes_` and `_model`, which has one decision value for two classes, else one a
    class.
    """

    classes_: NDArray[Any]
    _model: KernelModel

    def decision_function(self, X: ArrayLike) -> Floats:
        """Return the decision values: shape (n,) for two classes, where positive means the second.

        With more classes the shape is (n, K). A row's values do not depend on the other rows.

        Raises
        ------
        InvalidInput
            If X is not a finite matrix of as many features as in `fit`.
        """
        check_is_fitted(self)
        scores = self._model.scores(checked_rows(self, X))
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of the largest decision value (a tie goes to the lower class)."""
        scores = self.decision_function(X)
        best = (scores > 0.0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])


class StreamClassifier(MarginClassifier):
    """A margin classifier of a stream: the first call fixes its classes and its kernel.

    A subclass says what it does with checked examples: `_start`, `_learn_all` (the examples of
    `fit`, together) and `_learn_more`. `_start` sets `_machine`, which holds examples.
    """

    _machine: Any

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Forget everything, and learn all these examples together.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)

        Raises
        ------
        InvalidInput
            If X is not a finite matrix, or y holds fewer than two classes.
        InvalidConfig
            If a parameter is out of its range.
        """
        rows, labels = checked_examples(self, X, y)
        self._start(rows, declared_classes(labels))
        self._learn_all(rows, class_codes(self.classes_, labels))
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Learn more examples; what was learned stays.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like of shape (K,), optional
            All labels that will ever come. Needed in the first call unless its y holds them all.
            As long as one class only was seen, a machine answers +1 if it is its own, else -1.

        Raises
        ------
        InvalidInput
            If X is not a finite matrix of as many features as before, a label is not one of the
            classes, or there are fewer than two classes.
        InvalidConfig
            If a parameter is out of its range.
        """
        is_first = not hasattr(self, "_machine")
        rows, labels = checked_examples(self, X, y, reset=is_first)
        if is_first:
            self._start(rows, declared_classes(labels, classes))
        else:
            check_same_classes(self.classes_, classes)
        self._learn_more(rows, class_codes(self.classes_, labels))
        return self

    @property
    def n_held_(self) -> int:
        """Examples held."""
        return len(self._machine)

    def _start(self, X: Floats, classes: NDArray[Any]) -> None:
        """Begin a stream whose first rows are X."""
        raise NotImplementedError

    def _learn_all(self, X: Floats, codes: Ints) -> None:
        """Learn the examples of `fit`."""
        self._learn_more(X, codes)

    def _learn_more(self, X: Floats, codes: Ints) -> None:
        """Learn further examples."""
        raise NotImplementedError
