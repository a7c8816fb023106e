"""The papers' experiments: what was printed beside what is measured.

A paper is a line of `PAPERS` and a folder of its own, whose module `experiments` holds

    NOTES                       sentences that are printed below the tables
    run(asked) -> dict          the experiments, as plain data
    figures(result) -> dict     its figures, by the names of their files

`run` returns ``rows`` (`entries.row`), ``claims`` (`entries.claim`), and where there is more to
compare ``tables`` (`entries.table`); whatever else it returns is for `figures`, which also takes a
result that went through JSON, and for those who read the JSON. All else is the same for every
paper: `repeat` runs it, `draw` writes its figures, `report` and `summary` show it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Result = dict[str, Any]
Choice = TypeVar("Choice")


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper whose experiments are repeated.

    Attributes
    ----------
    title, reference : str
        On a line of its own, and above its tables.
    data : tuple of str
        The data sets of `workers.push.datasets` that its experiments load.
    full_data : tuple of str
        Those that only a full run loads.
    """

    title: str
    reference: str
    data: tuple[str, ...] = ()
    full_data: tuple[str, ...] = ()


PAPERS = {
    "platt": Paper(
        "Platt (1999): a sigmoid after the SVM",
        "Platt (1999), Probabilistic outputs for support vector machines",
        ("a1a", "a9a.t", "w1a", "w7a.t"),
        ("a9a", "w7a"),
    ),
    "venn": Paper(
        "Lambrou et al. (2012): inductive Venn prediction",
        "Lambrou, Papadopoulos, Nouretdinov & Gammerman (2012), Inductive Venn prediction",
        ("car", "wine", "a9a", "a9a.t"),
    ),
    "implied": Paper(
        "Nalbantov & Ivanov: the posterior implied by a bank of SVMs",
        "Nalbantov & Ivanov, Tutorial on implied posterior probability for SVMs",
        ("german-numeric",),
    ),
    "psvm": Paper(
        "Niaf et al.: an SVM with probabilities as targets",
        "Niaf et al., Handling uncertainties in SVM classification",
    ),
    "evidential": Paper(
        "Xu et al. (2016): evidential calibration",
        "Xu, Davoine, Zha & Denoeux (2016), Evidential calibration",
        ("a9a", "a9a.t", "australian", "diabetes", "heart", "ionosphere", "bupa", "sonar"),
    ),
}


def data_of(name: str, quick: bool) -> tuple[str, ...]:
    """Return the names of the data sets that a run loads.

    Examples
    --------
    >>> data_of("platt", quick=True), data_of("psvm", quick=False)
    (('a1a', 'a9a.t', 'w1a', 'w7a.t'), ())
    """
    paper = PAPERS[name]
    return paper.data if quick else paper.data + paper.full_data


@dataclass(frozen=True, slots=True)
class Run:
    """What a run of experiments is asked for.

    Attributes
    ----------
    data_dir : path or None
        Where the data files are; see `workers.push.datasets.data_directory`.
    quick : bool
        Smaller experiments, in minutes.
    seed : int
        The first; others follow it.
    tell : callable
        Is told a line for each finished part.
    """

    data_dir: Path | str | None = None
    quick: bool = False
    seed: int = 0
    tell: Callable[[str], None] = lambda _: None

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


class Experiments(Protocol):
    """What the module `experiments` of a paper offers."""

    NOTES: tuple[str, ...]

    def run(self, asked: Run) -> Result:
        """Run the experiments; raise DataNotFound where a file is missing."""

    def figures(self, result: Result) -> "Mapping[str, Figure]":
        """Return every figure of a result, also of one that went through JSON."""


def experiments(name: str) -> Experiments:
    """Return the experiments of one of `PAPERS`; the import takes seconds.

    Examples
    --------
    >>> experiments("platt").__name__
    'scripts.papers.platt.experiments'
    """
    return cast(Experiments, import_module(f"scripts.papers.{name}.experiments"))


def repeat(name: str, asked: Run) -> Result:
    """Run the experiments of one of `PAPERS`, and return plain data, ready for JSON.

    Raises
    ------
    DataNotFound
        If a data file is missing; the message says how to fetch it.
    """
    own = experiments(name)
    head = {"paper": PAPERS[name].reference, "quick": asked.quick, "seed": asked.seed}
    return head | {"notes": list(own.NOTES)} | own.run(asked)


def draw(name: str, result: Result, out_dir: Path | str) -> list[Path]:
    """Write every figure of a result as PNG, and return the files.

    Parameters
    ----------
    name : str
        One of `PAPERS`.
    result : dict
        What `repeat` returned, also after a round trip through JSON.
    out_dir : path
        Made if it is not there.
    """
    from scripts.papers.drawing import save

    return save(experiments(name).figures(result), out_dir)
