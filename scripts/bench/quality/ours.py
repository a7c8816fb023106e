"""Our predictor on the streams of the quality benchmark."""

from typing import Any

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Floats, Ints
from scripts.bench.quality.answers import Answers, unknown
from workers.history.backtest.prequential import HEADLINE, Published, published


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
    classes = tuple(str(code) for code in range(n_classes))
    config = PredictorConfig.model_validate({"classes": classes} | changes)
    answers = OnlinePredictor(config).step_many(X, [str(code) for code in codes.tolist()])
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
