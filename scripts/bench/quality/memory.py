"""Long memory: a feed with and without it, and boosted trees retrained nightly on all rows."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # ships no types

from online_svm import OnlineClassifier
from online_svm.types import Floats, Ints
from scripts.bench import kept
from scripts.bench.report import Result, Values, check
from scripts.command_line import DataDir, chosen
from workers.push.datasets import data_directory

Table = tuple[pd.DataFrame, Ints]

RETRAINED_EVERY = 2_000  # rows
MIN_PROBABILITY = 1e-6
END = 10_000  # last rows of a stream, which are shown apart
MAX_RATIO = {"median": 1.5, "worst": 2.0}
"""Goals of the processor time with memory over the time without."""

_ADULT = "age work weight education years marital job relation race sex gain loss hours land y"


def _thinned(rows: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return `count` rows at equal distances."""
    return rows.iloc[np.linspace(0, len(rows) - 1, count).astype(int)].reset_index(drop=True)


def _employment(folder: Path) -> Table:
    reference, analysis, target = (
        pd.read_parquet(folder / f"employment_MA_{part}.pq")
        for part in ("reference", "analysis", "analysis_target")
    )
    rows = pd.concat([reference, analysis.merge(target, on="id")], ignore_index=True)
    rows = _thinned(rows, 69_000)
    given = ["id", "year", "employed", "prediction", "predicted_probability"]
    features = rows.drop(columns=[name for name in given if name in rows])
    return features.astype(float), rows.employed.to_numpy().astype(np.int64)


def _flights(folder: Path) -> Table:
    rows = pd.read_csv(folder / "flights.csv.zip").dropna(subset=["arr_delay"])
    rows = rows.sort_values(["month", "day", "sched_dep_time"], kind="stable")
    rows = _thinned(rows, 55_000)
    names = ["month", "day", "sched_dep_time", "carrier", "origin", "dest", "distance"]
    dates = pd.to_datetime(rows[["year", "month", "day"]])
    late = (rows.arr_delay > 15).to_numpy().astype(np.int64)
    return rows[names].assign(weekday=dates.dt.dayofweek), late


def _adult(folder: Path) -> Table:
    rows = pd.read_csv(
        folder / "adult.data.gz", names=_ADULT.split(), skipinitialspace=True, na_values="?"
    )
    return rows.drop(columns="y"), (rows.y == ">50K").to_numpy().astype(np.int64)


def _of_file(name: str) -> Callable[[Path], Table]:
    def read(folder: Path) -> Table:
        header = 0 if name == "elec" else None
        rows = pd.read_csv(folder / f"{name}.csv.gz", header=header)
        features = rows[rows.columns[:-1]].astype(float).rename(columns=str)
        return features, np.unique(rows[rows.columns[-1]], return_inverse=True)[1]

    return read


def _law(X: Floats, seed: int) -> Floats:
    """Return the log-odds of waves and a product of features."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(12, X.shape[1])) * (rng.random((12, X.shape[1])) < 0.3)
    phase, height = rng.normal(size=12), rng.normal(size=12)
    waves = 1.1 * (np.sin(X @ W.T + phase) * height).sum(axis=1)
    return np.asarray(waves + np.sign(X[:, 0] * X[:, 1]) * rng.choice([-1, 1]))


def _made(share: Callable[[Floats], Any]) -> Callable[[Path], Table]:
    """Return a stream by two laws; `share` gives the variance that the second has at each time.

    Times are in [0, 1).
    """

    def read(_: Path) -> Table:
        rng = np.random.default_rng(7)
        X, of_second = rng.normal(size=(30_000, 10)), share(np.arange(30_000) / 30_000)
        odds = np.sqrt(1.0 - of_second) * _law(X, 1010) + np.sqrt(of_second) * _law(X, 1020)
        y = rng.random(30_000) < 1.0 / (1.0 + np.exp(-odds))
        return pd.DataFrame(X).rename(columns=str), y.astype(np.int64)

    return read


STREAMS: dict[str, Callable[[Path], Table]] = {
    "employment": _employment, "adult": _adult, "stationary": _made(np.zeros_like),
    "transient-chessboard": _of_file("transient-chessboard"), "flights": _flights,
    "elec": _of_file("elec"), "abrupt": _made(lambda time: time >= 0.5),
    "slow-drift": _made(lambda time: 0.5 - 0.5 * np.cos(np.pi * time)),
    "a-b-a-b": _made(lambda time: time * 8 // 1 % 2),
}  # fmt: skip


def run(
    streams: kept.Names = None,
    examples: Annotated[
        int | None, typer.Option(min=3_000, help="Of each stream, at most; default all.")
    ] = None,
    data_dir: DataDir = None,
) -> Iterator[Result]:
    """Measure what long memory gains, against a peer that is retrained on all rows.

    Log loss over all rows, and over the last 10,000: of a feed with and without memory, and of
    scikit-learn's boosted trees, retrained every 2,000 rows on all rows so far. The two feeds'
    processor times include their refits.
    """
    found = list[Values]()
    for name in chosen("--streams", streams, ",", tuple(STREAMS)):
        X, y = STREAMS[name](data_directory(data_dir))
        with threadpool_limits(1):
            found.append({"stream": name} | measured(X[:examples], y[:examples]))
        yield Result([found[-1]])
    ratios = [row["time_ratio"] for row in found]
    worst, median = max(ratios), float(np.median(ratios))
    checks = [check("time with memory, median", median, MAX_RATIO["median"])]
    yield Result((), checks=[*checks, check("time, worst", worst, MAX_RATIO["worst"])])


def measured(X: pd.DataFrame, y: Ints) -> Values:
    """Return the losses and the ratio of processor times on a stream."""
    began = time.process_time()
    without = OnlineClassifier(memory=0).progressive_proba(X, y, np.unique(y))
    between = time.process_time()
    memory = OnlineClassifier().progressive_proba(X, y, np.unique(y))
    ratio = (time.process_time() - between) / (between - began)
    losses = {"with": memory, "without": without, "nightly": nightly(X, y)}
    found: Values = {"rows": len(y)}
    for title, rows in (("", slice(None)), ("_at_end", slice(-END, None))):
        found |= {name + title: log_loss(p[rows], y[rows]) for name, p in losses.items()}
    return found | {"time_ratio": ratio}


def columns_of(X: pd.DataFrame) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the features as scikit-learn's trees take them, and which of them are categories."""
    is_text = np.array([not pd.api.types.is_numeric_dtype(X[name]) for name in X])
    table: NDArray[Any] = np.column_stack([
        X[name].astype("category").cat.codes.replace(-1, np.nan) if text else X[name]
        for name, text in zip(X, is_text, strict=True)
    ])  # fmt: skip
    return table, is_text


def nightly(X: pd.DataFrame, y: Ints, late: int = 0) -> Floats:
    """Return the answers of boosted trees that are retrained on all rows so far.

    `late`: answers that follow an example's own before its label comes.
    """
    table, is_text = columns_of(X)
    n_classes = int(y.max()) + 1
    p = np.full((len(y), n_classes), 1.0 / n_classes)
    for at in range(late + RETRAINED_EVERY, len(y), RETRAINED_EVERY):
        model = HistGradientBoostingClassifier(categorical_features=is_text, random_state=0)
        model.fit(table[: at - late], y[: at - late])
        rows = slice(at, at + RETRAINED_EVERY)
        p[rows] = 0.0
        p[rows, model.classes_] = model.predict_proba(table[rows])
    return p


def log_loss(p: Floats, y: Ints) -> float:
    """Return the mean log loss."""
    return float(-np.log(np.clip(p[np.arange(len(y)), y], MIN_PROBABILITY, 1.0)).mean())
