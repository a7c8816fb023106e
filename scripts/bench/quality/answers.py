"""Answers of a method of the quality benchmark, the steps that all share, and our own answers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.predictor.batch_result import Answers as PredictorAnswers
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Floats, Ints
from workers.history.backtest.prequential import HEADLINE, Published, published

Answers = dict[str, Published]
"""The published probabilities of a run by the name of their row, of each example."""

Method = Callable[[Floats, Ints, int], Answers]
"""Answers each row before it learns its code, one of 0 ... n_classes - 1."""

EVERY = 250
"""Examples between two fits; the first as many are answered, but not scored, of any method."""

WINDOW = 2000
"""Examples that a fit may use: the last ones."""


def unknown(n: int, n_classes: int) -> Floats:
    """Return what a method says while it knows nothing: all classes alike.

    Examples
    --------
    >>> unknown(1, 4)
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    return np.full((n, n_classes), 1.0 / n_classes)


def answers_of(X: Floats, codes: Ints, n_classes: int, **changes: Any) -> PredictorAnswers:
    """Return what the predictor says of examples of declared classes, all of them labelled.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    codes : ndarray of shape (n,)
        The classes are their numbers as text.
    n_classes : int
    **changes
        Settings other than the default ones.

    Examples
    --------
    >>> [answer.status for answer in answers_of(np.zeros((3, 1)), np.array([0, 1, 0]), 2)]
    ['warming']
    """
    classes = tuple(str(code) for code in range(n_classes))
    config = PredictorConfig.model_validate({"classes": classes} | changes)
    return OnlinePredictor(config).step_many(X, [classes[code] for code in codes.tolist()])


def ours(X: Floats, codes: Ints, n_classes: int, /, row: str = "", **changes: Any) -> Answers:
    """Return every published probability for the default settings, but for some changes.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    codes : ndarray of shape (n,)
    n_classes : int
    row : str
        Name of the headline in the table; others are "row: name".
    **changes
        Settings other than the default ones.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> list(ours(X, (X[:, 0] > 0.0).astype(np.int64), 2, row="small", window=40))[:2]
    ['small', 'small: venn']
    """
    answers = answers_of(X, codes, n_classes, **changes)
    found: Answers = {}
    for block in answers:
        if isinstance(block, PredictionBlock) and block.status == "ok":
            for name, said in published(block).items():
                whole = found.setdefault(_named(row, name), _unanswered(said, len(X), n_classes))
                _fill(whole, block.n, said)  # every example is labelled: n numbers them
    return found or {row: Published(unknown(len(X), n_classes))}


def _named(row: str, name: str) -> str:
    return row if name == HEADLINE else f"{row}: {name}"


def _unanswered(said: Published, n: int, n_classes: int) -> Published:
    intervals = None if said.intervals is None else np.tile([0.0, 1.0], (n, n_classes, 1))
    return Published(unknown(n, n_classes), intervals)


def _fill(whole: Published, places: Ints, said: Published) -> None:
    whole.probabilities[places] = said.probabilities
    if whole.intervals is not None:
        assert said.intervals is not None
        whole.intervals[places] = said.intervals
