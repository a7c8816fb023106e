"""Provide the calibration of another model's scores as a scikit-learn estimator."""

from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from online_svm.errors import InvalidInput
from online_svm.predictor.labelled_estimator import LabelledEstimator
from online_svm.predictor.labelled_predictor import FeedParameters, LabelledPredictor, config_of
from online_svm.stream import frames
from online_svm.stream.labels import LabelTexts
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.scores import ScoreColumns
from online_svm.stream.split import shuffled
from online_svm.svm import wrapped_classifier
from online_svm.svm.validation import check_same_classes, checked_labels, declared_classes
from online_svm.svm.wrapped_classifier import ScoreKind
from online_svm.types import Bools, Floats


@dataclass(eq=False, repr=False)
class OnlineCalibrator(FeedParameters, LabelledEstimator):
    """Probabilities and intervals from another model's scores, calibrated as labels come.

    It runs the model of a feed with `scores` and `score_use="alone"` in this process: with the same
    scores and labels in the same order, it gives the same answers, bit for bit. `partial_fit`
    learns pairs in order; `fit` shuffles them first, because recent pairs count most. The newest
    `window` pairs are kept. `predict_proba` does not learn.

    Parameters
    ----------
    estimator : classifier, optional
        Its scores are calibrated, and X is its input: anything that it takes, passed on unchanged.
        `fit` fits a clone of it, and calibrates scores of clones that did not learn the row. A
        `FrozenEstimator` is fitted already and stays as it is; `from_prefit` makes one. Without an
        estimator X itself holds the scores: shape (n,), one number for the second of two classes;
        or shape (n, K), one for each of the sorted classes. Columns of a frame are found by the
        names of the classes. NaN is a missing score.
    scores : {"probability", "margin"}
        The kind of the scores: of an estimator, `predict_proba` or `decision_function`.
    window, interval_level, seed, settings
        As in `OnlineClassifier`, by name; the window holds pairs.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Sorted.
    estimator_ : classifier
        The fitted model whose scores are calibrated, if there is one.
    version_ : str, int or None
        Its version: that of scores whose version is not given.
    n_features_in_ : int
        As the fitted model has it.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        As the fitted model has it.

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

    _saved_as = "OnlineCalibrator"

    estimator: Any = None
    scores: ScoreKind = "probability"

    version_: str | int | None = field(default=None, init=False)
    _saved_with: str | None = field(default=None, init=False)  # class of a saved estimator

    @classmethod
    def from_prefit(
        cls, estimator: Any, version: str | int | None = None, **parameters: Any
    ) -> Self:
        """Return a calibrator of a fitted classifier, which is kept as it is.

        It has the classes of the estimator, and answers before it has learned a label: mostly what
        the score states.

        Raises InvalidInput if the estimator is not fitted or gives no such scores; InvalidConfig if
        a parameter is invalid.

        Examples
        --------
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = np.random.default_rng(0).normal(size=(500, 2)), np.arange(500) % 2
        >>> model = OnlineCalibrator.from_prefit(GaussianNB().fit(X, y))
        >>> model.predict_proba(X[:1]).shape, model.partial_fit(X, y).predict(X[:1]).shape
        ((1, 2), (1,))
        """
        model = cls(**parameters)
        model.classes_ = declared_classes(wrapped_classifier.fitted_classes(estimator))
        model._model = model._new_model(model.classes_)
        return model.replace(estimator, version)

    def replace(self, estimator: Any, version: str | int | None) -> Self:
        """Go on with the scores of another fitted classifier, as one that was trained last night.

        The scores of each version are calibrated by themselves: the new one begins with what its
        scores state, and soon has a calibration of its own. Earlier versions are not forgotten.

        Parameters
        ----------
        estimator : classifier
            Fitted; its classes are among `classes_`. It is kept as it is.
        version : str or int or None
            Of the scores from now on, unless a call gives another. None is the one without a name.

        Raises
        ------
        InvalidInput
            If the estimator is not fitted, has another class, or gives no such scores.
        InvalidExample
            If the version is no integer, and no text of at most 64 characters.

        Examples
        --------
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = np.random.default_rng(0).normal(size=(500, 2)), np.arange(500) % 2
        >>> model = OnlineCalibrator.from_prefit(GaussianNB().fit(X[:200], y[:200]), "monday")
        >>> model = model.partial_fit(X[200:], y[200:])
        >>> model.replace(GaussianNB().fit(X[200:], y[200:]), "tuesday").version_
        'tuesday'
        """
        check_is_fitted(self, "classes_")
        wrapped_classifier.check_fitted(estimator, self.classes_.tolist(), self.scores)
        _columns(self._model).version(version)
        is_frozen = isinstance(estimator, FrozenEstimator)
        self.estimator = estimator if is_frozen else FrozenEstimator(estimator)
        self._keep(self.estimator)
        self.version_ = version
        return self

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Discard what was learned, fit a clone of the estimator, if any, then learn these rows.

        The rows are learned in an order drawn by `seed`. The scores of an estimator are
        cross-fitted in five folds: each row has the score of a clone that did not learn it. The
        clone that has learned all rows answers. Both do not apply to a `FrozenEstimator`: give it
        rows that it did not learn.

        Raises InvalidInput if X or y cannot be used, or y holds one class only.
        """
        self._learn(X, y, None, None, from_scratch=True)
        return self

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        version: str | int | None = None,
    ) -> Self:
        """Learn more rows in the given order; the first call fits the estimator as `fit` does.

        Parameters
        ----------
        X : array-like
            Scores, or the input of the estimator; see the class.
        y : array-like of shape (n,)
        classes : array-like of shape (K,), optional
            All labels that will ever occur. Required in the first call unless y contains them all.
        version : str or int, optional
            The version of the model that gave the scores, if it is not `version_`: those of each
            are calibrated by themselves.

        Raises
        ------
        InvalidInput
            If X or y cannot be used, or the classes differ from the first call.
        InvalidExample
            If a label is not one of the classes, or a score cannot be used.
        """
        self._learn(X, y, classes, version)
        return self

    def update_one(self, score: Any, y: Any, version: str | int | None = None) -> Self:
        """Learn one more pair.

        `score` is a number, or one a class, or a row for the estimator: one element of its X, or an
        X of one row.
        """
        shape: tuple[int, ...] = getattr(score, "shape", ())
        is_table = len(shape) > 1 and shape[0] == 1
        return self.partial_fit(score if is_table else [score], [y], None, version)

    def progressive_proba(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        version: str | int | None = None,
    ) -> Floats:
        """Return the probabilities of each row before it is learned, shape (n, K); learn all.

        Raises InvalidInput or InvalidExample as `partial_fit`.
        """
        return self._probabilities(*self._learn(X, y, classes, version))

    def predict_proba(self, X: Any, version: str | int | None = None) -> Floats:
        """Return the probability of each class, shape (n, K). Raises InvalidInput."""
        return self._probabilities(self._answers(X, version))

    def predict_interval(self, X: Any, version: str | int | None = None) -> Floats:
        """Return the lower and upper probability of each class, shape (n, K, 2).

        Raises InvalidInput if X cannot be used.
        """
        return self._intervals(self._answers(X, version))

    def predict_set(self, X: Any, version: str | int | None = None) -> Bools:
        """Return whether each class is in the set of a row, as `OnlineClassifier.predict_set`.

        Raises InvalidInput if X cannot be used, or `settings` have no `set_coverage`.
        """
        return self._sets(self._answers(X, version))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row, shape (n,). Raises InvalidInput."""
        best = self.predict_proba(X).argmax(axis=1)
        chosen: NDArray[Any] = self.classes_[best]
        return chosen

    @classmethod
    def load(cls, path: str | PathLike[str], estimator: Any = None) -> Self:
        """Load a calibrator from a file written by `save`, or from a backup of a feed of scores.

        The file holds what was learned from the scores, and not the estimator, which a file without
        pickle cannot hold: store it by its own means, and give it here.

        Parameters
        ----------
        path : path-like
        estimator : classifier, optional
            The fitted model whose scores were calibrated. Required if the calibrator had one.

        Raises
        ------
        InvalidInput
            If the estimator is absent, or cannot be used, as in `replace`.
        InvalidSnapshot
            If the file is of neither kind, is damaged, or was written by another version.
        OSError
            If the file cannot be read.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = np.eye(2).repeat(20, axis=0), ["a"] * 20 + ["b"] * 20
        >>> trained = GaussianNB().fit(X[::2], y[::2])
        >>> model = OnlineCalibrator.from_prefit(trained).partial_fit(X[1::2], y[1::2])
        >>> with TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model")
        ...     copy = OnlineCalibrator.load(f"{folder}/model", trained)
        >>> bool((copy.predict_proba(X) == model.predict_proba(X)).all())
        True
        """
        made = cls._loaded(path, own=("estimator",))
        if estimator is not None:
            return made.replace(estimator, made.version_)
        if made._saved_with is not None:
            raise InvalidInput(
                f"estimator: the file has no copy of the {made._saved_with} whose scores it "
                "calibrates; give the fitted one: load(path, estimator)"
            )
        return made

    def _notes(self) -> dict[str, Any]:
        fitted = getattr(self, "estimator_", None)
        return {
            "estimator": None if fitted is None else wrapped_classifier.name_of(fitted),
            "version": self.version_,
        }

    def _note(self, notes: dict[str, Any] | None) -> None:
        if notes is not None:
            self.version_, self._saved_with = notes["version"], notes["estimator"]
            _columns(self._model).version(self.version_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = wrapped_classifier.thawed(self.estimator)
        if hasattr(inner, "__sklearn_tags__"):
            tags.input_tags = get_tags(inner).input_tags
        return tags

    def _learn(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None,
        version: str | int | None,
        *,
        from_scratch: bool = False,
    ) -> list[PredictionBlock]:
        """Learn rows and return their answers; with `from_scratch`, in an order of its own."""
        is_first = from_scratch or not hasattr(self, "_model")
        (frames.check_table if self.estimator is None else frames.check_rows)(X)
        labels = checked_labels(X, y)
        if is_first:
            if classes is None and isinstance(self.estimator, FrozenEstimator):
                classes = wrapped_classifier.fitted_classes(self.estimator)
            known = declared_classes(labels, classes, may_declare=True)
            model = self._new_model(known)
        else:
            check_same_classes(self.classes_, classes)
            known, model = self.classes_, self._model
        fitted = getattr(self, "estimator_", None)
        if is_first and self.estimator is not None:
            fitted, scores = wrapped_classifier.fitted_and_scored(
                self.estimator, X, labels, known.tolist(), self.scores
            )
        else:
            scores = self._scores(X, fitted, known)
        rows = self._rows(scores, model, known, version)
        if from_scratch:
            order = shuffled(len(labels), self.seed)
            rows, labels = rows[order], labels[order]
        found = model.learn(rows, labels.tolist(), model.schema)
        self._model, self.classes_ = model, known
        if fitted is not None:
            self._keep(fitted)
        return [block for block in found if isinstance(block, PredictionBlock)]

    def _new_model(self, classes: NDArray[Any]) -> LabelledPredictor:
        """Return an empty model of these sorted classes."""
        texts = LabelTexts(classes)
        parameters = self.get_params(deep=False)
        del parameters["estimator"]
        if isinstance(self.estimator, FrozenEstimator):
            parameters["settings"] = {"score_model": "fixed", **(self.settings or {})}
        config = config_of(parameters, texts, [texts.text(k) for k in classes])
        return LabelledPredictor(config, classes)

    def _keep(self, fitted: Any) -> None:
        """Take the scores of this fitted classifier from now on, with its names of features."""
        self.estimator_ = fitted
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))

    def _answers(self, X: Any, version: str | int | None) -> PredictionBlock:
        check_is_fitted(self, "classes_")
        scores = self._scores(X, getattr(self, "estimator_", None), self.classes_)
        return self._model.ask(self._rows(scores, self._model, self.classes_, version))

    def _scores(self, X: Any, fitted: Any, classes: NDArray[Any]) -> Floats:
        """Return the scores of X as a matrix, by the fitted classifier if there is one."""
        if fitted is not None:
            frames.check_rows(X)
            return wrapped_classifier.scores(fitted, X, classes.tolist(), self.scores)
        try:
            scores = frames.scores_by_name(X, classes.tolist())
        except (TypeError, ValueError) as error:
            raise InvalidInput(str(error)) from error
        if scores.ndim not in (1, 2):
            raise InvalidInput(f"X: scores of shape {scores.shape}; give (n,) or (n, K)")
        return scores[:, None] if scores.ndim == 1 else scores

    def _rows(
        self, scores: Floats, model: LabelledPredictor, classes: NDArray[Any], version: Any
    ) -> Floats:
        """Return the rows of scores as the model takes them."""
        order = model.columns_of(classes.tolist())
        if scores.shape[1] == len(classes):
            scores = scores[:, np.argsort(order)]
        version = self.version_ if version is None else version
        rows = _columns(model).rows(scores, [version] * len(scores))
        if scores.shape[1] == 1 and order == [1, 0]:  # the model's second class is the first here
            rows[:, 0] *= -1.0
        return rows


def _columns(model: LabelledPredictor) -> ScoreColumns:
    columns = model.schema.scores
    assert columns is not None
    return columns
