"""Results of a benchmark: tables, and figures beside their bounds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scripts.tables import printed

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """A table of what was measured, and the checks of its bounds; each row is an object of JSON."""

    rows: Sequence[Values]
    title: str | None = None
    columns: Mapping[str, str] | None = None  # headings of the values that people see; None: of all
    checks: Sequence[Values] = ()

    @property
    def holds(self) -> bool:
        """Whether every bound is kept."""
        return all(one["ok"] for one in self.checks)

    def plain(self) -> Iterator[Values]:
        """Yield the objects of JSON: the rows, then the checks."""
        yield from self.rows
        yield from self.checks

    def __str__(self) -> str:
        return "\n".join(self._tables())

    def _tables(self) -> Iterator[str]:
        columns = self.columns
        if columns is None and self.rows:
            columns = {name: name.replace("_", " ") for name in self.rows[0]}
        if columns:
            cells = [[row.get(name) for name in columns] for row in self.rows]
            yield printed(self.title, list(columns.values()), cells)
        if self.checks:
            cells = [_verdict(*one.items()) for one in self.checks]
            yield printed(None, ["goal", "measured", "", "bound", ""], cells)


def check(name: str, measured: float, bound: float, *, is_least: bool = False) -> Values:
    """Return a figure and its bound, the most or the least that may be measured."""
    side = "at least" if is_least else "at most"
    holds = measured >= bound if is_least else measured <= bound
    return {"name": name, "measured": float(measured), side: bound, "ok": bool(holds)}


def _verdict(name: Any, measured: Any, bound: Any, holds: Any) -> list[Any]:
    return [name[1], measured[1], *bound, "ok" if holds[1] else "BROKEN"]


def beside(name: str, ours: float, peer: float) -> Values:
    """Return ours and a peer's figure, of which more is better, and their ratio.

    >>> beside("worker / null worker", ours=30.0, peer=60.0)["ratio"]
    0.5
    """
    return {"name": name, "ours": ours, "peer": peer, "ratio": ours / peer}
