"""Provide the online predictor as a scikit-learn estimator, `OnlineClassifier`."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from online_svm.compiled.elementary import logs
from online_svm.errors import InvalidConfig, InvalidInput
from online_svm.predictor.batch import Answers
from online_svm.predictor.explanation import Contribution, contributions
from online_svm.predictor.labelled_estimator import LabelledEstimator, sorted_array
from online_svm.predictor.labelled_predictor import (
    ClassifierParameters,
    LabelledPredictor,
    config_of,
)
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
from online_svm.types import Bools, Floats

PLAYED_ROWS = 3_000
"""Rows of `fit`, the newest, that the model learns: a window, and as many as the longest stack.

With 5,000 rows `fit` takes up to twice as long on adult, and the mean log loss of each of five sets
differs by less than .001."""

MIN_ROWS = 100
"""Rows below which `fit` learns as a feed does."""

_MIN_PROBABILITY = float(np.finfo(np.float64).tiny)
"""Probabilities are raised to this number before their logarithm is taken."""


@dataclass(eq=False, repr=False, kw_only=True)
class OnlineClassifier(ClassifierParameters, LabelledEstimator):
    """Online support vector machine with calibrated probabilities and intervals.

    The estimator runs the model of a feed in this process: `partial_fit` with the same settings and
    the same rows in the same order gives the same answers, bit for bit. It refits on a schedule and
    keeps a window of examples, and a longer memory for boosted trees. `fit` shuffles its rows,
    because recent ones count most, and lets these trees learn all of them. `predict_proba` does not
    learn.

    Rows are arrays of numbers, or data frames of pandas, polars or another library with named
    columns. Named columns may hold numbers, texts, booleans, times and gaps.

    Parameters
    ----------
    C : float
        Penalty of a margin violation.
    kernel : {"rbf", "linear"}
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
    memory : int
        Rows, the newest, that boosted trees with long memory learn; 0 for none, so that `fit`
        learns as `partial_fit` does. A single machine answers without them.
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

    _saved_as = "OnlineClassifier"

    missing: Literal["reject", "mean"] = "reject"
    order: Literal["shuffled", "given"] = "shuffled"
    memory: int = 100_000

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
        model, known, rows, labels, schema = self._checked(X, y, None, is_first=True)
        config, n = model.predictor.config, len(labels)
        if self.order == "shuffled":
            order = shuffled(n, config.seed)
            rows, labels = rows[order], labels[order]
        if n < MIN_ROWS or not config.has_memory:
            model.learn(rows, labels.tolist(), schema)
        else:
            # 1. The trees learn all rows but the newest; the model learns the newest.
            first, older = max(0, n - PLAYED_ROWS), n - min(PLAYED_ROWS, n // 5)
            oldest = slice(max(0, n - self.memory), first)
            model.recall(rows[oldest], labels[oldest].tolist(), schema)
            model.learn(rows[first:older], labels[first:older].tolist(), schema)
            model.fit_memory()
            # 2. The rest shows what each expert is worth. 3. The trees learn all rows.
            model.learn(rows[older:], labels[older:].tolist(), schema)
            model.fit_memory()
        self._model, self.classes_ = model, known
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
        return self._probabilities(*self._learn(X, y, classes))

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n, K); 1 / K before the first model.

        Raises InvalidInput if X cannot be used.
        """
        return self._probabilities(self._answers(X))

    def predict_interval(self, X: Any) -> Floats:
        """Return the lower and upper probability of each class, shape (n, K, 2).

        Before the first model every interval is [0, 1].

        Raises InvalidInput if X cannot be used.
        """
        return self._intervals(self._answers(X))

    def predict_set(self, X: Any) -> Bools:
        """Return whether each class is in the set of a row, shape (n, K).

        The set has the classes that cannot be excluded, at least the most probable one. A label is
        in the set of its answer with the long-run frequency `set_coverage` (Gibbs & Candes 2021);
        see `online_svm.metrics.label_sets`. Before the first model it has all classes.

        Raises InvalidInput if X cannot be used, or `settings` have no `set_coverage`.

        Examples
        --------
        >>> X = np.arange(60.0)[:, None] % 2
        >>> model = OnlineClassifier(settings={"set_coverage": 0.9})
        >>> model = model.partial_fit(X, X[:, 0] > 0, classes=[False, True])
        >>> model.predict_set([[0.0], [1.0]]).tolist()
        [[True, False], [False, True]]
        """
        return self._sets(self._answers(X))

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

    def contributions(self, X: Any) -> list[tuple[Contribution, ...]]:
        """Return for each row the effect of each feature on the answer, the largest first.

        An effect is the probability of the predicted label less the one with a usual value in place
        of this feature alone; `online-svm explain` prints the same of a feed. Nothing is returned
        before the first model. See `online_svm.predictor.explanation.contributions`.

        Raises InvalidInput if X cannot be used.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> model = OnlineClassifier().fit(X, X[:, 1] > 0.0)
        >>> (first, second) = model.contributions([[1.0, 2.0]])[0]
        >>> first.name, second.name, bool(first.effect > 0.2 > abs(second.effect))
        ('1', '0', True)
        """
        rows, predictor, frozen = self._queries(X), self._model.predictor, self._model.frozen
        return [contributions(predictor, row, frozen.answer) for row in rows]

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
        return cls._loaded(path, own=("order",))

    def _notes(self) -> dict[str, Any]:
        columns = getattr(self, "feature_names_in_", np.empty(0)).tolist()
        return {"columns": columns, "order": self.order}

    def _note(self, notes: dict[str, Any] | None) -> None:
        """Set the order and the feature attributes; without names, use the feed's names."""
        schema = self._model.schema
        names = sorted(schema.known)
        if notes is not None:
            names, self.order = notes["columns"], notes["order"]
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

    def _learn(self, X: Any, y: ArrayLike, classes: ArrayLike | None) -> list[PredictionBlock]:
        """Learn rows in order, and return their answers."""
        is_first = not hasattr(self, "_model")
        model, known, rows, labels, schema = self._checked(X, y, classes, is_first)
        blocks = _blocks(model.learn(rows, labels.tolist(), schema))
        if not schema.declares_labels:  # a feed that discovers its labels
            known = sorted_array(model.labels)
        self._model, self.classes_ = model, known
        return blocks

    def _checked(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None, is_first: bool
    ) -> tuple[LabelledPredictor, NDArray[Any], Floats, NDArray[Any], FeatureSchema]:
        """Return the model, which is new for the first rows, its classes, rows, labels, schema."""
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
        return model, known, self._rows(rows, schema), labels, schema

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
        """Return the answers to rows."""
        rows = self._queries(X)
        return self._model.ask(rows)

    def _queries(self, X: Any) -> Floats:
        """Return rows as the model takes them; raise NotFittedError before there is one."""
        check_is_fitted(self, "classes_")
        if frames.is_frame(X) and hasattr(self, "feature_names_in_"):
            rows = checked_frame(self, X)
        else:
            rows = checked_rows(self, X, allow_nan=self._allows_nan())
        return self._rows(rows, self._model.frozen.schema)

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


def _blocks(found: Answers) -> list[PredictionBlock]:
    return [block for block in found if isinstance(block, PredictionBlock)]


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
