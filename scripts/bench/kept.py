"""Measured cells in a file of JSON lines, so that an interrupted run continues.

A cell is a line of a table, or one run of a line. Its key names the measured program, so that a
change of our code does not measure the peers again.
"""

import fcntl
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from typing import Annotated, Any, TypeVar

import orjson
import typer
from pandas import DataFrame

from scripts.bench.report import Values
from scripts.parallel import each_as_it_ends
from workers.cli.common import note
from workers.errors import BadConfiguration
from workers.offline.backtest.kept_results import code_digest

Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Processes, at most.")]
_KEEPS = "Keeps each part as it ends; the same command goes on from it."
ResultsFile = Annotated[Path, typer.Option("--results", metavar="FILE", help=_KEEPS)]
Names = Annotated[str | None, typer.Option(metavar="NAME,...", help="Only these.")]
NamesWithCommas = Annotated[
    str | None, typer.Option(metavar="NAME;...", help="Only these; ; stands between.")
]


def program(method: str) -> str:
    """Return the program behind a method: this code, or the installed version of a package."""
    package = method.partition(" ")[0]
    if package in ("river", "capymoa"):
        try:
            return f"{package} {version(package)}"
        except PackageNotFoundError:
            return f"{package}, not installed"
    if method.startswith("rolling "):
        return f"scikit-learn {version('scikit-learn')}"
    return f"online-svm {code_digest()[:16]}"


class KeptLines:
    """Measurements by key, JSON values; each line of the file is a key with its measurement.

    No value of a key is a list, and no name of one is "measured".
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: dict[frozenset[tuple[str, Any]], Any] = {}
        try:
            whole = _whole_lines(path)
        except OSError as error:
            raise BadConfiguration(f"--results {path}: {error.strerror}") from None
        for number, line in enumerate(whole, start=1):
            try:
                key = orjson.loads(line)
                measured = key.pop("measured")
                self._kept[frozenset(key.items())] = measured
            except (ValueError, KeyError, TypeError, AttributeError):
                raise BadConfiguration(
                    f"--results {path}, line {number}: no cell of this benchmark; choose another "
                    "file, or delete the line"
                ) from None

    def get(self, key: Values) -> Any:
        """Return the measurement of a key; None if there is none."""
        return self._kept.get(frozenset(key.items()))

    def add(self, key: Values, measured: Any) -> None:
        """Keep a measurement: its line is written at once."""
        self._kept[frozenset(key.items())] = measured
        with self._path.open("ab") as target:
            fcntl.flock(target, fcntl.LOCK_EX)  # another run may write to the same file
            target.write(orjson.dumps({**key, "measured": measured}) + b"\n")


def _whole_lines(path: Path) -> list[bytes]:
    """Return the lines of the file; an incomplete last line is removed."""
    with path.open("a+b") as target:
        fcntl.flock(target, fcntl.LOCK_EX)  # an incomplete line is of a run that has ended
        target.seek(0)
        data = target.read()
        size = data.rfind(b"\n") + 1
        target.truncate(size)
    return data[:size].splitlines()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One method on the first examples of one draw, or shuffle, of a stream."""

    stream: str
    method: str
    draw: int = 0
    examples: int | None = None
    data_dir: Path | None = None

    @property
    def key(self) -> Values:
        """What it is kept under: its fields without the directory, and its program."""
        names = asdict(self)
        del names["data_dir"]
        return names | {"program": program(self.method)}

    def __str__(self) -> str:
        values = [*self.key.items()][:-1]
        return ", ".join(f"{name} {value}" for name, value in values if value is not None)


AnyCell = TypeVar("AnyCell", bound=Cell)


def cells_of(kind: type[AnyCell], data_dir: Path | None, **values: Iterable[Any]) -> list[AnyCell]:
    """Return a cell for each combination of values; the last ones change first."""
    of_names = (dict(zip(values, one, strict=True)) for one in product(*values.values()))
    return [kind(**names, data_dir=data_dir) for names in of_names]


def measured_cells(
    cells: Sequence[AnyCell],
    measure: Callable[[AnyCell], list[Values]],
    results: Path,
    jobs: int = 1,
) -> DataFrame:
    """Return the key of each cell with each of its measured rows; say what cannot be measured."""
    kept = KeptLines(results)
    missing = [cell for cell in cells if kept.get(cell.key) is None]
    ended = each_as_it_ends(partial(_attempted, measure), missing, jobs)
    for number, (cell, found) in enumerate(ended, 1):
        is_measured = not isinstance(found, str)
        note(f"{number} of {len(missing)}: {cell}{'' if is_measured else f': not run: {found}'}")
        if is_measured:
            kept.add(cell.key, found)
    return DataFrame(cell.key | row for cell in cells for row in kept.get(cell.key) or ())


def stored_rows(path: Path) -> list[Values]:
    """Return each measured row of a file with the key of its cell."""
    lines = map(orjson.loads, path.read_bytes().splitlines())
    return [line | row for line in lines for row in line.pop("measured")]


def _attempted(measure: Callable[[AnyCell], list[Values]], cell: AnyCell) -> list[Values] | str:
    try:
        return measure(cell)
    except BadConfiguration as error:
        return str(error)
