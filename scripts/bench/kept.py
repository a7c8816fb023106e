"""Measured cells in a file of JSON lines, so that a run that is cut off goes on.

A cell is a line of a table, or one run of a line. Its key has the program that was measured, so
that a change of ours leaves the lines of peers as they are.
"""

import fcntl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import orjson

from scripts.bench.report import Tell
from scripts.parallel import each_as_it_ends
from workers.errors import BadConfiguration

Cell = TypeVar("Cell")
Measured = TypeVar("Measured")
Key = tuple[Any, ...]


class KeptLines(Generic[Measured]):
    """What was measured, by a key; each line of the file is a key and what was measured.

    Parameters
    ----------
    path : Path
        Made if it is not there. A last line that was cut off is removed.
    names : sequence of str
        Names of the parts of a key, as the file spells them.
    plain, of_plain : callable
        To JSON values and back. `of_plain` raises ValueError, KeyError or TypeError for what
        `plain` did not give.

    Raises
    ------
    BadConfiguration
        If the file cannot be read, or a line is none of this benchmark.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     file = Path(directory) / "kept.jsonl"
    ...     KeptLines(file, ["stream"], str, float).add(("elec2",), 0.5)
    ...     kept = KeptLines(file, ["stream"], str, float)
    >>> kept.get(("elec2",)), kept.get(("adult",))
    (0.5, None)
    """

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        plain: Callable[[Measured], Any],
        of_plain: Callable[[Any], Measured],
    ) -> None:
        self._path, self._names = path, tuple(names)
        self._plain, self._of_plain = plain, of_plain
        self._kept: dict[Key, Measured] = {}
        try:
            whole = _whole_lines(path)
        except OSError as error:
            raise BadConfiguration(f"--results {path}: {error.strerror}") from None
        for number, line in enumerate(whole, start=1):
            self._read(number, line)

    def _read(self, number: int, line: bytes) -> None:
        try:
            values = orjson.loads(line)
            key = tuple(values[name] for name in self._names)
            self._kept[key] = self._of_plain(values["measured"])
        except (ValueError, KeyError, TypeError):
            raise BadConfiguration(
                f"--results {self._path}, line {number}: no cell of this benchmark; choose another "
                "file, or delete the line"
            ) from None

    def get(self, key: Key) -> Measured | None:
        """Return what is kept under a key; None if there is nothing."""
        return self._kept.get(key)

    def add(self, key: Key, measured: Measured) -> None:
        """Keep one more: its line is written at once."""
        self._kept[key] = measured
        line = dict(zip(self._names, key, strict=True)) | {"measured": self._plain(measured)}
        with self._path.open("ab") as target:
            fcntl.flock(target, fcntl.LOCK_EX)  # another run may write to the same file
            target.write(orjson.dumps(line) + b"\n")


def _whole_lines(path: Path) -> list[bytes]:
    """Return the lines of the file, without a last one that was cut off."""
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
    jobs: int,
    tell: Tell,
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
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from scripts.bench.report import silent
    >>> with TemporaryDirectory() as directory:
    ...     kept = KeptLines(Path(directory) / "kept.jsonl", ["cell"], int, int)
    ...     measured_cells([-2, 3], abs, kept, lambda cell: (cell,), 1, silent)
    {-2: 2, 3: 3}
    """
    missing = [cell for cell in cells if kept.get(key(cell)) is None]
    skipped: dict[Cell, str] = {}
    for number, (cell, found) in enumerate(each_as_it_ends(measure, missing, jobs), start=1):
        tell(f"{number} of {len(missing)}: {cell}")
        if isinstance(found, str):
            skipped[cell] = found
        else:
            kept.add(key(cell), found)
    return {cell: skipped[cell] if cell in skipped else _known(kept, key(cell)) for cell in cells}


def _known(kept: KeptLines[Measured], key: Key) -> Measured:
    found = kept.get(key)
    assert found is not None
    return found
