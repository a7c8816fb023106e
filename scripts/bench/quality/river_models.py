"""Models of river, which learn one example after the other."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from online_svm.types import Floats, Ints
from scripts.bench.quality.answers import Answers, Method, unknown
from workers.history.backtest.prequential import Published


def of_river(row: str, make: Callable[[int], Any]) -> Method:
    """Return a model of river as a method.

    Parameters
    ----------
    row : str
        Its name in the table.
    make : callable
        Returns the model for a number of classes.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> method = of_river("LR", logistic_regression)
    >>> found = method(X, (X[:, 0] > 0.0).astype(np.int64), 2)["LR"].probabilities
    >>> found[0].tolist(), bool(found[-5:].std() > 0.0)
    ([0.5, 0.5], True)
    """

    def answer(X: Floats, codes: Ints, n_classes: int) -> Answers:
        model, found = make(n_classes), unknown(len(X), n_classes)
        for i, (values, code) in enumerate(zip(X.tolist(), codes.tolist(), strict=True)):
            x = dict(enumerate(values))
            said = model.predict_proba_one(x)
            total = math.fsum(said.values())
            if total > 0.0:
                found[i] = [said.get(y, 0.0) / total for y in range(n_classes)]
            model.learn_one(x, code)
        return {row: Published(np.clip(found, 0.0, 1.0))}

    return answer


def logistic_regression(n_classes: int) -> Any:
    """Return logistic regression on scaled features; one against the rest for more classes."""
    from river import linear_model, multiclass, preprocessing

    model: Any = linear_model.LogisticRegression()
    if n_classes > 2:
        model = multiclass.OneVsRestClassifier(model)
    return preprocessing.StandardScaler() | model


def adaptive_forest(_: int) -> Any:
    """Return the adaptive random forest (ARF)."""
    from river import forest

    return forest.ARFClassifier(seed=0)


def adaptive_tree(_: int) -> Any:
    """Return the Hoeffding adaptive tree."""
    from river import tree

    return tree.HoeffdingAdaptiveTreeClassifier(seed=0)
