"""The papers' experiments: pure functions that return what was printed beside what is measured.

Each paper is a module with two functions:

    run(data_dir, quick, seed, progress) -> dict     the experiments, as plain data
    draw(result, out_dir) -> list of Path            its figures, as PNG

A result holds ``paper`` (the title), ``rows`` (what, paper, measured, further columns, reason),
``claims`` (see `claims.claim`), ``notes``, and where there is more to compare ``tables`` (title,
columns, rows); whatever else it holds is for `draw` and for those who read the JSON.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

PAPERS = {
    "platt": "Platt (1999): a sigmoid after the SVM",
    "venn": "Lambrou et al. (2012): inductive Venn prediction",
    "implied": "Nalbantov & Ivanov: the posterior implied by a bank of SVMs",
    "psvm": "Niaf et al.: an SVM with probabilities as targets",
    "evidential": "Xu et al. (2016): evidential calibration",
}

DATA: dict[str, tuple[str, ...]] = {
    "platt": ("a1a", "a9a.t", "w1a", "w7a.t"),
    "venn": ("car", "wine", "a9a", "a9a.t"),
    "implied": ("german-numeric",),
    "psvm": (),
    "evidential": (
        *("a9a", "a9a.t", "australian", "diabetes"),
        *("heart", "ionosphere", "bupa", "sonar"),
    ),
}
"""The data sets of `workers.push.datasets` that a paper's experiments load, quick or full."""

_FULL_DATA = {"platt": ("a9a", "w7a")}
"""Those that only a full run loads."""


def data_of(name: str, quick: bool) -> tuple[str, ...]:
    """Return the names of the data sets that a run loads.

    Examples
    --------
    >>> data_of("platt", quick=True), data_of("psvm", quick=False)
    (('a1a', 'a9a.t', 'w1a', 'w7a.t'), ())
    """
    return DATA[name] + (() if quick else _FULL_DATA.get(name, ()))


class Reproduction(Protocol):
    """What the module of a paper offers."""

    def run(
        self,
        data_dir: Path | str | None,
        quick: bool,
        seed: int,
        progress: Callable[[str], None] | None = None,
    ) -> dict[str, Any]:
        """Run the experiments."""

    def draw(self, result: dict[str, Any], out_dir: Path | str) -> list[Path]:
        """Draw every figure as PNG.

        Parameters
        ----------
        result : dict
            What `run` returned, also after a round trip through JSON.
        out_dir : path
            Made if it is not there.

        Returns
        -------
        list of Path
            The files written.
        """


def reproduction(name: str) -> Reproduction:
    """Return the module of one of `PAPERS`; its imports take seconds.

    Examples
    --------
    >>> reproduction("platt").__name__
    'workers.lab.papers.platt'
    """
    return cast(Reproduction, import_module(f"workers.lab.papers.{name}"))
