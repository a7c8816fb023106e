"""The papers' experiments: what was printed beside what is measured.

A paper is a module, or a folder with a module `experiments`, that holds

    PAPER, DATA, NOTES          its reference, the data sets it loads, sentences below the tables
    run(asked) -> dict          the experiments, as plain data

`run` returns ``rows`` and ``claims`` (`report.row` and `report.claim`), and where there is more to
compare ``tables`` (`report.table`). Whatever else it returns is for those who read the JSON.
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

Result = dict[str, Any]
Choice = TypeVar("Choice")

PAPERS = ("platt", "venn", "implied", "psvm", "evidential")


@dataclass(frozen=True, slots=True)
class Run:
    """What is asked for: where the data is, smaller experiments in minutes, the first seed."""

    data_dir: Path | None = None
    quick: bool = False
    seed: int = 0

    def choose(self, quick: Choice, full: Choice) -> Choice:
        """Return the one or the other.

        Examples
        --------
        >>> Run(quick=True).choose(5, 30)
        5
        """
        return quick if self.quick else full

    def seeds(self, quick: int, full: int) -> range:
        """Return so many seeds.

        Examples
        --------
        >>> Run(seed=7).seeds(2, 3)
        range(7, 10)
        """
        return range(self.seed, self.seed + self.choose(quick, full))


def experiments(name: str) -> Any:
    """Return the module of one of `PAPERS`; the import takes seconds."""
    return import_module(f"scripts.papers.{name}")


def repeat(name: str, asked: Run) -> Result:
    """Run the experiments of one of `PAPERS`, and return plain data, ready for JSON.

    Raises
    ------
    DataNotFound
        If a data file is missing; the message says how to fetch it.
    """
    own = experiments(name)
    result: Result = own.run(asked)
    head = {"paper": own.PAPER, "quick": asked.quick, "seed": asked.seed}
    return head | {"notes": list(own.NOTES)} | result
