"""The models of river's published benchmark with its settings, three of CapyMOA, and ours.

Each is a river classifier, made from the labels of a stream.
"""

# mypy: allow-untyped-calls
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from river import (
    base,
    compat,
    dummy,
    ensemble,
    forest,
    linear_model,
    multiclass,
    naive_bayes,
    neighbors,
    optim,
    preprocessing,
    tree,
)
from sklearn.linear_model import SGDClassifier

from online_svm.river import OnlineClassifier
from online_svm.types import Floats
from workers.errors import BadConfiguration

Make = Callable[[Sequence[Any]], Any]  # Any: river ships no types

LEARNING_RATE = 0.005  # as in river's benchmark
SEED = 42  # as in river's benchmark, which gives none to Streaming Random Patches

OURS = "online-svm"
LOGISTIC = "river Logistic regression"


def _scaled(model: Any) -> Any:
    return preprocessing.StandardScaler() | model


def _logistic(labels: Sequence[Any]) -> Any:
    """Return logistic regression; for more than two classes, one against the rest."""
    model: Any = linear_model.LogisticRegression(optimizer=optim.SGD(LEARNING_RATE))
    return _scaled(model if len(labels) == 2 else multiclass.OneVsRestClassifier(model))


def _alma(labels: Sequence[Any]) -> Any:
    _check_two(labels)
    return _scaled(linear_model.ALMAClassifier())


def _sgd(labels: Sequence[Any]) -> Any:
    _check_two(labels)
    sgd = SGDClassifier(
        loss="log_loss",
        learning_rate="constant",
        eta0=LEARNING_RATE,
        penalty=None,
        random_state=SEED,
    )
    return _scaled(compat.SKL2RiverClassifier(sgd, classes=[False, True]))


def _check_two(labels: Sequence[Any]) -> None:
    if len(labels) != 2:
        raise BadConfiguration("for two classes only")


def _four() -> list[Any]:
    """Return the members of river's voting and stacking classifiers."""
    return [
        _scaled(linear_model.SoftmaxRegression()),
        naive_bayes.GaussianNB(),
        tree.HoeffdingTreeClassifier(),
        _scaled(neighbors.KNNClassifier()),
    ]


def _of_trees(make: Any, _: Sequence[Any]) -> Any:
    return make(tree.HoeffdingTreeClassifier(), seed=SEED)


class OfCapymoa(base.Classifier):
    """A classifier of CapyMOA with its own defaults, for river: its class and all labels."""

    _multiclass = True

    def __init__(self, name: str, labels: Sequence[Any]) -> None:
        self.name, self.labels = name, labels
        self._make = getattr(_capymoa("classifier"), name)
        self._learner: Any = None
        self._codes = {label: code for code, label in enumerate(labels)}

    def learn_one(self, x: dict[Any, float], y: Any) -> None:
        """Learn an example."""
        schema, values = self._given(x)
        labelled = _capymoa("core").LabeledInstance
        self._learner.train(labelled.from_array(schema, values, self._codes[y]))

    def predict_proba_one(self, x: dict[Any, float], **_: Any) -> dict[Any, float]:
        """Return the probability of each label; empty where the learner gives no vote."""
        instance = _capymoa("core").Instance.from_array(*self._given(x))
        found = self._learner.predict_proba(instance)
        return {} if found is None else dict(zip(self.labels, found.tolist(), strict=False))

    def _given(self, x: dict[Any, float]) -> tuple[Any, Floats]:
        """Return schema and values of an example; the first one has the names of the features."""
        if self._learner is None:
            names, classes = list(map(str, x)), list(map(str, range(len(self.labels))))
            make_schema = _capymoa("stream").Schema.from_custom
            self._learner = self._make(
                schema=make_schema([*names, "class"], "class", {"class": classes})
            )
        return self._learner.schema, np.array(list(x.values()), dtype=np.float64)


def _capymoa(module: str) -> Any:
    try:
        return import_module(f"capymoa.{module}")
    except ImportError:
        raise BadConfiguration("needs Java, and: pip install capymoa") from None


LIGHT: dict[str, Make] = {
    OURS: lambda _: OnlineClassifier(),
    "river [baseline] Last Class": lambda _: dummy.NoChangeClassifier(),
    LOGISTIC: _logistic,
    "river ALMA": _alma,
    "river Naive Bayes": lambda _: naive_bayes.GaussianNB(),
    "river Hoeffding Tree": lambda _: tree.HoeffdingTreeClassifier(),
    "river Hoeffding Adaptive Tree": lambda _: tree.HoeffdingAdaptiveTreeClassifier(seed=SEED),
}
"""Ours, and the models of river that take less than half a millisecond an example."""

HEAVY: dict[str, Make] = {
    "river k-Nearest Neighbors": lambda _: _scaled(neighbors.KNNClassifier()),
    "river sklearn SGDClassifier": _sgd,
    "river Adaptive Random Forest": lambda _: forest.ARFClassifier(seed=SEED),
    "river Aggregated Mondrian Forest": lambda _: forest.AMFClassifier(seed=SEED),
    "river Voting": lambda _: ensemble.VotingClassifier(_four()),
    "river ADWIN Bagging": partial(_of_trees, ensemble.ADWINBaggingClassifier),
    "river AdaBoost": partial(_of_trees, ensemble.AdaBoostClassifier),
    "river BOLE": partial(_of_trees, ensemble.BOLEClassifier),
    "river Bagging": lambda _: ensemble.BaggingClassifier(
        tree.HoeffdingAdaptiveTreeClassifier(bootstrap_sampling=False), seed=SEED
    ),
    "river Streaming Random Patches": lambda _: ensemble.SRPClassifier(seed=SEED),
    "river Leveraging Bagging": partial(_of_trees, ensemble.LeveragingBaggingClassifier),
    "river Stacking": lambda _: ensemble.StackingClassifier(
        _four(), meta_classifier=forest.ARFClassifier(seed=SEED)
    ),
    "capymoa ARF": partial(OfCapymoa, "AdaptiveRandomForestClassifier"),
    "capymoa SRP": partial(OfCapymoa, "StreamingRandomPatches"),
    "capymoa SGBT": partial(OfCapymoa, "StreamingGradientBoostedTrees"),
}

MODELS = LIGHT | HEAVY

WITHOUT_PROBABILITIES = ("river [baseline] Last Class", "river Voting")
"""Models whose answer is a label; they have no log loss."""
