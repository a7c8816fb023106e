"""Measured cells in a file of JSON lines, so that a run that is cut off goes on.

A cell is a line of a table, or one run of a line. Its key has the program that was measured, so
that a change of ours leaves the lines of peers as they are.
"""

import fcntl
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, TypeVar

import orjson
from pydantic import TypeAdapter

from scripts.bench.report import Tell, silent
from scripts.parallel import each_as_it_ends
from workers.errors import BadConfiguration
from workers.history.backtest.kept_results import code_digest

Cell = TypeVar("Cell")
Measured = TypeVar("Measured")
Key = Mapping[str, Any]
"""Names and values, none of them a list, of what was measured; one name is never "measured"."""


def program(package: str | None = None) -> str:
    """Return what a result is of: this code, or a package in the version that is installed.

    Examples
    --------
    >>> program("river").partition(" ")[0], program().partition(" ")[0]
    ('river', 'online-svm')
    """
    return f"{package} {version(package)}" if package else f"online-svm {code_digest()[:16]}"


class KeptLines(Generic[Measured]):
    """What was measured, by a key; each line of the file is a key and what was measured.

    Parameters
    ----------
    path : Path
        Made if it is not there. A last line that was cut off is removed.
    kind : type
        Of what is measured: whatever pydantic writes as JSON and reads again.

    Raises
    ------
    BadConfiguration
        If the file cannot be read, or a line is none of this benchmark.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     file = Path(directory) / "kept.jsonl"
    ...     KeptLines(file, float).add({"stream": "elec2"}, 0.5)
    ...     kept = KeptLines(file, float)
    >>> kept.get({"stream": "elec2"}), kept.get({"stream": "adult"})
    (0.5, None)
    """

    def __init__(self, path: Path, kind: Any) -> None:
        self._path, self._kind = path, TypeAdapter[Measured](kind)
        self._kept: dict[frozenset[tuple[str, Any]], Measured] = {}
        try:
            whole = _whole_lines(path)
        except OSError as error:
            raise BadConfiguration(f"--results {path}: {error.strerror}") from None
        for number, line in enumerate(whole, start=1):
            self._read(number, line)

    def _read(self, number: int, line: bytes) -> None:
        try:
            key = orjson.loads(line)
            measured = self._kind.validate_python(key.pop("measured"))
            self._kept[frozenset(key.items())] = measured
        except (ValueError, KeyError, TypeError, AttributeError):
            raise BadConfiguration(
                f"--results {self._path}, line {number}: no cell of this benchmark; choose another "
                "file, or delete the line"
            ) from None

    def get(self, key: Key) -> Measured | None:
        """Return what is kept under a key; None if there is nothing."""
        return self._kept.get(frozenset(key.items()))

    def add(self, key: Key, measured: Measured) -> None:
        """Keep one more: its line is written at once."""
        self._kept[frozenset(key.items())] = measured
        line = {**key, "measured": self._kind.dump_python(measured, mode="json")}
        with self._path.open("ab") as target:
            fcntl.flock(target, fcntl.LOCK_EX)  # another run may write to the same file
            target.write(orjson.dumps(line) + b"\n")


def _whole_lines(path: Path) -> list[bytes]:
    """Return the lines of the file; a last one that was cut off is removed."""
    with path.open("a+b") as target:
        fcntl.flock(target, fcntl.LOCK_EX)  # what is cut off now is of a run that has ended
        target.seek(0)
        data = target.read()
        size = data.rfind(b"\n") + 1
        target.truncate(size)
    return data[:size].splitlines()


def measured_cells(
    cells: Sequence[Cell],
    measure: Callable[[Cell], Measured | str],
    kept: KeptLines[Measured],
    key: Callable[[Cell], Key],
    jobs: int = 1,
    tell: Tell = silent,
) -> dict[Cell, Measured | str]:
    """Return what was measured of each cell, in order, or why it was not run.

    Parameters
    ----------
    cells : sequence
        Hashable, with a `str` for people.
    measure : callable
        Of a module; it returns why where a cell cannot be run here.
    kept : KeptLines
        What was measured before; each cell is added as it ends.
    key : callable
        Under which a cell is kept.
    jobs : int
        Processes, at most.
    tell : callable
        Is told which cell has ended.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     kept = KeptLines(Path(directory) / "kept.jsonl", int)
    ...     measured_cells([-2, 3], abs, kept, lambda cell: {"cell": cell})
    {-2: 2, 3: 3}
    """
    found = {cell: kept.get(key(cell)) for cell in cells}
    missing = [cell for cell, one in found.items() if one is None]
    skipped: dict[Cell, str] = {}
    for number, (cell, one) in enumerate(each_as_it_ends(measure, missing, jobs), start=1):
        tell(f"{number} of {len(missing)}: {cell}")
        if isinstance(one, str):
            skipped[cell] = one
        else:
            kept.add(key(cell), one)
            found[cell] = one
    return {cell: skipped[cell] if one is None else one for cell, one in found.items()}
