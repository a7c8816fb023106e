"""Real streams, and streams that others made, as our predictor answers them."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.scored_rows import ScoredRows
from online_svm.types import Floats, Ints
from scripts.bench.monitors.worlds import Stream
from scripts.bench.quality.streams import stream

REAL: dict[str, int | None] = {"2cdt": 400, "2cht": 400, "moving-squares": None, "elec2": None}
"""Examples before the first change, where there is a moment: 2cdt and 2cht take a step every 400
examples, moving-squares moves at all times, and of Elec2 nobody knows."""


@lru_cache(maxsize=1)
def answered(name: str) -> Stream:
    """Return the first 10,000 examples of a stream with the answers of the predictor.

    It has the default settings, but for one machine in place of the committee, which takes a
    fraction of the time.

    Raises
    ------
    DataNotFound
        If the file of the stream is not there.
    """
    X, codes = stream(name, seed=0)
    return Stream.of(scored(X, codes))


def scored(X: Floats, codes: Ints) -> ScoredRows:
    """Return the rows that the monitors of a feed see, of all models together.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    codes : ndarray of shape (n,)
        At most 10 classes, which are declared.
    """
    classes = tuple(str(code) for code in range(int(codes.max()) + 1))
    config = PredictorConfig(classes=classes, committee="single", monitors="off")
    answers = OnlinePredictor(config).step_many(X, [classes[code] for code in codes.tolist()])
    return _joined(
        [
            ScoredRows.of(block, codes[block.n], X=X[block.n])
            for block in answers
            if isinstance(block, PredictionBlock) and block.status == "ok"
        ]
    )


def _joined(parts: list[ScoredRows]) -> ScoredRows:
    """Return rows of several models as of the last: no monitor asks which model answered."""

    def whole(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])

    names = ("n", "columns", "point", "lower", "upper", "venn_point", "scores", "category", "X")
    return replace(parts[-1], **{name: whole(name) for name in names})
