"""OnlineClassifier for river, which comes with the extra `[service]`, or is installed by itself."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from online_svm.compiled.kernels import KernelName
from online_svm.config.groups import MemberName
from online_svm.predictor.labelled_predictor import LabelledPredictor, config_of
from online_svm.stream import frames
from online_svm.stream.label_texts import LabelTexts
from online_svm.stream.prediction import PredictionBlock

try:
    from river import base
except ImportError:
    raise ImportError("online_svm.river needs river: pip install 'online-svm[service]'") from None

if TYPE_CHECKING:
    import pandas as pd

Features = Mapping[Any, Any]


class OnlineClassifier(base.MiniBatchClassifier):
    """Calibrated probabilities, with intervals, of a support vector machine that goes on learning.

    It is the model of a feed, for river. The answer to an example that is asked and learned next is
    the one that a feed would give it, bit for bit; what is only asked leaves no trace. Features may
    be numbers, texts, booleans, times and gaps; they may come and go. It refits on a schedule and
    keeps a window of examples.

    Parameters
    ----------
    classes : sequence, optional
        All labels that will ever come. Without it labels are met: nothing is predicted before the
        first, and the guarantee of a feed is approximate.
    C : float
        Penalty of a margin violation.
    kernel : {"rbf", "linear", "poly"}
        Any but "rbf" takes a single machine.
    gamma : "scale" or float
    class_weight : dict, "balanced" or None
        Multiplies C for a class, and probabilities where one is chosen; see
        `online_svm.OnlineClassifier`.
    committee : {"single", "default"}, tuple of str or None
    window : int or None
        Examples that are kept; None keeps all.
    refit_every : int or None
        Examples between two refits; the first ones come sooner. None: 250 to 2,000, as they pay.
    interval_level : float or None
        Stated coverage of the intervals; None takes the hull of the Venn predictor.
    on_drift : {"report", "refit", "reset"}
        What an alarm of the monitors does.
    seed : int
        Of the split into training and calibration set.
    settings : dict, optional
        Further settings of `PredictorConfig` by name.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> model = OnlineClassifier(classes=[False, True])
    >>> rows = datasets.Phishing().take(600)
    >>> score = evaluate.progressive_val_score(rows, model, metrics.LogLoss())
    >>> round(score.get(), 4)
    0.2829
    >>> x, y = next(iter(datasets.Phishing()))
    >>> lower, upper = model.predict_interval_one(x)[True]
    >>> lower <= model.predict_proba_one(x)[True] <= upper
    True
    """

    def __init__(
        self,
        classes: Sequence[Any] | None = None,
        C: float = 1.0,
        kernel: KernelName = "rbf",
        gamma: float | Literal["scale"] = "scale",
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        committee: Literal["single", "default"] | tuple[MemberName, ...] | None = None,
        window: int | None = 2000,
        refit_every: int | None = None,
        interval_level: float | None = 0.9,
        on_drift: Literal["report", "refit", "reset"] = "report",
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.classes = classes
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.class_weight = class_weight
        self.committee = committee
        self.window = window
        self.refit_every = refit_every
        self.interval_level = interval_level
        self.on_drift = on_drift
        self.seed = seed
        self.settings = settings
        self._begun: LabelledPredictor | None = None

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"classes": [False, True]}

    @property
    def _multiclass(self) -> bool:
        return self.classes is None or len(self.classes) > 2

    def learn_one(self, x: Features, y: Any) -> None:
        """Learn an example.

        Raises
        ------
        InvalidExample
            If its features or its label cannot be used; nothing has changed then.
        """
        model, named = self._model, _named(x)
        schema = model.schema.knowing(named)
        row = schema.row(named)
        model.learn(row[None, :], [y], schema.of_example(named))

    def predict_proba_one(self, x: Features, **_: Any) -> dict[Any, float]:
        """Return the probability of each label; none before the first label is known."""
        (found,) = self._model.probabilities(self._asked(x)).tolist()
        return dict(zip(self._model.labels, found, strict=True))

    def predict_interval_one(self, x: Features) -> dict[Any, tuple[float, float]]:
        """Return the lower and upper probability of each label; none before the first is known."""
        (found,) = self._model.intervals(self._asked(x)).tolist()
        labels = self._model.labels
        return {label: (low, high) for label, (low, high) in zip(labels, found, strict=True)}

    def predict_one(self, x: Features, **_: Any) -> Any:
        """Return the most probable label; None before the first is known."""
        labels = self._model.labels
        return labels[self._model.best(self._asked(x))[0]] if labels else None

    def learn_many(self, X: "pd.DataFrame", y: "pd.Series[Any]") -> None:
        """Learn the rows of a data frame in order, as `learn_one` would; a gap is no feature.

        Raises
        ------
        InvalidExample
            If a feature or a label cannot be used; nothing has changed then.
        """
        model = self._model
        named = X.set_axis([str(name) for name in X.columns], axis="columns")
        schema = model.schema.knowing(dict.fromkeys(named.columns))
        model.learn(frames.rows(named, schema), y.tolist(), schema)

    def predict_proba_many(self, X: "pd.DataFrame") -> "pd.DataFrame":
        """Return the probability of each label, a column a label, for each row of a data frame."""
        import pandas as pd

        model = self._model
        named = X.set_axis([str(name) for name in X.columns], axis="columns")
        schema = model.answering.schema.knowing(dict.fromkeys(named.columns))
        found = model.probabilities(model.ask(frames.rows(named, schema)))
        return pd.DataFrame(found, index=X.index, columns=pd.Index(model.labels, dtype=object))

    @property
    def _model(self) -> LabelledPredictor:
        if self._begun is None:
            self._begun = _begun(self._get_params())
        return self._begun

    def _asked(self, x: Features) -> PredictionBlock:
        schema = self._model.answering.schema
        return self._model.ask(schema.row(_named(x))[None, :])


def _begun(parameters: dict[str, Any]) -> LabelledPredictor:
    """Return a model that has learned nothing."""
    labels: Iterable[Any] | None = parameters.pop("classes")
    texts = LabelTexts(labels or ())
    declared = None if labels is None else [texts.text(label) for label in texts.labels]
    return LabelledPredictor(config_of(parameters, texts, declared), texts.labels)


def _named(x: Features) -> dict[str, Any]:
    """Return features by names that are text."""
    return {str(name): value for name, value in x.items()}
