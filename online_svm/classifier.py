"""OnlineClassifier: the online predictor, for scikit-learn."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from online_svm.compiled.elementary import logs
from online_svm.compiled.kernels import KernelName
from online_svm.config import PredictorConfig
from online_svm.config.groups import MemberName
from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.predictor.labelled_predictor import (
    LabelledPredictor,
    config_of,
    parameters_of,
    stored_config,
)
from online_svm.storage.saved_model import SavedModel
from online_svm.stream import frames
from online_svm.stream.label_texts import LabelTexts
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.schema import FeatureSchema, invalid_values
from online_svm.svm.validation import (
    check_same_classes,
    checked_examples,
    checked_frame,
    checked_labels,
    checked_rows,
    declared_classes,
)
from online_svm.types import Floats

_SMALLEST = float(np.finfo(np.float64).tiny)
"""Stands for a probability of zero where its logarithm is taken."""


class OnlineClassifier(ClassifierMixin, BaseEstimator):
    """Calibrated probabilities, with intervals, of a support vector machine that goes on learning.

    It is the model of a feed, in this process: the same rows in the same order, under the same
    settings, get the same answers, bit for bit. It refits by itself on a schedule, keeps a window
    of examples, and learns in the order of the rows. `predict_proba` does not learn.

    Rows are arrays of numbers, or data frames of pandas, polars or another library whose columns
    have names: those may be numbers, texts, booleans, times and gaps.

    Parameters
    ----------
    C : float
        Penalty of a margin violation.
    kernel : {"rbf", "linear", "poly"}
        Any but "rbf" takes a single machine.
    gamma : "scale" or float
    class_weight : dict, "balanced" or None
        Multiplies C for a class. Probabilities stay calibrated, so `predict` then takes the class
        whose probability times its weight is largest. It stands for `sample_weight`, which there is
        none of: a row is put into the training or the calibration set by its place, so a weight
        would not be the same as repeating it.
    committee : {"single", "default"}, tuple of str or None
        One machine, or several unlike ones; None is "default" where the kernel is "rbf".
    window : int or None
        Examples that are kept; None keeps all.
    refit_every : int or None
        Examples between two refits; the first ones come sooner. None: 250 to 2,000, as they pay.
    interval_level : float or None
        Stated coverage of the intervals; None takes the hull of the Venn predictor.
    missing : {"reject", "mean"}
        Whether NaN in an array is an error, or becomes the mean of the training set. In a data
        frame it is a gap, whatever this says.
    on_drift : {"report", "refit", "reset"}
        What an alarm of the monitors does.
    seed : int
        Of the split into training and calibration set.
    settings : dict, optional
        Further settings of `PredictorConfig` by name.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Sorted.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where the columns of X are named.

    See Also
    --------
    OnlineSVC : The bare machine, without probabilities.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = np.where(X.sum(axis=1) + rng.normal(size=400) > 0.0, "spam", "ham")
    >>> model = OnlineClassifier().fit(X[:300], y[:300])
    >>> model.predict([[2.0, 2.0]])
    array(['spam'], dtype='<U4')
    >>> lower, upper = model.predict_interval([[2.0, 2.0]])[0, 1]
    >>> bool(0.5 < lower <= model.predict_proba([[2.0, 2.0]])[0, 1] <= upper)
    True
    >>> before = model.progressive_proba(X[300:], y[300:])  # each row before it is learned
    >>> before.shape
    (100, 2)
    """

    classes_: NDArray[Any]
    _model: LabelledPredictor

    def __init__(
        self,
        C: float = 1.0,
        kernel: KernelName = "rbf",
        gamma: float | Literal["scale"] = "scale",
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        committee: Literal["single", "default"] | tuple[MemberName, ...] | None = None,
        window: int | None = 2000,
        refit_every: int | None = None,
        interval_level: float | None = 0.9,
        missing: Literal["reject", "mean"] = "reject",
        on_drift: Literal["report", "refit", "reset"] = "report",
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.class_weight = class_weight
        self.committee = committee
        self.window = window
        self.refit_every = refit_every
        self.interval_level = interval_level
        self.missing = missing
        self.on_drift = on_drift
        self.seed = seed
        self.settings = settings

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Forget everything; then learn these rows in order.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        y : array-like of shape (n,)
            Labels of any type that sorts: text, numbers, booleans.

        Raises
        ------
        InvalidInput
            If X or y cannot be used, or y holds one class only.
        InvalidConfig
            If a parameter cannot work.
        """
        self._learn(X, y, None, anew=True)
        return self

    def partial_fit(self, X: Any, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Learn more rows in order; what was learned stays.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like of shape (K,), optional
            All labels that will ever come. Needed in the first call unless its y holds them all.

        Raises
        ------
        InvalidInput
            As `fit`, or if the classes are others than in the first call.
        InvalidExample
            If a label is not one of the classes.
        """
        self._learn(X, y, classes)
        return self

    def progressive_proba(self, X: Any, y: ArrayLike, classes: ArrayLike | None = None) -> Floats:
        """Return the probabilities of each row as they were before it was learned; learn all rows.

        They are what an honest test of an online model goes by, and what a feed answers.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like of shape (K,), optional
            As in `partial_fit`.

        Returns
        -------
        ndarray of shape (n, K)
            1 / K while there is no model yet.

        Raises
        ------
        InvalidInput, InvalidExample
            As `partial_fit`.
        """
        blocks = self._learn(X, y, classes)
        return self._of_classes(np.concatenate([self._model.probabilities(b) for b in blocks]))

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n, K); 1 / K while there is no model yet.

        Raises
        ------
        InvalidInput
            If X cannot be used.
        """
        block = self._answers(X)
        return self._of_classes(self._model.probabilities(block))

    def predict_interval(self, X: Any) -> Floats:
        """Return the lower and upper probability of each class, shape (n, K, 2).

        They are [0, 1] while there is no model yet.

        Raises
        ------
        InvalidInput
            If X cannot be used.
        """
        block = self._answers(X)
        return self._of_classes(self._model.intervals(block))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of the largest probability, shape (n,); see also `class_weight`.

        Raises
        ------
        InvalidInput
            If X cannot be used.
        """
        block = self._answers(X)
        best = self._model.best(block)
        chosen: NDArray[Any] = self.classes_[np.argsort(self._order)[best]]
        return chosen

    def decision_function(self, X: Any) -> Floats:
        """Return the log-odds of the second class, shape (n,), by which `predict` decides.

        With more than two classes the shape is (n, K), and these are logarithms of probabilities.
        With `class_weight` probabilities are multiplied by the weights first.

        Raises
        ------
        InvalidInput
            If X cannot be used.
        """
        block = self._answers(X)
        weighed = self._of_classes(self._model.weighed(block))
        odds = logs(np.maximum(weighed, _SMALLEST))
        return odds[:, 1] - odds[:, 0] if len(self.classes_) == 2 else odds

    def save(self, path: str | PathLike[str]) -> None:
        """Save the fitted estimator to a file, without pickle; `load` goes on from it.

        Raises
        ------
        InvalidInput
            If a label is neither text nor a number nor a boolean.
        OSError
            If the file cannot be written.
        """
        check_is_fitted(self, "classes_")
        labels, target = self.classes_.tolist(), Path(path)
        if not all(isinstance(label, bool | int | float | str) for label in labels):
            raise InvalidInput(f"y: labels as {labels[0]!r} cannot be saved; use text or numbers")
        notes = {
            "labels": labels,
            "dtype": self.classes_.dtype.str,
            "columns": getattr(self, "feature_names_in_", np.empty(0)).tolist(),
        }
        saved = SavedModel(notes, self._model.predictor.snapshot())
        partial = target.with_name(target.name + ".part")
        partial.write_bytes(saved.packed())
        partial.replace(target)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return the estimator in a file: of `save`, or a backup of a feed.

        That of a feed has the feed's settings, and its labels as text, or as integers where the
        feed says so. With a horizon it can be asked, but not taught.

        Raises
        ------
        InvalidSnapshot
            If the file is neither, is damaged, or was made by another version.
        OSError
            If it cannot be read.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> X, y = np.eye(2).repeat(20, axis=0), ["a"] * 20 + ["b"] * 20
        >>> model = OnlineClassifier().fit(X, y)
        >>> with TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model")
        ...     copy = OnlineClassifier.load(f"{folder}/model")
        >>> bool((copy.predict_proba(X) == model.predict_proba(X)).all())
        True
        """
        saved = SavedModel.parse(Path(path).read_bytes())
        config = stored_config(saved.snapshot)
        try:
            return cls._loaded(saved, config)
        except InvalidSnapshot:
            raise
        except (LookupError, TypeError, ValueError) as error:
            raise InvalidSnapshot(f"the file lacks or contradicts itself: {error}") from error

    @classmethod
    def _loaded(cls, saved: SavedModel, config: PredictorConfig) -> Self:
        notes: dict[str, Any] = {"labels": (), "dtype": None, "columns": None}
        notes = notes if saved.notes is None else saved.notes
        model = LabelledPredictor.restored(config, notes["labels"], saved.snapshot)
        if saved.notes is None:
            model.texts.add(map(int, model.labels) if config.labels == "integer" else model.labels)
        elif {model.texts.text(k) for k in notes["labels"]} != set(model.predictor.classes):
            raise ValueError("its labels are not those of its predictor")
        made = cls(**parameters_of(config, cls._get_param_names(), model.texts))
        made._model = model
        made.classes_ = _sorted(model.labels)
        if saved.notes is not None:
            made.classes_ = made.classes_.astype(np.dtype(str(notes["dtype"])))
        made._note_columns(notes["columns"])
        return made

    def _note_columns(self, columns: list[str] | None) -> None:
        """Note the features of a model that was loaded; without names, those of its feed."""
        schema = self._model.schema
        names = sorted(schema.known) if columns is None else columns
        if not schema.known.keys() >= set(names):
            raise ValueError("its columns are not those of its predictor")
        if names:
            self.feature_names_in_ = np.array(names, dtype=object)
        if schema.dimension is not None:
            self.n_features_in_ = len(names) or schema.dimension

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "mean"
        return tags

    @property
    def _order(self) -> list[int]:
        """The column of each of `classes_` among those of the model."""
        places = {label: i for i, label in enumerate(self._model.labels)}
        return [places[label] for label in self.classes_.tolist()]

    def _of_classes(self, columns: Floats) -> Floats:
        """Return columns in the order of `classes_`."""
        return columns[:, self._order]

    def _learn(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None, anew: bool = False
    ) -> list[PredictionBlock]:
        """Learn rows; return their answers."""
        is_first = anew or not hasattr(self, "_model")
        is_named = frames.is_frame(X) and (is_first or hasattr(self, "feature_names_in_"))
        if is_named:
            rows, labels = checked_frame(self, X, reset=is_first), checked_labels(X, y)
        else:
            allows = self._allows_nan(is_first)
            rows, labels = checked_examples(self, X, y, is_first, allow_nan=allows)
        if is_first:
            model, known = self._begun(labels, classes)
        else:
            check_same_classes(self.classes_, classes)
            model, known = self._model, self.classes_
        first = dict.fromkeys(self.feature_names_in_) if is_named else rows[0]
        schema = model.schema.knowing(first).of_example(first)
        found = model.learn(self._rows(rows, schema), labels.tolist(), schema)
        if not schema.declares_labels:  # of a feed that discovers them
            known = _sorted(model.labels)
        self._model, self.classes_ = model, known
        return [block for block in found if isinstance(block, PredictionBlock)]

    def _begun(
        self, labels: NDArray[Any], classes: ArrayLike | None
    ) -> tuple[LabelledPredictor, NDArray[Any]]:
        """Return a model that has learned nothing, and its classes."""
        known = declared_classes(labels, classes)
        texts = LabelTexts(known)
        config = config_of(self.get_params(deep=False), texts, [texts.text(k) for k in known])
        return LabelledPredictor(config, known), known

    def _answers(self, X: Any) -> PredictionBlock:
        check_is_fitted(self, "classes_")
        if frames.is_frame(X) and hasattr(self, "feature_names_in_"):
            rows = checked_frame(self, X)
        else:
            rows = checked_rows(self, X, allow_nan=self._allows_nan())
        return self._model.ask(self._rows(rows, self._model.answering.schema))

    def _allows_nan(self, is_first: bool = False) -> bool:
        """Return whether NaN may be in an array: columns that were named have gaps."""
        was_named = not is_first and hasattr(self, "feature_names_in_")
        return self.missing == "mean" or was_named

    def _rows(self, X: Any, schema: FeatureSchema) -> Floats:
        """Return a data frame, or checked numbers, as rows that the schema accepts."""
        if not isinstance(X, np.ndarray):
            return frames.rows(X, schema)
        if schema.is_mixed and hasattr(self, "feature_names_in_"):
            return frames.numbers(X, self.feature_names_in_.tolist(), schema)
        for i in np.flatnonzero(invalid_values(X, schema.allows_missing).any(axis=1))[:1]:
            schema.check(X[i])
        return X


def _sorted(labels: list[Any]) -> NDArray[Any]:
    found: NDArray[Any] = np.unique(np.array(labels))
    return found
