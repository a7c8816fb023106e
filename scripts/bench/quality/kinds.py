"""Quality on rows as they come: categories, numbers and gaps, beside others and their coding.

Ours has the rows as they are and no option. The others are told which columns are categories, and
have the coding that their users give them. The files are in an order, or have none that means
anything: a row is drawn by `numpy.random.default_rng(seed).permutation`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC

from online_svm.stream.cells import cell, is_number
from online_svm.types import Bools, Floats, Ints
from scripts.bench.kept import (
    Jobs,
    Names,
    NamesWithCommas,
    ResultsFile,
    StreamCell,
    measured_cells,
    stream_cells,
)
from scripts.bench.quality.methods import (
    EVERY,
    Peer,
    calibrated,
    of_river,
    ours,
    plain_logistic,
    rolling,
)
from scripts.bench.quality.run import tell_missing, timed
from scripts.bench.quality.stream_quality import MethodRun, Quality, qualities
from scripts.bench.report import Result
from scripts.command_line import chosen
from scripts.tables import printed
from workers.cli.common import DataDir
from workers.errors import BadConfiguration
from workers.history.backtest.prequential import HEADLINE, Published
from workers.plural import counted
from workers.push.datasets import ADULT_COLUMNS, CAR_ORDERS, fields
from workers.push.rows import MISSING

Values = NDArray[Any]
"""Rows as they come: a float or a text each, NaN for a gap."""

PIMA_COLUMNS = (
    "pregnancies", "glucose", "pressure", "skin", "insulin", "mass", "pedigree", "age",
)  # fmt: skip
PIMA_GAPS = ("glucose", "pressure", "skin", "insulin", "mass")
"""In these a zero stands for no value."""

REMOVED = 0.2
"""Share of the cells that are removed from `adult-gaps`."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows as they come, and their labels.

    Attributes
    ----------
    names : tuple of str
        Of the columns, sorted.
    values : ndarray of object, shape (n, n_columns)
    codes : ndarray of shape (n,)
        Labels as numbers from 0 on, in their order.
    """

    names: tuple[str, ...]
    values: Values
    codes: Ints

    @property
    def are_categories(self) -> Bools:
        """Which columns have a text."""
        return np.array([any(isinstance(one, str) for one in column) for column in self.values.T])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.codes.max()) + 1


def _of_file(
    name: str, columns: tuple[str, ...], delimiter: str | None = ","
) -> Callable[[Path | None, int], Table]:
    """Return a reader of a file, which draws its rows by a seed."""

    def read(data_dir: Path | None, seed: int) -> Table:
        rows = fields(name, delimiter, data_dir)
        order = np.random.default_rng(seed).permutation(len(rows))
        texts = np.array([rows[i] for i in order.tolist()], dtype=object)
        values = np.empty(texts[:, :-1].shape, dtype=object)
        for place, column in enumerate(np.argsort(columns)):
            values[:, place] = _column(texts[:, column].tolist())
        codes = np.unique(texts[:, -1].astype(str), return_inverse=True)[1].astype(np.int64)
        return Table(tuple(sorted(columns)), values, codes)

    return read


def _column(texts: list[str]) -> list[float | str]:
    """Return the values of a column: numbers where all are."""
    are_numbers = all(is_number(text) for text in texts if text not in MISSING)
    filled = (None if text in MISSING else text for text in texts)
    return [
        float("nan") if text is None else float(text) if are_numbers else text for text in filled
    ]


def _pima(data_dir: Path | None, seed: int) -> Table:
    table = _of_file("diabetes", PIMA_COLUMNS)(data_dir, seed)
    for name in PIMA_GAPS:
        column = table.values[:, table.names.index(name)]
        column[column == 0.0] = float("nan")
    return table


_adult = _of_file("adult", ADULT_COLUMNS)


def _adult_with_gaps(data_dir: Path | None, seed: int) -> Table:
    table = _adult(data_dir, seed)
    values = table.values.copy()
    values[np.random.default_rng(1000 + seed).random(values.shape) < REMOVED] = float("nan")
    return replace(table, values=values)


STREAMS: dict[str, Callable[[Path | None, int], Table]] = {
    "adult": _adult,
    "german": _of_file("german", tuple(f"x{i:02}" for i in range(1, 21)), None),
    "car": _of_file("car", tuple(CAR_ORDERS)),
    "pima": _pima,
    "adult-gaps": _adult_with_gaps,
}

OURS = "our default"


def peers(are_categories: Bools) -> dict[str, Peer]:
    """Return the other methods, which are told what the columns are.

    Examples
    --------
    >>> values = np.array([["a", 1.0], ["b", float("nan")]] * 150, dtype=object)
    >>> of = peers(np.array([True, False]))["rolling LR, one-hot"]
    >>> of(values, np.array([0, 1] * 150), 2)[[0, 299], 1].round(1).tolist()
    [0.5, 1.0]
    """
    categories, numbers = np.flatnonzero(are_categories), np.flatnonzero(~are_categories)
    one_hot = partial(_one_hot, categories, numbers)
    boosted = partial(
        HistGradientBoostingClassifier,
        random_state=0,
        categorical_features=list(range(len(categories))),
    )
    return {
        "rolling SVC, one-hot": rolling(partial(calibrated, SVC), one_hot),
        "rolling LR, one-hot": rolling(plain_logistic, one_hot),
        "rolling boosted trees, native categories": rolling(
            partial(calibrated, boosted), partial(_ordinal, categories, numbers)
        ),
        "river ARF, one-hot": of_river(partial(_river, "ARFClassifier", categories, numbers)),
        "river AMF, one-hot": of_river(partial(_river, "AMFClassifier", categories, numbers)),
    }


def _one_hot(categories: Ints, numbers: Ints) -> Any:
    scaled = make_pipeline(FunctionTransformer(_floats), SimpleImputer(), StandardScaler())
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer([("categories", encoder, categories), ("numbers", scaled, numbers)])


def _ordinal(categories: Ints, numbers: Ints) -> Any:
    """Return a coding of categories as numbers; NaN is a gap, which these trees know."""
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    return ColumnTransformer(
        [
            ("categories", encoder, categories),
            ("numbers", FunctionTransformer(_floats), numbers),
        ]
    )


def _floats(values: Values) -> Floats:
    return values.astype(np.float64)


def _river(model: str, categories: Ints, numbers: Ints, _: int) -> Any:
    """Return a forest of river on the same columns, coded one example at a time."""
    from river import compose, forest, preprocessing, stats

    imputer: Any = preprocessing.StatImputer
    parts: list[Any] = []
    if len(categories):
        parts.append(compose.Select(*categories.tolist()) | preprocessing.OneHotEncoder())
    if len(numbers):
        names = numbers.tolist()
        parts.append(
            compose.Select(*names)
            | compose.FuncTransformer(_gaps_as_none)
            | imputer(*((f"x{name}", stats.Mean()) for name in names))
            | preprocessing.StandardScaler()
        )
    return compose.TransformerUnion(*parts) | getattr(forest, model)(seed=0)


def _gaps_as_none(x: dict[int, float]) -> dict[str, float | None]:
    """Return numbers as river's imputer takes them; like its categories they have texts as names.

    A forest sorts the names.
    """
    return {f"x{name}": None if value != value else value for name, value in x.items()}


def _answered(method: str, table: Table, values: Values, codes: Ints) -> dict[str, Published]:
    """Return the probability of a method of rows of a table, and its name."""
    if method == OURS:
        cells = np.array([[cell(one) for one in row] for row in values])
        return {OURS: ours(cells, codes, table.n_classes, names=table.names)[HEADLINE]}
    peer = peers(table.are_categories)[method]
    return {method: Published(peer(values, codes, table.n_classes))}


METHODS = (OURS, *peers(np.array([True])))


def run(
    streams: Names = None,
    rows: NamesWithCommas = None,
    shuffles: Annotated[int, typer.Option(min=1, help="Orders of each file.")] = 1,
    examples: Annotated[int, typer.Option(min=300, help="Of each file, at most.")] = 3000,
    jobs: Jobs = 1,
    results: ResultsFile = Path("kinds.jsonl"),
    data_dir: DataDir = None,
) -> Iterator[Result]:
    """Measure the default on raw rows with categories and gaps, beside others and their coding.

    Each example is answered before it is learned, and scored from the 250th on. Rolling models are
    fitted on the last 2,000 examples at every 250th. Files are shuffled by the seeds 0, 1, ...
    """
    names = chosen("--streams", streams, ",", tuple(STREAMS))
    methods = chosen("--rows", rows, ";", METHODS)
    cells = stream_cells(names, methods, shuffles, lambda _: False, examples, data_dir)
    found = measured_cells(cells, measure, MethodRun, results, jobs)
    whole = qualities((c, m) for c, m in found.items() if isinstance(m, MethodRun))
    for one in whole:
        yield Result(one.plain() | {"seconds": _seconds(one)}, [])
    if whole:
        yield Result({}, [_table(whole)])
    tell_missing(found)


def measure(cell: StreamCell) -> MethodRun | str:
    """Run a cell; return why where it cannot run here.

    Examples
    --------
    >>> measure(StreamCell("car", 0, OURS, None, Path("/nowhere")))  # doctest: +ELLIPSIS
    'no data directory /nowhere: ...'
    """
    try:
        table = STREAMS[cell.stream](cell.data_dir, cell.draw)
    except BadConfiguration as error:
        return str(error)
    used = slice(0, cell.examples)
    answer = partial(_answered, cell.method, table)
    return timed(answer, table.values[used], table.codes[used], table.n_classes)


def _seconds(one: Quality) -> float:
    return 1e-6 * one.microseconds * one.examples


_SHOWN: Mapping[str, Callable[[Quality], str]] = {
    "log loss": lambda one: f"{one.log_loss:.4f}",
    "Brier": lambda one: f"{one.mean('brier'):.4f}",
    "seconds": lambda one: f"{_seconds(one):.1f}",
}


def _table(found: list[Quality]) -> str:
    """Return the table: of each measure a row for each method, a column for each stream."""
    of = {(one.row, one.stream): one for one in found}
    methods, streams = (list(dict.fromkeys(names)) for names in zip(*of, strict=True))
    lines = [
        [name, method, *(show(of[method, s]) if (method, s) in of else "" for s in streams)]
        for name, show in _SHOWN.items()
        for method in methods
    ]
    sizes = ", ".join(f"{s} {next(o.examples for o in found if o.stream == s):,}" for s in streams)
    shuffles = counted(max(len(one.shuffles) for one in found), "shuffle")
    title = f"raw rows ({sizes}), {shuffles}, scored from example {EVERY}; processor time"
    return printed(title, ["", "", *streams], lines)
