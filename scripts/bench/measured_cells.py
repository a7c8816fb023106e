"""Measure the cells of a table that are not kept yet; a cell is one line of a file of results."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from scripts.bench.kept_lines import KeptLines, Key
from scripts.bench.report import Tell
from scripts.parallel import each_as_it_ends

Cell = TypeVar("Cell")
Measured = TypeVar("Measured")


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
