"""Base of the support vector classifiers as scikit-learn estimators."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from online_svm.svm.kernel_model import KernelModel
from online_svm.svm.validation import checked_rows
from online_svm.types import Floats


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
