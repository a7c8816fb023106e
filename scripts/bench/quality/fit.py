"""`OnlineClassifier.fit` against boosted trees, on rows that neither has learned."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # ships no types

from online_svm import OnlineClassifier
from online_svm.types import Floats
from scripts.bench import kept
from scripts.bench.quality import memory
from scripts.bench.quality.memory import Table, log_loss
from scripts.bench.quality.streams import stream
from scripts.bench.report import Result, Values, check
from scripts.command_line import DataDir, chosen
from workers.push.datasets import data_directory

TESTED = 4  # one row in so many is kept for the test
MAX_RATIO = 3.0
"""Goal of the time of `fit` over that of the boosted trees, on adult."""


def _of_stream(name: str) -> Callable[[Path], Table]:
    def read(folder: Path) -> Table:
        X, y = stream(name, 0, folder)
        return pd.DataFrame(X).rename(columns=str), y

    return read


SETS: dict[str, Callable[[Path], Table]] = {
    "adult": memory.STREAMS["adult"],
    **{name: _of_stream(name) for name in ("car", "wine", "segment")},
}


def run(streams: kept.Names = None, data_dir: DataDir = None) -> Iterator[Result]:
    """Measure `fit` on data sets without an order, against scikit-learn's boosted trees.

    Three quarters of the rows, drawn, are learned; log loss on the others, and processor time of
    the two fits.
    """
    found = list[Values]()
    for name in chosen("--streams", streams, ",", tuple(SETS)):
        X, y = SETS[name](data_directory(data_dir))
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X.iloc[order].reset_index(drop=True), y[order]
        tested = np.arange(len(y)) % TESTED == 0
        columns, is_text = memory.columns_of(X)
        peer = HistGradientBoostingClassifier(categorical_features=is_text, random_state=0)
        with threadpool_limits(1):
            ours = _fitted(OnlineClassifier(), X, y, tested)
            theirs = _fitted(peer, columns, y, tested)
        losses = {"fit": log_loss(ours[0], y[tested]), "trees": log_loss(theirs[0], y[tested])}
        found.append({"set": name, "rows": len(y)} | losses | {"time_ratio": ours[1] / theirs[1]})
        yield Result([found[-1]])
    of_adult = [row["time_ratio"] for row in found if row["set"] == "adult"]
    yield Result((), checks=[check("time of fit on adult", r, MAX_RATIO) for r in of_adult])


def _fitted(
    model: Any, X: pd.DataFrame | NDArray[Any], y: Any, tested: Any
) -> tuple[Floats, float]:
    """Return the probabilities of the tested rows, and the processor time of the fit."""
    began = time.process_time()
    model.fit(X[~tested], y[~tested])
    seconds = time.process_time() - began
    return np.asarray(model.predict_proba(X[tested])), seconds
