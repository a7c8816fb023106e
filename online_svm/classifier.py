"""Provide the online predictor as a scikit-learn estimator, `OnlineClassifier`."""

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
from online_svm.errors import InvalidConfig, InvalidInput, InvalidSnapshot
from online_svm.predictor.labelled_predictor import LabelledPredictor, config_of, parameters_of
from online_svm.storage.saved_model import SavedModel, stored_config
from online_svm.stream import frames
from online_svm.stream.labels import LabelTexts
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.schema import FeatureSchema, invalid_values
from online_svm.stream.split import shuffled
from online_svm.svm.validation import (
    check_same_classes,
    checked_examples,
    checked_frame,
    checked_labels,
    checked_rows,
    declared_classes,
)
from online_svm.types import Floats

_MIN_PROBABILITY = float(np.finfo(np.float64).tiny)
"""Probabilities are raised to this number before their logarithm is taken."""


class OnlineClassifier(ClassifierMixin, BaseEstimator):
    """Online support vector machine with calibrated probabilities and intervals.

    The estimator runs the model of a feed in this process: with the same settings and the same rows
    in the same order, it gives the same answers, bit for bit. It refits on a schedule and keeps a
    window of examples. `partial_fit` learns the rows in order; `fit` shuffles them first, because
    recent rows count most. `predict_proba` does not learn.

    Rows are arrays of numbers, or data frames of pandas, polars or another library with named
    columns. Named columns may hold numbers, texts, booleans, times and gaps.

    Parameters
    ----------
    C : float
        Penalty of a margin violation.
    kernel : {"rbf", "linear", "poly"}
        Any kernel except "rbf" uses a single machine.
    gamma : "scale" or float
    class_weight : dict, "balanced" or None
        Multiplies C for a class. Probabilities stay calibrated, and `predict` takes the class with
        the largest product of probability and weight. `sample_weight` is refused: the position of a
        row decides whether it trains or calibrates, so a weight would not equal repeating the row.
    committee : {"single", "default"}, tuple of str or None
        One machine, or several different ones; None means "default" if the kernel is "rbf".
    window : int or None
        Number of examples kept; None keeps all.
    refit_every : int or None
        Examples between two refits; the first refits come sooner. None adapts the distance between
        250 and 2,000 to the gain of a refit.
    interval_level : float or None
        Nominal coverage of the intervals; None uses the hull of the Venn predictor.
    missing : {"reject", "mean"}
        NaN in an array is an error, or becomes the mean of the training set. In a data frame NaN is
        always a gap.
    on_drift : {"report", "refit", "reset"}
        Action of the predictor on an alarm of the monitors.
    seed : int
        Seed of the split into training and calibration set, and of the order of `fit`.
    order : {"shuffled", "given"}
        Order in which `fit` learns its rows. Use "given" for rows sorted by time.
    settings : dict, optional
        Further settings of `PredictorConfig` by name.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Sorted.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Present if the columns of X have names.

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
        order: Literal["shuffled", "given"] = "shuffled",
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
        self.order = order

    def fit(self, X: Any, y: ArrayLike, **refused: Any) -> Self:
        """Discard the model, then learn these rows, shuffled unless `order` is "given".

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        y : array-like of shape (n,)
            Labels of any type that sorts: text, numbers, booleans.
        **refused
            `sample_weight` is refused with the reason.

        Raises InvalidInput if X or y cannot be used, or y holds one class only; InvalidConfig if a
        parameter cannot work.
        """
        _refuse("fit", refused)
        self._learn(X, y, None, from_scratch=True)
        return self

    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, **refused: Any
    ) -> Self:
        """Learn more rows in the given order, on top of the present model.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like of shape (K,), optional
            All labels that will ever occur. Required in the first call unless y contains them all.
        **refused
            As in `fit`.

        Raises
        ------
        InvalidInput
            As `fit`, or if the classes differ from those given in the first call.
        InvalidExample
            If a label is not one of the classes.
        """
        _refuse("partial_fit", refused)
        self._learn(X, y, classes)
        return self

    def progressive_proba(self, X: Any, y: ArrayLike, classes: ArrayLike | None = None) -> Floats:
        """Return the probabilities of each row before the row is learned; learn all rows.

        This is prequential (test-then-train) evaluation, as a feed answers.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like of shape (K,), optional
            As in `partial_fit`.

        Returns
        -------
        ndarray of shape (n, K)
            1 / K before the first model.

        Raises
        ------
        InvalidInput, InvalidExample
            As `partial_fit`.
        """
        blocks = self._learn(X, y, classes)
        found = np.concatenate([self._model.probabilities(b) for b in blocks])
        ordered: Floats = found[:, self._order]
        return ordered

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n, K); 1 / K before the first model.

        Raises InvalidInput if X cannot be used.
        """
        block = self._answers(X)
        return self._model.probabilities(block)[:, self._order]

    def predict_interval(self, X: Any) -> Floats:
        """Return the lower and upper probability of each class, shape (n, K, 2).

        Before the first model every interval is [0, 1].

        Raises InvalidInput if X cannot be used.
        """
        block = self._answers(X)
        return self._model.intervals(block)[:, self._order]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row, shape (n,); see also `class_weight`.

        Raises InvalidInput if X cannot be used.
        """
        block = self._answers(X)
        best = self._model.best(block)
        chosen: NDArray[Any] = self.classes_[np.argsort(self._order)[best]]
        return chosen

    def decision_function(self, X: Any) -> Floats:
        """Return the log-odds of the second class, shape (n,); `predict` takes their sign.

        With more than two classes the result has shape (n, K) and holds log-probabilities. With
        `class_weight` the probabilities are first multiplied by the weights.

        Raises InvalidInput if X cannot be used.
        """
        block = self._answers(X)
        weighed = self._model.weighed(block)[:, self._order]
        odds = logs(np.maximum(weighed, _MIN_PROBABILITY))
        return odds[:, 1] - odds[:, 0] if len(self.classes_) == 2 else odds

    def save(self, path: str | PathLike[str]) -> None:
        """Save the fitted estimator to a file, without pickle; `load` continues from it.

        Raises InvalidInput if a label is neither text nor a number nor a boolean; OSError if the
        file cannot be written.
        """
        check_is_fitted(self, "classes_")
        labels, target = self.classes_.tolist(), Path(path)
        if not all(isinstance(label, bool | int | float | str) for label in labels):
            raise InvalidInput(f"y: labels as {labels[0]!r} cannot be saved; use text or numbers")
        notes = {
            "labels": labels,
            "dtype": self.classes_.dtype.str,
            "columns": getattr(self, "feature_names_in_", np.empty(0)).tolist(),
            "order": self.order,
        }
        saved = SavedModel(notes, self._model.predictor.snapshot())
        partial = target.with_name(target.name + ".part")
        partial.write_bytes(saved.packed())
        partial.replace(target)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Load an estimator from a file written by `save`, or from a backup of a feed.

        A backup contains the settings of the feed. Its labels are texts, or integers if the feed
        declares integers. A model from a feed with a horizon can predict but not learn.

        Raises InvalidSnapshot if the file is of neither kind, is damaged, or was written by another
        version; OSError if the file cannot be read.

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
        names = [name for name in cls._get_param_names() if name != "order"]
        made = cls(
            **parameters_of(config, names, model.texts), order=notes.get("order", "shuffled")
        )
        made._model = model
        made.classes_ = _sorted(model.labels)
        if saved.notes is not None:
            made.classes_ = made.classes_.astype(np.dtype(str(notes["dtype"])))
        made._note_columns(notes["columns"])
        return made

    def _note_columns(self, columns: list[str] | None) -> None:
        """Set the feature attributes of a loaded model; without names, use its feed's names."""
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
        """The model's column of each class in `classes_`."""
        return self._model.columns_of(self.classes_.tolist())

    def _learn(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None, from_scratch: bool = False
    ) -> list[PredictionBlock]:
        """Learn rows and return their answers; with `from_scratch`, discard the model first."""
        is_first = from_scratch or not hasattr(self, "_model")
        is_named = frames.is_frame(X) and (is_first or hasattr(self, "feature_names_in_"))
        if is_named:
            rows, labels = checked_frame(self, X, reset=is_first), checked_labels(X, y)
        else:
            allows = self._allows_nan(is_first)
            rows, labels = checked_examples(self, X, y, is_first, allow_nan=allows)
        if is_first:
            model, known = self._new_model(labels, classes)
        else:
            check_same_classes(self.classes_, classes)
            model, known = self._model, self.classes_
        first = dict.fromkeys(self.feature_names_in_) if is_named else rows[0]
        schema = model.schema.knowing(first).of_example(first)
        rows = self._rows(rows, schema)
        if from_scratch and self.order == "shuffled":
            order = shuffled(len(labels), model.predictor.config.seed)
            rows, labels = rows[order], labels[order]
        found = model.learn(rows, labels.tolist(), schema)
        if not schema.declares_labels:  # a feed that discovers its labels
            known = _sorted(model.labels)
        self._model, self.classes_ = model, known
        return [block for block in found if isinstance(block, PredictionBlock)]

    def _new_model(
        self, labels: NDArray[Any], classes: ArrayLike | None
    ) -> tuple[LabelledPredictor, NDArray[Any]]:
        """Return an empty model and its classes."""
        known = declared_classes(labels, classes, may_declare=True)
        texts = LabelTexts(known)
        parameters = self.get_params(deep=False)
        if parameters.pop("order") not in ("shuffled", "given"):
            raise InvalidConfig(f"order: {self.order!r} is unknown; use 'shuffled' or 'given'")
        config = config_of(parameters, texts, [texts.text(k) for k in known])
        return LabelledPredictor(config, known), known

    def _answers(self, X: Any) -> PredictionBlock:
        """Return the answers to rows; raise NotFittedError before `_model` exists."""
        check_is_fitted(self, "classes_")
        if frames.is_frame(X) and hasattr(self, "feature_names_in_"):
            rows = checked_frame(self, X)
        else:
            rows = checked_rows(self, X, allow_nan=self._allows_nan())
        return self._model.ask(self._rows(rows, self._model.frozen.schema))

    def _allows_nan(self, is_first: bool = False) -> bool:
        """Return whether an array may contain NaN; in named columns NaN is a gap."""
        was_named = not is_first and hasattr(self, "feature_names_in_")
        return self.missing == "mean" or was_named

    def _rows(self, X: Any, schema: FeatureSchema) -> Floats:
        """Convert a data frame or checked numbers to rows that the schema accepts."""
        if not isinstance(X, np.ndarray):
            return frames.rows(X, schema)
        if schema.is_mixed and hasattr(self, "feature_names_in_"):
            return frames.numbers(X, self.feature_names_in_.tolist(), schema)
        for i in np.flatnonzero(invalid_values(X, schema.allows_missing).any(axis=1))[:1]:
            schema.check(X[i])
        return X


def _refuse(method: str, given: Mapping[str, Any]) -> None:
    """Raise for an unknown argument, or a `sample_weight` that is not None."""
    for name in given:
        if name != "sample_weight":
            raise TypeError(f"OnlineClassifier.{method}() got an unexpected argument {name!r}")
    if given.get("sample_weight") is not None:
        raise InvalidInput(
            "sample_weight: rows have no weights, since the place of a row decides whether it "
            "trains or calibrates; weigh classes by class_weight, or leave it out"
        )


def _sorted(labels: list[Any]) -> NDArray[Any]:
    found: NDArray[Any] = np.unique(np.array(labels))
    return found
