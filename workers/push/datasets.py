"""Load the benchmark data sets by name, in the row order of their release."""

import csv
import gzip
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, cast

import numpy as np
from numpy.typing import NDArray

from online_svm.types import Floats
from workers.errors import BadConfiguration

Table = list[list[str]]

# The orders of values in the Car Evaluation documentation; a value's code is its index.
CAR_ORDERS: dict[str, tuple[str, ...]] = {
    "buying": ("low", "med", "high", "vhigh"),
    "maint": ("low", "med", "high", "vhigh"),
    "doors": ("2", "3", "4", "5more"),
    "persons": ("2", "4", "more"),
    "lug_boot": ("small", "med", "big"),
    "safety": ("low", "med", "high"),
}
ADULT_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country",
)  # fmt: skip
LIBSVM_WIDTH = {"a": 123, "w": 300}


class DataNotFound(BadConfiguration):
    """The data set is unknown, or its file does not exist."""


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """A data set in memory."""

    X: Floats
    y: NDArray[np.str_]  # labels as the file spells them
    # One name a column. An indicator column is ``attribute=value``; of a missing value,
    # ``attribute=?``
    feature_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.y)


def data_directory(given: str | Path | None = None) -> Path:
    """Return `given`, else ``ONLINE_SVM_DATA``, else ``../shared/data`` next to the repository.

    Raises DataNotFound if there is no such directory.
    """
    directory = chosen_directory(given)
    if not directory.is_dir():
        raise DataNotFound(
            f"no data directory {directory}: run scripts/download_data.py --out DIR "
            "and set ONLINE_SVM_DATA=DIR"
        )
    return directory


def chosen_directory(given: str | Path | None = None) -> Path:
    """Return the directory of `data_directory`, which need not exist."""
    chosen = given or os.environ.get("ONLINE_SVM_DATA")
    return Path(chosen) if chosen else Path(__file__).parents[3] / "shared" / "data"


def missing(names: Iterable[str], data_dir: str | Path | None = None) -> list[str]:
    """Return the files of these data sets that are not in the directory, sorted."""
    directory = chosen_directory(data_dir)
    return sorted(
        file
        for file in {_FILES[name] for name in names}
        if not (directory / file).exists() and not (directory / f"{file}.gz").exists()
    )


def load(name: str, data_dir: str | Path | None = None) -> Dataset:
    """Load a benchmark data set, one of `NAMES`; for `data_dir` see `data_directory`.

    Raises DataNotFound if the name is unknown, or its file is not in the directory.
    """
    loader = _LOADERS.get(name)
    if loader is None:
        raise DataNotFound(f"no data set {name!r}; known: {', '.join(NAMES)}")
    return loader(data_directory(data_dir))


def fields(name: str, delimiter: str | None, data_dir: str | Path | None = None) -> Table:
    """Return the rows of a data set as texts in the order of its file, the label last.

    Fields are separated by `delimiter`, or by blanks if it is None; for DataNotFound see `load`.
    """
    return _table(data_directory(data_dir), _FILES[name], delimiter)


def _open(directory: Path, filename: str) -> TextIO:
    plain, zipped = directory / filename, directory / f"{filename}.gz"
    if plain.exists():
        return plain.open(encoding="utf-8", newline="")
    if zipped.exists():
        return cast(TextIO, gzip.open(zipped, "rt", encoding="utf-8", newline=""))
    raise DataNotFound(
        f"{filename} is not in {directory}: run scripts/download_data.py --out {directory}"
    )


def _table(directory: Path, filename: str, delimiter: str | None) -> Table:
    """Return the rows of a file; without a delimiter, fields are separated by blanks."""
    with _open(directory, filename) as lines:
        rows = csv.reader(lines, delimiter=delimiter) if delimiter else map(str.split, lines)
        return [[field.strip() for field in row] for row in rows if row]


def _dataset(X: Floats, rows: Table, names: Sequence[str]) -> Dataset:
    """Return a data set with the last field of each row as label."""
    return Dataset(X, np.array([row[-1] for row in rows], dtype=np.str_), tuple(names))


def _numbered(width: int) -> list[str]:
    return [f"x{i}" for i in range(1, width + 1)]


def _numeric(
    filename: str, delimiter: str | None, header: bool = False
) -> Callable[[Path], Dataset]:
    """Return a loader for columns of numbers and a last column of labels."""

    def read(directory: Path) -> Dataset:
        rows = _table(directory, filename, delimiter)
        names = rows.pop(0)[:-1] if header else _numbered(len(rows[0]) - 1)
        X = np.array([row[:-1] for row in rows], dtype=np.float64)
        return _dataset(X, rows, names)

    return read


def _car(directory: Path) -> Dataset:
    rows = _table(directory, _FILES["car"], ",")
    orders = list(CAR_ORDERS.values())
    codes = [[order.index(v) for order, v in zip(orders, row, strict=False)] for row in rows]
    return _dataset(np.array(codes, dtype=np.float64), rows, list(CAR_ORDERS))


def _libsvm(filename: str) -> Callable[[Path], Dataset]:
    """Return a loader for sparse files of 0/1 features; see `LIBSVM_WIDTH`."""

    def read(directory: Path) -> Dataset:
        rows = _table(directory, filename, None)
        width = LIBSVM_WIDTH[filename[0]]
        X = np.zeros((len(rows), width))
        for dense, (_, *pairs) in zip(X, rows, strict=True):
            for pair in pairs:
                index, value = pair.split(":")
                dense[int(index) - 1] = float(value)
        return _dataset(X, [row[:1] for row in rows], [str(i) for i in range(1, width + 1)])

    return read


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _indicators(rows: Table, reference: Table, names: Sequence[str]) -> tuple[Floats, list[str]]:
    """One-hot encode the categorical columns of rows; numeric columns are unchanged.

    The categorical columns, and their values (sorted), are those of `reference`, so that a test
    part gets the columns of its training part.
    """
    columns: list[Floats] = []
    encoded: list[str] = []
    for j, name in enumerate(names):
        column = [row[j] for row in rows]
        values = sorted({row[j] for row in reference})
        if all(map(_is_number, values)):
            columns.append(np.array(column, dtype=np.float64))
            encoded.append(name)
            continue
        columns += [np.array([v == value for v in column], dtype=np.float64) for value in values]
        encoded += [f"{name}={value}" for value in values]
    return np.column_stack(columns), encoded


def _german(directory: Path) -> Dataset:
    rows = _table(directory, _FILES["german"], None)
    X, names = _indicators(rows, rows, _numbered(20))
    return _dataset(X, rows, names)


def _adult(filename: str) -> Callable[[Path], Dataset]:
    """Return a loader for the census data, with the columns of the training part."""

    def read(directory: Path) -> Dataset:
        training = _table(directory, _FILES["adult"], ",")
        rows = training if filename == _FILES["adult"] else _table(directory, filename, ",")[1:]
        X, names = _indicators(rows, training, ADULT_COLUMNS)
        return _dataset(X, [[row[-1].removesuffix(".")] for row in rows], names)

    return read


_LIBSVM = ("a1a", "a9a", "a9a.t", "w1a", "w7a", "w7a.t", "w8a", "w8a.t")

_FILES = {
    "2cdt": "2cdt.csv",
    "2cht": "2cht.csv",
    "adult": "adult.data",
    "adult.test": "adult.test",
    "australian": "australian.dat",
    "bupa": "bupa.data",
    "car": "car.data",
    "diabetes": "pima-indians-diabetes.data",
    "elec2": "elec.csv",
    "german": "german.data",
    "german-numeric": "german.data-numeric",
    "heart": "heart.dat",
    "ionosphere": "ionosphere.data",
    "moving-squares": "moving-squares.csv",
    "sonar": "sonar.all-data",
    "transient-chessboard": "transient-chessboard.csv",
    "wine": "winequality-red.csv",
} | {name: name for name in _LIBSVM}
"""The file of each data set; the training file also defines the columns of a test file."""

_LOADERS: dict[str, Callable[[Path], Dataset]] = {
    "adult": _adult(_FILES["adult"]),
    "adult.test": _adult(_FILES["adult.test"]),
    "car": _car,
    "german": _german,
    "elec2": _numeric(_FILES["elec2"], ",", header=True),
    "wine": _numeric(_FILES["wine"], ";", header=True),
    **{name: _numeric(_FILES[name], None) for name in ("australian", "german-numeric", "heart")},
    **{name: _libsvm(name) for name in _LIBSVM},
}
_LOADERS = {name: _numeric(file, ",") for name, file in _FILES.items()} | _LOADERS

NAMES = tuple(sorted(_LOADERS))
