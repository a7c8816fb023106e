"""The papers' experiments: printed and measured figures.

A paper is a module, or a folder with a module `experiments`, that holds

    PAPER, DATA, NOTES          its reference, the data sets it loads, sentences below the tables
    run(asked) -> dict          the experiments, as plain data

`run` returns ``rows`` and ``claims`` (`report.row` and `report.claim`), and where there is more to
compare ``tables`` (`report.table`). Its other entries appear only in the JSON.
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
        """Return the one or the other."""
        return quick if self.quick else full

    def seeds(self, quick: int, full: int) -> range:
        """Return so many seeds."""
        return range(self.seed, self.seed + self.choose(quick, full))


def experiments(name: str) -> Any:
    """Return the module of one of `PAPERS`; the import takes seconds."""
    return import_module(f"scripts.papers.{name}")


def repeat(name: str, asked: Run) -> Result:
    """Run the experiments of one of `PAPERS`, and return plain data, ready for JSON."""
    own = experiments(name)
    result: Result = own.run(asked)
    head = {"paper": own.PAPER, "quick": asked.quick, "seed": asked.seed}
    return head | {"notes": list(own.NOTES)} | result
