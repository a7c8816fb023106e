"""Provide the calibration of another model's scores as a scikit-learn estimator."""

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from online_svm.errors import InvalidInput
from online_svm.predictor.labelled_predictor import LabelledPredictor, config_of
from online_svm.stream.labels import LabelTexts
from online_svm.stream.prediction import PredictionBlock
from online_svm.svm.validation import check_same_classes, checked_labels, declared_classes
from online_svm.types import Floats


class OnlineCalibrator(ClassifierMixin, BaseEstimator):
    """Probabilities and intervals from another model's scores, calibrated as labels come.

    It runs the model of a feed with `scores` and `score_use="alone"` in this process: with the same
    scores and labels in the same order, it gives the same answers, bit for bit. `partial_fit`
    learns pairs in order; the newest `window` pairs count. `predict_proba` does not learn.

    Parameters
    ----------
    estimator : classifier, optional
        Its scores are calibrated, and X is its input. `fit` fits a clone of it; `from_prefit` keeps
        a fitted one. Without it X itself holds the scores: shape (n,), one number for the second of
        two classes; or shape (n, K), one for each of the sorted classes. NaN is a missing score.
    scores : {"probability", "margin"}
        The kind of the scores: of an estimator, `predict_proba` or `decision_function`.
    window : int or None
        Number of pairs kept; None keeps all.
    interval_level : float or None
        Nominal coverage of the intervals.
    seed : int
        Seed of the split into training and calibration set.
    settings : dict, optional
        Further settings of `PredictorConfig` by name.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Sorted.
    estimator_ : classifier or None
        The model whose scores are calibrated.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.uniform(size=3000)
    >>> y = rng.uniform(size=3000) < truth
    >>> scores = truth**3  # far too low
    >>> model = OnlineCalibrator().partial_fit(scores[:2000], y[:2000])
    >>> bool(abs(model.predict_proba(scores)[2000:, 1] - truth[2000:]).mean() < 0.05)
    True
    >>> lower, upper = model.predict_interval([0.125])[0, 1]
    >>> bool(lower < 0.5 < upper)
    True
    """

    classes_: NDArray[Any]
    _model: LabelledPredictor

    def __init__(
        self,
        estimator: Any = None,
        scores: Literal["probability", "margin"] = "probability",
        window: int | None = 2000,
        interval_level: float | None = 0.9,
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.estimator = estimator
        self.scores = scores
        self.window = window
        self.interval_level = interval_level
        self.seed = seed
        self.settings = settings

    @classmethod
    def from_prefit(cls, estimator: Any, **parameters: Any) -> Self:
        """Return a calibrator of a fitted classifier, which is kept as it is.

        It has the classes of the estimator, and answers before it has learned a label: mostly what
        the score states.

        Raises InvalidConfig if a parameter is invalid.

        Examples
        --------
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = np.random.default_rng(0).normal(size=(500, 2)), np.arange(500) % 2
        >>> model = OnlineCalibrator.from_prefit(GaussianNB().fit(X, y))
        >>> model.predict_proba(X[:1]).shape, model.partial_fit(X, y).predict(X[:1]).shape
        ((1, 2), (1,))
        """
        model = cls(FrozenEstimator(estimator), **parameters)
        model.estimator_ = model.estimator
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(estimator, name):
                setattr(model, name, getattr(estimator, name))
        model._begin(np.asarray(estimator.classes_))
        return model

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Discard what was learned, fit a clone of the estimator, if any, then learn these rows.

        The scores of rows that the estimator was fitted on are better than later ones: give a
        frozen estimator, and other rows.

        Raises InvalidInput if X or y cannot be used, or y holds one class only.
        """
        self._learn(X, y, None, None, is_first=True)
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        version: str | int | None = None,
    ) -> Self:
        """Learn more rows in the given order.

        Parameters
        ----------
        X : array-like
            Scores, or the input of the estimator; see the class.
        y : array-like of shape (n,)
        classes : array-like of shape (K,), optional
            All labels that will ever occur. Required in the first call unless y contains them all.
        version : str or int, optional
            The version of the model that gave the scores: those of each are calibrated by
            themselves.

        Raises
        ------
        InvalidInput
            If X or y cannot be used, or the classes differ from the first call.
        InvalidExample
            If a label is not one of the classes, or a score cannot be used.
        """
        self._learn(X, y, classes, version, is_first=not hasattr(self, "_model"))
        return self

    def update_one(self, score: Any, y: Any, version: str | int | None = None) -> Self:
        """Learn one more pair: `score` is a number, or one a class, or a row for the estimator."""
        return self.partial_fit(np.asarray([score]), [y], None, version)

    def progressive_proba(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        version: str | int | None = None,
    ) -> Floats:
        """Return the probabilities of each row before it is learned, shape (n, K); learn all.

        Raises InvalidInput or InvalidExample as `partial_fit`.
        """
        blocks = self._learn(X, y, classes, version, is_first=not hasattr(self, "_model"))
        found = np.concatenate([self._model.probabilities(b) for b in blocks])
        ordered: Floats = found[:, self._order]
        return ordered

    def predict_proba(self, X: ArrayLike, version: str | int | None = None) -> Floats:
        """Return the probability of each class, shape (n, K). Raises InvalidInput."""
        block = self._answers(X, version)
        return self._model.probabilities(block)[:, self._order]

    def predict_interval(self, X: ArrayLike, version: str | int | None = None) -> Floats:
        """Return the lower and upper probability of each class, shape (n, K, 2).

        Raises InvalidInput if X cannot be used.
        """
        block = self._answers(X, version)
        return self._model.intervals(block)[:, self._order]

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class of each row, shape (n,). Raises InvalidInput."""
        best = self.predict_proba(X).argmax(axis=1)
        chosen: NDArray[Any] = self.classes_[best]
        return chosen

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags = get_tags(self.estimator).input_tags
        tags.input_tags.sparse = False
        return tags

    def _learn(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None,
        version: str | int | None,
        *,
        is_first: bool,
    ) -> list[PredictionBlock]:
        """Learn rows and return their answers."""
        if is_first and self.estimator is not None:
            self.estimator_ = clone(self.estimator).fit(X, y)
        X = self._checked(X, reset=is_first)
        labels = checked_labels(X, y)
        if is_first:
            self._begin(declared_classes(labels, classes, may_declare=True))
        check_same_classes(self.classes_, classes)
        found = self._model.learn(self._rows(X, version), labels.tolist(), self._model.schema)
        return [block for block in found if isinstance(block, PredictionBlock)]

    def _begin(self, classes: NDArray[Any]) -> None:
        """Start with these sorted classes, and without labels."""
        self.classes_ = classes
        texts = LabelTexts(classes)
        parameters = self.get_params(deep=False)
        del parameters["estimator"]
        config = config_of(parameters, texts, [texts.text(k) for k in classes])
        self._model = LabelledPredictor(config, classes)

    def _answers(self, X: ArrayLike, version: str | int | None) -> PredictionBlock:
        check_is_fitted(self, "classes_")
        return self._model.ask(self._rows(self._checked(X, reset=False), version))

    def _checked(self, X: ArrayLike, *, reset: bool) -> Any:
        """Return X checked as scikit-learn does; scores as a matrix of floats."""
        try:
            if self.estimator is not None:
                return validate_data(self, X, reset=reset, dtype=None)
            scores = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput(str(error)) from error
        return scores[:, None] if scores.ndim == 1 else scores

    def _rows(self, X: Any, version: str | int | None) -> Floats:
        """Return the rows of the scores of X, as the model takes them."""
        if self.estimator is not None:
            is_proba = self.scores == "probability"
            score = self.estimator_.predict_proba if is_proba else self.estimator_.decision_function
            X = np.asarray(score(X), dtype=np.float64)
            X = X[:, None] if X.ndim == 1 else X
        columns = self._model.schema.scores
        assert columns is not None
        if X.shape[1] == len(self.classes_):
            X = X[:, np.argsort(self._order)]
        rows = columns.rows(X, [version] * len(X))
        if X.shape[1] == 1 and self._order == [1, 0]:  # the model's second class is the first here
            rows[:, 0] *= -1.0
        return rows

    @property
    def _order(self) -> list[int]:
        """The model's column of each class in `classes_`."""
        return self._model.columns_of(self.classes_.tolist())
