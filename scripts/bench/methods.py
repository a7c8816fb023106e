"""The papers' methods against the usual way to compute each, in one run."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from scripts.bench import evidential, implied, psvm, venn_abers
from scripts.bench.report import Result, Row, Tell, silent
from workers.errors import BadConfiguration


@dataclass(frozen=True, slots=True)
class Method:
    """One benchmark, and what it is measured against.

    Attributes
    ----------
    run : callable
        Measures, and returns rows.
    peer : str
    least : float
        Ratio it is meant to reach.
    where : str
        On the rows whose name holds this; empty means all.
    """

    run: Callable[[], list[Row]]
    peer: str
    least: float
    where: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One measured row, with its peer, and the ratio it is meant to reach, if any."""

    row: Row
    peer: str
    least: float | None

    def plain(self) -> dict[str, Any]:
        """Return it as JSON values; times in seconds."""
        return {
            "name": self.row.name,
            "peer": self.peer,
            "ours_seconds": self.row.ours,
            "peer_seconds": self.row.peer,
            "ratio": self.row.ratio,
            "least": self.least,
        }

    def __str__(self) -> str:
        row, least = self.row, "" if self.least is None else f"  (at least {self.least:,.0f})"
        times = f"{_time(row.ours)} {_time(row.peer)} {row.ratio:>10,.1f} x"
        return f"{row.name:<60}{times}  {self.peer}{least}"


@dataclass(frozen=True, slots=True)
class Skipped(Result):
    """A benchmark that could not run here, and why."""

    name: str
    reason: str

    @override
    def plain(self) -> dict[str, Any]:
        return {"name": self.name, "skipped": self.reason}

    def __str__(self) -> str:
        return f"{self.name}: not measured. {self.reason}"


METHODS: dict[str, Method] = {
    "implied": Method(implied.run, "as many scikit-learn SVC fits", 15.0),
    "psvm": Method(psvm.run, "clarabel, interior point", 20.0, " 2000 examples"),
    "evidential": Method(evidential.run, "point by point, scipy; scaled from 50", 1000.0),
    "venn-abers": Method(venn_abers.run, "the venn-abers package", 30.0, "skewed"),
}


def run(
    tell: Tell = silent, methods: Mapping[str, Method] = METHODS
) -> Iterator[Comparison | Skipped]:
    """Measure the methods one after the other, and yield each result as soon as it is there.

    A peer that is not installed, or data that are not there, leave out one method and say so.

    Examples
    --------
    >>> def two():
    ...     return [Row("fit, small", 1.0, 2.0), Row("fit, large", 1.0, 9.0)]
    >>> found = list(run(methods={"fit": Method(two, "a peer", 5.0, "large")}))
    >>> [(result.row.ratio, result.least) for result in found]
    [(2.0, None), (9.0, 5.0)]
    """
    for name, method in methods.items():
        tell(f"{name}, against {method.peer}")
        try:
            rows = method.run()
        except BadConfiguration as error:
            yield Skipped(name, str(error))
            continue
        for row in rows:
            yield Comparison(row, method.peer, method.least if method.where in row.name else None)


def _time(seconds: float) -> str:
    return f"{seconds:>10,.2f} s " if seconds >= 1.0 else f"{1e3 * seconds:>10,.2f} ms"
