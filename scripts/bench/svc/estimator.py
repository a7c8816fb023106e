"""ProbabilitySVC against SVC(probability=True), and against its named replacement.

Every data set is split several times, in parts that have all classes: half of it, at most 1,000
rows, to fit to, at most 2,000 others to answer. Columns are scaled; parameters are the defaults.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from pandas import DataFrame
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # ships no types

from online_svm import ProbabilitySVC
from online_svm.metrics.scores import auc, brier, log_loss
from online_svm.types import Floats, Ints
from scripts.bench import kept
from scripts.bench.kept import Cell
from scripts.bench.quality.compared import records
from scripts.bench.quality.streams import stream
from scripts.bench.report import Result, Values, check
from scripts.command_line import DataDir, chosen, tell

MAX_FITTED, MAX_ANSWERED = 1000, 2000
TIMED = 4000
"""Rows of the timed fits: with a few hundred, the checks of arguments would dominate."""

OURS, PEER = "ProbabilitySVC", "SVC(probability=True)"
METHODS: dict[str, Callable[[], Any]] = {
    OURS: ProbabilitySVC,
    PEER: lambda: SVC(probability=True, random_state=0),
    "CalibratedClassifierCV": lambda: CalibratedClassifierCV(SVC(), ensemble=False),
}
MAX_TIME_RATIO = 1.25

MEASURES = ["log_loss", "brier", "auc", "milliseconds"]  # of processor time, to fit

SETS = (
    "australian", "bupa", "diabetes", "elec2", "ionosphere", "adult", "bananas", "phishing",
    "shuttle", "web", "agrawal", "random-rbf", "hastie", "circles", "car", "segment", "waveform",
    "wine", "digits", "rings",
)  # fmt: skip
"""On these nothing was chosen: twenty, six of them of more than two classes."""


def run(
    sets: kept.Names = None,
    splits: Annotated[int, typer.Option(min=1, help="Of each data set.")] = 5,
    jobs: kept.Jobs = 1,
    results: kept.ResultsFile = Path("svc.jsonl"),
    data_dir: DataDir = None,
) -> Iterator[Result]:
    """Measure log loss, Brier score, AUC and fit time of ProbabilitySVC against SVC's own.

    The other peer is CalibratedClassifierCV(SVC(), ensemble=False). The AUC of several classes is
    the mean over classes against the rest.
    """
    values = {"stream": chosen("--sets", sets, ",", SETS), "draw": range(splits)}
    cells = kept.cells_of(Cell, data_dir, **values, method=METHODS)
    found = kept.measured_cells(cells, measure, results, jobs)
    if not found.empty:
        yield from compared(found)
    rows = []
    for n_classes in (2, 4):
        tell(f"fit of {TIMED} rows")
        rows.append(fit_time(n_classes))
    checks = [check("fit time / that of SVC", row["ratio"], MAX_TIME_RATIO) for row in rows]
    yield Result(rows, f"milliseconds to fit {TIMED:,} rows", None, checks)


@lru_cache(maxsize=1)
def parts(name: str, seed: int, data_dir: Path | None) -> tuple[Floats, Ints, Floats, Ints]:
    """Return rows and codes to fit to, and others to answer, of one split of a data set."""
    X, codes = stream(name, seed, data_dir)
    most = min(len(codes) // 2, MAX_FITTED)
    rest = min(len(codes) - most, MAX_ANSWERED)
    splitter = StratifiedShuffleSplit(1, train_size=most, test_size=rest, random_state=seed)
    fitted, answered = next(splitter.split(codes, codes))
    scaler = StandardScaler().fit(X[fitted])
    return (
        scaler.transform(X[fitted]),
        codes[fitted],
        scaler.transform(X[answered]),
        codes[answered],
    )


def measure(cell: Cell) -> list[Values]:
    """Run a cell."""
    X, codes, asked, truth = parts(cell.stream, cell.draw, cell.data_dir)
    ProbabilitySVC().fit([[0.0], [1.0]], [0, 1])  # imports what is loaded at first use
    model = METHODS[cell.method]()
    milliseconds = _milliseconds(model, X, codes)
    proba = model.predict_proba(asked)
    columns = range(1, 2) if proba.shape[1] == 2 else np.unique(truth)
    area = float(np.mean([auc(proba[:, k], truth == k) for k in columns]))
    values = log_loss(proba, truth), brier(proba, truth), area, milliseconds
    return [dict(zip(MEASURES, values, strict=True))]


def _milliseconds(model: Any, X: Floats, codes: Ints) -> float:
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", FutureWarning)  # that `probability` goes
        warnings.simplefilter("ignore", UserWarning)  # that a class has fewer rows than folds
        began = time.process_time()
        model.fit(X, codes)
        return 1e3 * (time.process_time() - began)


def fit_time(n_classes: int) -> Values:
    """Return the times of fits in turn, the least of three each, and their ratio."""
    X, y = make_classification(
        TIMED, 10, n_informative=6, n_classes=n_classes, flip_y=0.05, random_state=0
    )
    codes = y.astype(np.int64)
    times = [[_milliseconds(METHODS[name](), X, codes) for name in (OURS, PEER)] for _ in range(3)]
    ours, peer = map(min, zip(*times, strict=True))
    return {"classes": n_classes, "ours": ours, "SVC": peer, "ratio": ours / peer}


def compared(found: DataFrame) -> Iterator[Result]:
    """Yield the means of each set, those of all, on how many ours is better, and the bounds."""
    of_each = found.groupby(["stream", "method"], sort=False)[MEASURES].mean()
    yield Result(records(of_each.reset_index()))
    whole = of_each.groupby("method", sort=False).mean()
    gains = of_each.xs(PEER, level=1) - of_each.xs(OURS, level=1)
    gains.auc *= -1.0
    # Smaller ones are of the same order of the same decision values.
    beside = DataFrame({"better": (gains > 1e-6).sum(), "worse": (gains < -1e-6).sum()})
    ratios = whole.loc[OURS] / whole.loc[PEER]
    checks = [
        check("log loss / that of SVC", ratios.log_loss, 1.0),
        check("Brier score / that of SVC", ratios.brier, 1.0),
        check("AUC / that of SVC", ratios.auc, 0.9995, is_least=True),
    ]
    yield Result(records(whole.reset_index()), f"means of {len(gains)} sets", None, checks)
    yield Result(records(beside.rename_axis("ours than SVC").reset_index()))
