"""Provide the online predictor as a river classifier; river is part of the extra `[service]`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from online_svm.errors import InvalidInput
from online_svm.predictor.labelled_predictor import (
    ClassifierParameters,
    LabelledPredictor,
    config_of,
)
from online_svm.stream import frames
from online_svm.stream.labels import LabelTexts
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Floats

try:
    from river import base
except ImportError:
    raise ImportError("online_svm.river needs river: pip install 'online-svm[service]'") from None

if TYPE_CHECKING:
    import pandas as pd

Features = Mapping[Any, Any]


@dataclass(eq=False, repr=False)
class OnlineClassifier(ClassifierParameters, base.MiniBatchClassifier):
    """Online support vector machine with calibrated probabilities and intervals, for river.

    It runs the model of a feed: `predict_proba_one`, followed by `learn_one` of the same example,
    gives the answer of a feed, bit for bit. Predictions change nothing. Features may be numbers,
    texts, booleans, times and gaps, and the set of features may change. The model refits on a
    schedule and keeps a window of examples.

    Parameters
    ----------
    classes : sequence, optional
        All labels that will ever occur. Without it labels are discovered: predictions before the
        first label are empty, and the guarantee is approximate.
    C, kernel, gamma, class_weight, committee, window, refit_every, interval_level, on_drift, seed,
    settings
        As in `online_svm.OnlineClassifier`, by name.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> model = OnlineClassifier(classes=[False, True])
    >>> rows = datasets.Phishing().take(600)
    >>> score = evaluate.progressive_val_score(rows, model, metrics.LogLoss())
    >>> round(score.get(), 4)
    0.2763
    >>> x, y = next(iter(datasets.Phishing()))
    >>> lower, upper = model.predict_interval_one(x)[True]
    >>> lower <= model.predict_proba_one(x)[True] <= upper
    True
    """

    classes: Sequence[Any] | None = None

    _labelled_predictor: LabelledPredictor | None = field(default=None, init=False)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"classes": [False, True]}

    @property
    def _multiclass(self) -> bool:
        return self.classes is None or len(self.classes) > 2

    def learn_one(self, x: Features, y: Any) -> None:
        """Learn an example.

        Raises InvalidExample if its features or its label cannot be used; the model is unchanged.
        """
        model, named = self._model, _named(x)
        schema = model.schema.knowing(named)
        row = schema.row(named)
        model.learn(row[None, :], [y], schema.of_example(named))

    def predict_proba_one(self, x: Features, **_: Any) -> dict[Any, float]:
        """Return the probability of each label; empty before the first label."""
        (found,) = self._model.probabilities(self._answer(x)).tolist()
        return dict(zip(self._model.labels, found, strict=True))

    def predict_interval_one(self, x: Features) -> dict[Any, tuple[float, float]]:
        """Return the lower and upper probability of each label; empty before the first label."""
        (found,) = self._model.intervals(self._answer(x)).tolist()
        labels = self._model.labels
        return {label: (low, high) for label, (low, high) in zip(labels, found, strict=True)}

    def predict_set_one(self, x: Features) -> list[Any]:
        """Return the labels that cannot be excluded; empty before the first label."""
        return _labels_in_set(self._model, self._answer(x))

    def predict_one(self, x: Features, **_: Any) -> Any:
        """Return the most probable label; None before the first label."""
        labels = self._model.labels
        return labels[self._model.best(self._answer(x))[0]] if labels else None

    def learn_many(self, X: "pd.DataFrame", y: "pd.Series[Any]") -> None:
        """Learn the rows of a data frame in order, like `learn_one`; a gap is an absent feature.

        Raises InvalidExample if a feature or a label cannot be used; the model is unchanged.
        """
        model = self._model
        named = _named_columns(X)
        schema = model.schema.knowing(dict.fromkeys(frames.column_names(named)))
        model.learn(frames.rows(named, schema), list(y), schema)

    def predict_proba_many(self, X: "pd.DataFrame") -> "pd.DataFrame":
        """Return the probabilities of the rows of a data frame, one column a label."""
        import pandas as pd

        model = self._model
        named = _named_columns(X)
        schema = model.frozen.schema.knowing(dict.fromkeys(frames.column_names(named)))
        found = model.probabilities(model.ask(frames.rows(named, schema)))
        index = X.index if isinstance(X, pd.DataFrame) else None
        return pd.DataFrame(found, index=index, columns=pd.Index(model.labels, dtype=object))

    @property
    def _model(self) -> LabelledPredictor:
        if self._labelled_predictor is None:
            self._labelled_predictor = _empty_model(self._get_params())
        return self._labelled_predictor

    def _answer(self, x: Features) -> PredictionBlock:
        schema = self._model.frozen.schema
        return self._model.ask(schema.row(_named(x))[None, :])


class CalibratedModel(base.Wrapper[base.Classifier], base.Classifier):
    """Probabilities and intervals from the scores of a river classifier, calibrated as labels come.

    `learn_one` calibrates the probabilities that the classifier states before it learns the
    example, then lets it learn. See `online_svm.OnlineCalibrator`; `calibrate` makes one.

    Parameters
    ----------
    model : base.Classifier
        It stays the caller's own object.
    classes : sequence
        All labels that will ever occur.
    window : int or None
        Number of examples kept.
    interval_level : float or None
    seed : int
    settings : dict, optional
        Further settings of `PredictorConfig` by name.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, naive_bayes
    >>> rows = [*datasets.Phishing().take(600)]
    >>> def loss(model):
    ...     return round(evaluate.progressive_val_score(rows, model, metrics.LogLoss()).get(), 2)
    >>> loss(naive_bayes.GaussianNB()), loss(calibrate(naive_bayes.GaussianNB()))
    (0.86, 0.38)
    """

    def __init__(
        self,
        model: base.Classifier,
        classes: Sequence[Any] = (False, True),
        window: int | None = 2000,
        interval_level: float | None = 0.9,
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.classes = classes
        self.window = window
        self.interval_level = interval_level
        self.seed = seed
        self.settings = settings
        self._labelled_predictor: LabelledPredictor | None = None

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river import naive_bayes

        yield {"model": naive_bayes.GaussianNB()}  # type: ignore[no-untyped-call]

    @property
    def _wrapped_model(self) -> base.Classifier:
        return self.model

    @property
    def _multiclass(self) -> bool:
        return len(self.classes) > 2

    def learn_one(self, x: Features, y: Any, **given: Any) -> None:
        """Learn the score of an example and its label; then let the classifier learn both.

        Raises InvalidExample if the label is none of the classes; all is unchanged then.
        """
        self._calibrator.learn(self._row(x), [y], self._calibrator.schema)
        self.model.learn_one(dict(x), y, **given)

    def predict_proba_one(self, x: Features, **_: Any) -> dict[Any, float]:
        """Return the probability of each label."""
        (found,) = self._calibrator.probabilities(self._calibrator.ask(self._row(x))).tolist()
        return dict(zip(self._calibrator.labels, found, strict=True))

    def predict_interval_one(self, x: Features) -> dict[Any, tuple[float, float]]:
        """Return the lower and upper probability of each label."""
        (found,) = self._calibrator.intervals(self._calibrator.ask(self._row(x))).tolist()
        labels = self._calibrator.labels
        return {label: (low, high) for label, (low, high) in zip(labels, found, strict=True)}

    def predict_set_one(self, x: Features) -> list[Any]:
        """Return the labels that cannot be excluded."""
        return _labels_in_set(self._calibrator, self._calibrator.ask(self._row(x)))

    @property
    def _calibrator(self) -> LabelledPredictor:
        if self._labelled_predictor is None:
            parameters = {k: v for k, v in self._get_params().items() if k != "model"}
            self._labelled_predictor = _empty_model(parameters | {"scores": "probability"})
        return self._labelled_predictor

    def _row(self, x: Features) -> Floats:
        """Return the row of the classifier's score; before its first label, a missing one."""
        stated, columns = self.model.predict_proba_one(dict(x)), self._calibrator.schema.scores
        if stated.keys().isdisjoint(self._calibrator.labels) and stated:
            raise InvalidInput(
                f"model: it states probabilities of {[*stated]}, none of {self.classes}; name all "
                "labels: calibrate(model, classes=[...])"
            )
        found = np.array([[stated.get(label, 0.0) for label in self._calibrator.labels]])
        assert columns is not None
        return columns.rows(found if found.sum() > 0.0 else np.full_like(found, np.nan))


def _labels_in_set(model: LabelledPredictor, block: PredictionBlock) -> list[Any]:
    (found,) = model.sets(block).tolist()
    return [label for label, is_in in zip(model.labels, found, strict=True) if is_in]


def calibrate(model: base.Classifier, **parameters: Any) -> CalibratedModel:
    """Return a river classifier with the calibrated probabilities of another one.

    `parameters` are those of `CalibratedModel`.

    Examples
    --------
    >>> from river import linear_model
    >>> model = calibrate(linear_model.LogisticRegression(), window=500)
    >>> model.learn_one({"amount": 39.5}, False)
    >>> sorted(model.predict_interval_one({"amount": 12.0}))
    [False, True]
    """
    return CalibratedModel(model, **parameters)


def _empty_model(parameters: dict[str, Any]) -> LabelledPredictor:
    labels: Iterable[Any] | None = parameters.pop("classes")
    texts = LabelTexts(labels or ())
    declared = None if labels is None else [texts.text(label) for label in texts.labels]
    return LabelledPredictor(config_of(parameters, texts, declared), texts.labels)


def _named_columns(X: Any) -> Any:
    """Return a data frame with the names of its columns as text, which only pandas does not ask."""
    frames.check_table(X)
    if not hasattr(X, "set_axis"):
        return X
    named = X.set_axis([str(name) for name in X.columns], axis="columns")
    frames.check_table(named)
    return named


def _named(x: Features) -> dict[str, Any]:
    """Return the features with their names converted to text."""
    return {str(name): value for name, value in x.items()}
