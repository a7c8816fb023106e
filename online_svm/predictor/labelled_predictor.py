"""LabelledPredictor: an online predictor in its caller's labels, asked and taught apart."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from pydantic import ValidationError

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidConfig, InvalidInput, InvalidSnapshot
from online_svm.predictor.answering_state import AnsweringState
from online_svm.predictor.batch_result import Answers
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit.inline import InlineRefitter
from online_svm.storage.saved_model import configuration
from online_svm.stream.label_texts import LabelTexts
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.schema import FeatureSchema
from online_svm.types import Floats, Ints

UNFIT = frozenset({"classes", "given_answers", "horizon", "labels", "maturity"})
"""Settings that an estimator does not take: it has its labels, and they come with their rows."""


class LabelledPredictor:
    """Answers rows without learning them, and learns rows as a feed does: each answered first.

    The answer to a row that is asked and then learned, with nothing learned between, is the answer
    that it would have in a feed. So asking and learning apart keep a feed's guarantee for the rows
    that are learned. What is only asked leaves no trace.

    Parameters
    ----------
    config : PredictorConfig
        Its classes are the texts of the labels.
    labels : iterable, optional
        Labels of any hashable type.

    Attributes
    ----------
    predictor : OnlinePredictor
    texts : LabelTexts

    Examples
    --------
    >>> config = PredictorConfig(classes=("false", "true"), refit_every=10)
    >>> model = LabelledPredictor(config, [False, True])
    >>> X = np.array([[float(i % 2)] for i in range(40)])
    >>> _ = model.learn(X, [i % 2 == 1 for i in range(40)], model.schema.of_example(X[0]))
    >>> model.labels[model.best(model.ask(X[1:2]))[0]]
    True
    """

    def __init__(self, config: PredictorConfig, labels: Iterable[Any] = ()) -> None:
        self.predictor = OnlinePredictor(config, InlineRefitter(config, rests=True))
        self.texts = LabelTexts(labels)
        self._answering: AnsweringState | None = None

    @property
    def schema(self) -> FeatureSchema:
        """What is known of the features."""
        return self.predictor.schema

    @property
    def answering(self) -> AnsweringState:
        """What answers now."""
        if self._answering is None:
            self._answering = self.predictor.answering_state()
        return self._answering

    @property
    def labels(self) -> list[Any]:
        """Labels declared or learned so far, in the order of the columns of probabilities."""
        return [self.texts.label(text) for text in self.predictor.classes]

    def ask(self, X: Floats) -> PredictionBlock:
        """Return the answers to rows that the schema accepted; nothing changes."""
        return self.answering.answer(X)

    def learn(self, X: Floats, labels: Sequence[Any], schema: FeatureSchema) -> Answers:
        """Answer and learn labelled rows in order; return the answers.

        Raises
        ------
        InvalidInput
            If labels come later here, or one of these cannot be used.
        InvalidExample
            If a label is not one of the declared ones, or longer than 256 characters.
        """
        if self.predictor.late is not None:
            raise InvalidInput(
                "the feed has a horizon: its labels come later, by id; this one can only be asked"
            )
        texts = [self.texts.text(label) for label in labels]
        checked = {text: self.schema.label(text) for text in set(texts)}
        self.texts.add(labels)
        self._answering = None
        return self.predictor.step_many(X, [checked[text] for text in texts], schema=schema)

    def probabilities(self, block: PredictionBlock) -> Floats:
        """Return the probability of each of `labels`, shape (m, K); rows sum to 1.

        While there is no model, all are equal. What the model has for labels that it had not met
        goes to those learned since it was frozen; if there are none, to all in proportion.
        """
        classes = self.predictor.classes
        if block.status == "warming":
            return np.full((len(block), len(classes)), 1.0 / max(1, len(classes)))
        if block.classes == classes:
            return block.point
        met, unmet = self._met(block)
        found = np.zeros((len(block), len(classes)))
        found[:, met] = block.point[:, :-1]
        found[:, unmet] = block.point[:, -1:] / max(1, len(unmet))
        whole = found.sum(axis=1, keepdims=True)
        equal = np.full_like(found, 1.0 / len(classes))
        np.divide(found, whole, out=equal, where=whole > 0.0)
        return equal

    def intervals(self, block: PredictionBlock) -> Floats:
        """Return the lower and upper probability of each of `labels`, shape (m, K, 2).

        Each holds the probability that `probabilities` gives.
        """
        classes = self.predictor.classes
        found = np.tile([0.0, 1.0], (len(block), len(classes), 1))
        if block.status == "warming":
            return found
        if block.classes == classes:
            return np.stack([block.lower, block.upper], axis=2)
        met, unmet = self._met(block)
        found[:, met, 0], found[:, met, 1] = block.lower[:, :-1], block.upper[:, :-1]
        found[:, unmet, 1] = block.upper[:, -1:]
        found[:, :, 1] = np.maximum(found[:, :, 1], self.probabilities(block))
        return found

    def weighed(self, block: PredictionBlock) -> Floats:
        """Return the probabilities, each times the weight that `class_weight` gives its label."""
        found, weights = self.probabilities(block), self.answering.class_weights
        if weights is None or block.status == "warming":
            return found
        if block.classes == self.predictor.classes:
            return found * weights
        met, _ = self._met(block)
        found[:, met] *= weights[:-1]
        return found

    def best(self, block: PredictionBlock) -> Ints:
        """Return the place of the predicted one of `labels` for each row, shape (m,).

        It has the largest probability, or where `class_weight` is set, the largest weighed one.
        """
        best: Ints = self.weighed(block).argmax(axis=1).astype(np.int64, copy=False)
        return best

    def _met(self, block: PredictionBlock) -> tuple[list[int], list[int]]:
        """Return the places of the labels that the model of a block knows, and of the others."""
        classes = self.predictor.classes
        met = [classes.index(label) for label in block.classes if label is not None]
        return met, [i for i in range(len(classes)) if i not in met]

    @classmethod
    def restored(cls, config: PredictorConfig, labels: Iterable[Any], snapshot: bytes) -> Self:
        """Return the one that goes on from a snapshot.

        Raises
        ------
        InvalidSnapshot
            If it is damaged, or of another configuration.
        """
        restored = cls(config, labels)
        restored.predictor.restore(snapshot)
        return restored

    def __getstate__(self) -> tuple[PredictorConfig, list[Any], bytes]:
        return self.predictor.config, self.texts.labels, self.predictor.snapshot()

    def __setstate__(self, state: tuple[PredictorConfig, list[Any], bytes]) -> None:
        self.__dict__.update(self.restored(*state).__dict__)


def stored_config(snapshot: bytes) -> PredictorConfig:
    """Return the configuration of a predictor from its snapshot.

    Raises
    ------
    InvalidSnapshot
        If it is damaged, or this version has other settings.
    """
    stored = configuration(snapshot)
    try:
        return PredictorConfig.model_validate(stored)
    except ValidationError as error:
        raise InvalidSnapshot(f"made by another version: {_explained(error)}") from None


def parameters_of(
    config: PredictorConfig, names: Iterable[str], labels: LabelTexts
) -> dict[str, Any]:
    """Return the parameters of these names that mean a configuration; see `config_of`.

    Examples
    --------
    >>> parameters_of(PredictorConfig(window=500, taxonomy="class"), ["C", "window"], LabelTexts())
    {'C': 1.0, 'window': 500, 'settings': {'taxonomy': 'class'}}
    """
    flat = {name: getattr(config, name) for name in names if name != "settings"}
    if isinstance(flat.get("class_weight"), dict):
        flat["class_weight"] = {labels.label(k): w for k, w in flat["class_weight"].items()}
    changed = config.model_dump(exclude_defaults=True)
    further = {k: v for k, v in changed.items() if k not in flat and k not in UNFIT}
    return flat | {"settings": further or None}


def config_of(
    parameters: Mapping[str, Any], labels: LabelTexts, classes: Sequence[str] | None
) -> PredictorConfig:
    """Return the configuration that the parameters of an estimator mean.

    Parameters
    ----------
    parameters : mapping
        Settings by name, `class_weight` by label; `settings` has further ones.
    labels : LabelTexts
    classes : sequence of str, optional
        The declared labels as texts.

    Raises
    ------
    InvalidConfig
        If one is unknown, not a parameter, given twice, or cannot work.

    Examples
    --------
    >>> config_of({"window": 500, "settings": {"taxonomy": "class"}}, LabelTexts(), None).window
    500
    >>> config_of({"window": 5, "settings": None}, LabelTexts(), None)
    Traceback (most recent call last):
    online_svm.errors.InvalidConfig: window: Input should be greater than or equal to 10
    """
    flat = {name: _plain(value) for name, value in parameters.items() if name != "settings"}
    further = dict(parameters.get("settings") or {})
    for name in sorted(further):
        if name in UNFIT or name in flat:
            why = "is a parameter of its own" if name in flat else "is none of an estimator"
            raise InvalidConfig(f"settings: {name} {why}")
    if isinstance(flat.get("class_weight"), Mapping):
        flat["class_weight"] = {labels.text(k): w for k, w in flat["class_weight"].items()}
    try:
        return PredictorConfig.model_validate(further | flat | {"classes": classes})
    except ValidationError as error:
        raise InvalidConfig(_explained(error)) from None


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _explained(error: ValidationError) -> str:
    """Return the first thing that is wrong with settings, as one line."""
    first = error.errors(include_url=False)[0]
    where, what = ".".join(map(str, first["loc"][:1])), str(first["msg"])
    what = what.removeprefix("Value error, ")
    return f"{where}: {what}" if where else what
