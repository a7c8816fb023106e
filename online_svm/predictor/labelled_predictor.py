"""LabelledPredictor: an online predictor for any label type that answers and learns separately.

Its estimators have the settings of a feed as parameters; `OnlineClassifier` describes each.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from pydantic import ValidationError

from online_svm.config import PredictorConfig, first_error
from online_svm.config.groups import MemberName
from online_svm.errors import InvalidConfig, InvalidInput, warn
from online_svm.predictor.batch import Answers
from online_svm.predictor.changed_kinds import ChangedKind
from online_svm.predictor.frozen_predictor import FrozenPredictor
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit.learner import InlineRefitter
from online_svm.stream.labels import LabelTexts
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.schema import FeatureSchema
from online_svm.svm.machine_parameters import MachineParameters, WeightParameters
from online_svm.types import Bools, Floats, Ints

SETTINGS_FIXED_BY_ESTIMATORS = frozenset(
    {"classes", "horizon", "label_budget", "labels", "maturity"}
)
"""Settings that an estimator fixes itself: its labels are known and come with their rows."""


@dataclass(eq=False, repr=False, kw_only=True)
class FeedParameters:
    """Parameters of each estimator that runs the model of a feed."""

    window: int | None = 2000
    interval_level: float | None = 0.9
    seed: int = 0
    settings: Mapping[str, Any] | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class ClassifierParameters(FeedParameters, WeightParameters, MachineParameters):
    """Parameters of an estimator that trains machines."""

    C: float = 1.0  # by name, like all of these: river's first parameter is `classes`
    kernel: Literal["rbf", "linear"] = "rbf"
    committee: Literal["single", "default"] | tuple[MemberName, ...] | None = None
    refit_every: int | None = None
    on_drift: Literal["report", "refit", "reset"] = "report"


class LabelledPredictor:
    """Answers rows without learning, and learns rows as a feed does: after answering each.

    If a row is asked and then learned, with nothing learned between, its answer is the one a feed
    would give. So the guarantee of a feed holds for learned rows. Asking alone leaves the state
    unchanged.

    `config`: its classes are the texts of the labels.
    `labels`: labels of any hashable type.
    """

    def __init__(self, config: PredictorConfig, labels: Iterable[Any] = ()) -> None:
        self.predictor = OnlinePredictor(config, InlineRefitter(config, rests=True))
        self.texts = LabelTexts(labels)
        self._frozen: FrozenPredictor | None = None

    @property
    def schema(self) -> FeatureSchema:
        """Names or number of the features, once known."""
        return self.predictor.schema

    @property
    def frozen(self) -> FrozenPredictor:
        """The frozen predictor for the present state."""
        if self._frozen is None:
            self._frozen = self.predictor.frozen()
        return self._frozen

    @property
    def labels(self) -> list[Any]:
        """Declared and learned labels, in the order of the columns of probabilities."""
        return [self.texts.label(text) for text in self.predictor.classes]

    def columns_of(self, classes: Iterable[Any]) -> list[int]:
        """Return the index of each class among `labels`."""
        places = {label: i for i, label in enumerate(self.labels)}
        return [places[label] for label in classes]

    def ask(self, X: Floats) -> PredictionBlock:
        """Return the answers to rows that the schema accepted; the state is unchanged.

        Warns of features that come in another kind than was learned.
        """
        _warn(self.frozen.changed_kinds(X))
        return self.frozen.answer(X)

    def learn(self, X: Floats, labels: Sequence[Any], schema: FeatureSchema) -> Answers:
        """Answer and learn labelled rows in order; return the answers.

        Raises InvalidInput if labels are delayed in this feed, or a label cannot be used;
        InvalidExample if a label is not declared, or longer than 256 characters. Warns as `ask`.
        """
        if self.predictor.config.takes_delayed_labels:
            raise InvalidInput(
                "the feed has a horizon: its labels come later, by id; this one can only be asked"
            )
        texts = [self.texts.text(label) for label in labels]
        checked = {text: self.schema.label(text) for text in set(texts)}
        self.texts.add(labels)
        self._frozen = None
        before = set(self.predictor.changed_kinds)
        found = self.predictor.step_many(X, [checked[text] for text in texts], schema=schema)
        _warn(kind for kind in self.predictor.drain_changed_kinds() if kind not in before)
        return found

    def recall(self, X: Floats, labels: Sequence[Any], schema: FeatureSchema) -> None:
        """Let only the memory learn rows, which come before all others."""
        self._frozen = None
        self.predictor.recall(X, [self.texts.text(label) for label in labels], schema)

    def fit_memory(self) -> None:
        """Fit the trees of the memory to all rows."""
        self._frozen = None
        self.predictor.fit_memory()

    def probabilities(self, block: PredictionBlock) -> Floats:
        """Return the probability of each of `labels`, shape (m, K); rows sum to 1.

        Without a label so far, all are equal. The probability of unseen labels is divided among the
        labels learned since the freeze; without such labels, all others are scaled up.
        """
        classes = self.predictor.classes
        if not block.point.shape[1]:
            return np.full((len(block), len(classes)), 1.0 / max(1, len(classes)))
        if block.classes == classes:
            return block.point
        seen, unseen = self._seen(block)
        found = np.zeros((len(block), len(classes)))
        found[:, seen] = block.point[:, :-1]
        found[:, unseen] = block.point[:, -1:] / max(1, len(unseen))
        whole = found.sum(axis=1, keepdims=True)
        equal = np.full_like(found, 1.0 / len(classes))
        np.divide(found, whole, out=equal, where=whole > 0.0)
        return equal

    def intervals(self, block: PredictionBlock) -> Floats:
        """Return the lower and upper probability of each of `labels`, shape (m, K, 2).

        Each interval contains the probability from `probabilities`.
        """
        classes = self.predictor.classes
        found = np.tile([0.0, 1.0], (len(block), len(classes), 1))
        if not block.point.shape[1]:
            return found
        if block.classes == classes:
            return np.stack([block.lower, block.upper], axis=2)
        seen, unseen = self._seen(block)
        found[:, seen, 0], found[:, seen, 1] = block.lower[:, :-1], block.upper[:, :-1]
        found[:, unseen, 1] = block.upper[:, -1:]
        found[:, :, 1] = np.maximum(found[:, :, 1], self.probabilities(block))
        return found

    def sets(self, block: PredictionBlock) -> Bools:
        """Return whether each of `labels` is in the set of a row, shape (m, K).

        Unseen labels are in it together. The most probable label always is; without a label so far,
        all are.

        Raises InvalidInput without `set_coverage`.
        """
        if block.sets is None:
            raise InvalidInput(
                "set_coverage: without it answers have no sets; settings={'set_coverage': 0.9}"
            )
        classes = self.predictor.classes
        if block.classes == classes:
            return block.sets
        found = np.ones((len(block), len(classes)), dtype=bool)
        if not block.point.shape[1]:
            return found
        seen, unseen = self._seen(block)
        found[:, seen], found[:, unseen] = block.sets[:, :-1], block.sets[:, -1:]
        found[np.arange(len(block)), self.probabilities(block).argmax(axis=1)] = True
        return found

    def weighed(self, block: PredictionBlock) -> Floats:
        """Return the probabilities multiplied by the class weights of `class_weight`."""
        found, weights = self.probabilities(block), self.frozen.class_weights
        if weights is None or block.status == "warming":
            return found
        if block.classes == self.predictor.classes:
            return found * weights
        seen, _ = self._seen(block)
        found[:, seen] *= weights[:-1]
        return found

    def best(self, block: PredictionBlock) -> Ints:
        """Return the index of the predicted label in `labels` for each row, shape (m,).

        It maximises the probability, weighted if `class_weight` is set.
        """
        best: Ints = self.weighed(block).argmax(axis=1).astype(np.int64, copy=False)
        return best

    def _seen(self, block: PredictionBlock) -> tuple[list[int], list[int]]:
        """Return the indices of the labels known to the block's model, and of the others."""
        classes = self.predictor.classes
        seen = [classes.index(label) for label in block.classes if label is not None]
        return seen, [i for i in range(len(classes)) if i not in seen]

    @classmethod
    def restored(cls, config: PredictorConfig, labels: Iterable[Any], snapshot: bytes) -> Self:
        """Return a predictor that continues from a snapshot.

        Raises InvalidSnapshot if it is damaged, or the configuration differs.
        """
        restored = cls(config, labels)
        restored.predictor.restore(snapshot)
        return restored

    def __getstate__(self) -> tuple[PredictorConfig, list[Any], bytes]:
        return self.predictor.config, self.texts.labels, self.predictor.snapshot()

    def __setstate__(self, state: tuple[PredictorConfig, list[Any], bytes]) -> None:
        self.__dict__.update(self.restored(*state).__dict__)


def _warn(changed: Iterable[ChangedKind]) -> None:
    for kind in changed:
        warn(kind.words)


def parameters_of(
    config: PredictorConfig, names: Iterable[str], labels: LabelTexts
) -> dict[str, Any]:
    """Return the estimator parameters, of these names, that describe a configuration.

    The inverse of `config_of`.
    """
    flat = {name: getattr(config, name) for name in names if name != "settings"}
    if isinstance(flat.get("class_weight"), dict):
        flat["class_weight"] = {labels.label(k): w for k, w in flat["class_weight"].items()}
    changed = config.model_dump(exclude_defaults=True)
    further = {
        k: v for k, v in changed.items() if k not in flat and k not in SETTINGS_FIXED_BY_ESTIMATORS
    }
    return flat | {"settings": further or None}


def config_of(
    parameters: Mapping[str, Any], labels: LabelTexts, classes: Sequence[str] | None
) -> PredictorConfig:
    """Return the configuration that an estimator's parameters describe.

    `parameters`: settings by name, `class_weight` by label; `settings` has further ones.
    `classes`: the declared labels as texts.

    Raises InvalidConfig if a parameter is unknown, not allowed, given twice, or invalid.
    """
    flat = {name: _plain(value) for name, value in parameters.items() if name != "settings"}
    further = dict(parameters.get("settings") or {})
    for name in sorted(further):
        if name in SETTINGS_FIXED_BY_ESTIMATORS or name in flat:
            why = "is a parameter of its own" if name in flat else "is none of an estimator"
            raise InvalidConfig(f"settings: {name} {why}")
    if isinstance(flat.get("class_weight"), Mapping):
        flat["class_weight"] = {labels.text(k): w for k, w in flat["class_weight"].items()}
    try:
        return PredictorConfig.model_validate(further | flat | {"classes": classes})
    except ValidationError as error:
        raise InvalidConfig(first_error(error)) from None


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
