"""Quality on rows as they come: categories, numbers and gaps, against peers with coded rows.

Ours gets the rows as they are and no option. The peers know which columns are categories, and get
the coding that their users choose. Rows are drawn by `numpy.random.default_rng(seed).permutation`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from pandas import DataFrame
from river import compose, forest, preprocessing, stats
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC

from online_svm.stream.cells import cell, is_number
from online_svm.types import Bools, Ints
from scripts.bench import kept
from scripts.bench.quality import methods
from scripts.bench.quality.methods import FIT_EVERY, Peer, of_river, rolling
from scripts.bench.quality.run import MethodRun, figures, tell_missing, timed
from scripts.bench.report import Result
from scripts.command_line import chosen
from scripts.tables import printed
from workers.cli.common import DataDir
from workers.offline.backtest.prequential import HEADLINE, Published
from workers.push.datasets import ADULT_COLUMNS, CAR_ORDERS, fields
from workers.push.reading import MISSING
from workers.text import counted

Values = NDArray[Any]  # rows as they come: a float or a text each, NaN for a gap

PIMA_GAPS = ("glucose", "pressure", "skin", "insulin", "mass")
"""In these a zero stands for no value."""

PIMA_COLUMNS = ("pregnancies", *PIMA_GAPS, "pedigree", "age")

REMOVED = 0.2  # share of the cells that are removed from `adult-gaps`


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows as they come, and their labels."""

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
    columns = np.isin(table.names, PIMA_GAPS)
    table.values[columns & (table.values == 0.0)] = float("nan")
    return table


_adult = _of_file("adult", ADULT_COLUMNS)


def _adult_with_gaps(data_dir: Path | None, seed: int) -> Table:
    table = _adult(data_dir, seed)
    is_removed = np.random.default_rng(1000 + seed).random(table.values.shape) < REMOVED
    table.values[is_removed] = float("nan")
    return table


STREAMS: dict[str, Callable[[Path | None, int], Table]] = {
    "adult": _adult,
    "german": _of_file("german", tuple(f"x{i:02}" for i in range(1, 21)), None),
    "car": _of_file("car", tuple(CAR_ORDERS)),
    "pima": _pima,
    "adult-gaps": _adult_with_gaps,
}

OURS = "our default"


def peers(are_categories: Bools) -> dict[str, Peer]:
    """Return the other methods, which know the kinds of the columns."""
    categories, numbers = np.flatnonzero(are_categories), np.flatnonzero(~are_categories)
    floats = FunctionTransformer(lambda values: values.astype(np.float64))

    def coded(encoder: Any, kept: Any) -> Any:
        return ColumnTransformer([("categories", encoder, categories), ("numbers", kept, numbers)])

    def one_hot() -> Any:
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        return coded(encoder, make_pipeline(floats, SimpleImputer(), StandardScaler()))

    def ordinal() -> Any:
        """Return a coding of categories as numbers; NaN is a gap, which these trees know."""
        encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
        return coded(encoder, floats)

    boosted = partial(
        HistGradientBoostingClassifier,
        random_state=0,
        categorical_features=list(range(len(categories))),
    )
    return {
        "rolling SVC, one-hot": rolling(partial(methods.calibrated, SVC), one_hot),
        "rolling LR, one-hot": rolling(methods.plain_logistic, one_hot),
        "rolling boosted trees, native categories": rolling(
            partial(methods.calibrated, boosted), ordinal
        ),
        "river ARF, one-hot": of_river(partial(_river, forest.ARFClassifier, categories, numbers)),
        "river AMF, one-hot": of_river(partial(_river, forest.AMFClassifier, categories, numbers)),
    }


def _river(make: Any, categories: Ints, numbers: Ints, _: int) -> Any:
    """Return a forest of river on the same columns, coded one example at a time."""
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
    return compose.TransformerUnion(*parts) | make(seed=0)


def _gaps_as_none(x: dict[int, float]) -> dict[str, float | None]:
    """Return None for NaN, as river's imputer expects, and text as names, which a forest sorts."""
    return {f"x{name}": None if value != value else value for name, value in x.items()}


def _answered(method: str, table: Table, values: Values, codes: Ints) -> dict[str, Published]:
    """Return the probability of a method of rows of a table, and its name."""
    if method == OURS:
        cells = np.array([[cell(one) for one in row] for row in values])
        return {OURS: methods.ours(cells, codes, table.n_classes, names=table.names)[HEADLINE]}
    peer = peers(table.are_categories)[method]
    return {method: Published(peer(values, codes, table.n_classes))}


METHODS = (OURS, *peers(np.array([True])))


def run(
    streams: kept.Names = None,
    rows: kept.NamesWithCommas = None,
    shuffles: Annotated[int, typer.Option(min=1, help="Orders of each file.")] = 1,
    examples: Annotated[int, typer.Option(min=300, help="Of each file, at most.")] = 3000,
    jobs: kept.Jobs = 1,
    results: kept.ResultsFile = Path("kinds.jsonl"),
    data_dir: DataDir = None,
) -> Iterator[Result]:
    """Compare the default on raw rows with categories and gaps with others and their encoding.

    Each example is answered before it is learned, and scored from the 250th on. Rolling models are
    fitted on the last 2,000 examples at every 250th. Files are shuffled by the seeds 0, 1, ...
    """
    names = chosen("--streams", streams, ",", tuple(STREAMS))
    asked = chosen("--rows", rows, ";", METHODS), shuffles, lambda _: False
    cells = kept.stream_cells(names, *asked, examples, data_dir)
    found = kept.measured_cells(cells, measure, MethodRun, results, jobs)
    whole = figures(found)
    whole["seconds"] = 1e-6 * whole.microseconds * whole.examples
    for plain in whole.reset_index().to_dict("records"):
        yield Result(plain, [])
    if len(whole):
        yield Result({}, [_table(whole)])
    tell_missing(found)


def measure(cell: kept.StreamCell) -> MethodRun:
    """Run a cell."""
    table = STREAMS[cell.stream](cell.data_dir, cell.draw)
    used = slice(0, cell.examples)
    answer = partial(_answered, cell.method, table)
    return timed(answer, table.values[used], table.codes[used], table.n_classes)


def _table(whole: DataFrame) -> str:
    """Return the table: for each measure a row a method, and a column a stream."""
    sizes = whole.examples.groupby("stream", sort=False).first().astype(int)
    lines = [
        [measure, row, *(f"{one:.{places}f}" for one in losses)]
        for measure, places in {"log_loss": 4, "brier": 4, "seconds": 1}.items()
        for row, losses in whole[measure].unstack("stream")[sizes.index].iterrows()
    ]
    shown = ", ".join(f"{stream} {size:,}" for stream, size in sizes.items())
    shuffles = counted(int(whole.shuffles.max()), "shuffle")
    title = f"raw rows ({shown}), {shuffles}, scored from example {FIT_EVERY}; processor time"
    return printed(title, ["", "", *sizes.index], lines)
