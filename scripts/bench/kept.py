"""Measured cells in a file of JSON lines, so that an interrupted run continues.

A cell is a line of a table, or one run of a line. Its key names the measured program, so that a
change of our code does not measure the peers again.
"""

import fcntl
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Generic, Protocol, TypeVar

import numpy as np
import orjson
import typer
from pydantic import TypeAdapter

from scripts.parallel import each_as_it_ends
from workers.cli.common import note
from workers.errors import BadConfiguration
from workers.offline.backtest.kept_results import code_digest

Measured = TypeVar("Measured")
Key = Mapping[str, Any]
"""Names and values that identify a measurement; no value is a list, no name is "measured"."""

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


class KeptLines(Generic[Measured]):
    """Measurements by key; each line of the file is a key with its measurement."""

    def __init__(self, path: Path, kind: Any) -> None:
        self._path, self._kind = path, TypeAdapter[Measured](kind)
        self._kept: dict[frozenset[tuple[str, Any]], Measured] = {}
        try:
            whole = _whole_lines(path)
        except OSError as error:
            raise BadConfiguration(f"--results {path}: {error.strerror}") from None
        for number, line in enumerate(whole, start=1):
            try:
                key = orjson.loads(line)
                measured = self._kind.validate_python(key.pop("measured"))
                self._kept[frozenset(key.items())] = measured
            except (ValueError, KeyError, TypeError, AttributeError):
                raise BadConfiguration(
                    f"--results {path}, line {number}: no cell of this benchmark; choose another "
                    "file, or delete the line"
                ) from None

    def get(self, key: Key) -> Measured | None:
        """Return the measurement of a key; None if there is none."""
        return self._kept.get(frozenset(key.items()))

    def add(self, key: Key, measured: Measured) -> None:
        """Keep a measurement: its line is written at once."""
        self._kept[frozenset(key.items())] = measured
        line = {**key, "measured": self._kind.dump_python(measured, mode="json")}
        with self._path.open("ab") as target:
            fcntl.flock(target, fcntl.LOCK_EX)  # another run may write to the same file
            target.write(orjson.dumps(line) + b"\n")

    def measured(self, key: Key, measure: Callable[[], Measured]) -> Measured:
        """Return the measurement of a key; measure and keep it if there is none."""
        found = self.get(key)
        if found is None:
            found = measure()
            self.add(key, found)
        return found


def _whole_lines(path: Path) -> list[bytes]:
    """Return the lines of the file; an incomplete last line is removed."""
    with path.open("a+b") as target:
        fcntl.flock(target, fcntl.LOCK_EX)  # an incomplete line is of a run that has ended
        target.seek(0)
        data = target.read()
        size = data.rfind(b"\n") + 1
        target.truncate(size)
    return data[:size].splitlines()


class Cell(Protocol):
    """Something to measure: hashable, with a `str` for people."""

    @property
    def key(self) -> Key:
        """The key of its measurement."""


AnyCell = TypeVar("AnyCell", bound=Cell)


@dataclass(frozen=True, slots=True)
class StreamCell:
    """One method on the first examples of one draw, or shuffle, of a stream."""

    stream: str
    draw: int
    method: str
    examples: int | None = None
    data_dir: Path | None = None

    def __str__(self) -> str:
        return f"{self.stream}, draw {self.draw}, {self.method}"

    @property
    def key(self) -> Key:
        """What it is kept under."""
        names = ("stream", "draw", "method", "examples")
        return {name: getattr(self, name) for name in names} | {"program": program(self.method)}


def stream_cells(
    streams: Iterable[str],
    methods: Sequence[str],
    draws: int,
    is_single: Callable[[str], bool],
    examples: int | None = None,
    data_dir: Path | None = None,
) -> list[StreamCell]:
    """Return the cells of a run; of a stream that is the same at each draw there is one draw."""
    return [
        StreamCell(name, draw, method, examples, data_dir)
        for draw in range(draws)
        for method in methods
        for name in streams
        if draw == 0 or not is_single(name)
    ]


def measured_cells(
    cells: Sequence[AnyCell],
    measure: Callable[[AnyCell], Measured],
    kind: type[Measured],
    results: Path,
    jobs: int = 1,
) -> dict[AnyCell, Measured | str]:
    """Return the measurement of each cell, in order, or the reason why there is none."""
    kept = KeptLines[Measured](results, kind)
    found: dict[AnyCell, Measured | str | None] = {cell: kept.get(cell.key) for cell in cells}
    missing = [cell for cell, one in found.items() if one is None]
    ended = each_as_it_ends(partial(_attempted, measure), missing, jobs)
    for number, (cell, one) in enumerate(ended, 1):
        note(f"{number} of {len(missing)}: {cell}")
        found[cell] = one
        if not isinstance(one, str):
            kept.add(cell.key, one)
    return {cell: one for cell, one in found.items() if one is not None}


def _attempted(measure: Callable[[AnyCell], Measured], cell: AnyCell) -> Measured | str:
    try:
        return measure(cell)
    except BadConfiguration as error:
        return str(error)


def mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    """Return a mean and its standard error, which one value alone does not have."""
    n = len(values)
    error = float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else None
    return float(np.mean(values)), error


def mean_shown(mean: float, error: float | None) -> str:
    """Return a mean as text, with its standard error if it has one."""
    has_error = error is not None and np.isfinite(error) and error > 0.0
    return f"{mean:.4f} ± {error:.4f}" if has_error else f"{mean:.4f}"
