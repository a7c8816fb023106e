"""Lines of a benchmark: ours beside a peer's, measured in the same run, or beside a bound."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from typing_extensions import override

Tell = Callable[[str], None]
"""Is told what a benchmark does next."""


def silent(_: str) -> None:
    """Report nothing."""


class BenchResult(Protocol):
    """What every benchmark returns or yields, one after the other; its text is for people."""

    def plain(self) -> dict[str, Any]:
        """Return it as JSON values."""


@dataclass(frozen=True, slots=True)
class Row(BenchResult):
    """One comparison; a ratio above 1 is in our favour.

    Attributes
    ----------
    name : str
        The task.
    ours, peer : float
        Seconds of one task, or tasks a second.
    note : str
        What else to say of it.
    unit : {"s", "/s"}
        Seconds, where less is better, or a rate, where more is.

    Examples
    --------
    >>> Row("refit", ours=0.5, peer=2.0).ratio
    4.0
    >>> Row("worker / null worker", ours=30.0, peer=60.0, unit="/s").ratio
    0.5
    """

    name: str
    ours: float
    peer: float
    note: str = ""
    unit: Literal["s", "/s"] = "s"

    @override
    def plain(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio}

    @property
    def ratio(self) -> float:
        """How many times better than the peer."""
        return self.ours / self.peer if self.unit == "/s" else self.peer / self.ours

    def __str__(self) -> str:
        if self.unit == "/s":
            rates = f"{self.ours:>10,.0f}/s {self.peer:>10,.0f}/s {self.ratio:>8.2f}"
            return f"{self.name:<58}{rates}"
        times = f"{1e3 * self.ours:10.3f} ms {1e3 * self.peer:10.2f} ms {self.ratio:7.1f} x"
        return f"{self.name:<44}{times}  {self.note}"


@dataclass(frozen=True, slots=True)
class Check(BenchResult):
    """One figure and its bound.

    Attributes
    ----------
    name : str
    measured, bound : float
    is_least : bool
        The bound is the least that may be measured; else the most.

    Examples
    --------
    >>> print(Check("entries of in", 5100.0, 5000.0))
    entries of in                                      5,100.00  at most        5,000.00  BROKEN
    """

    name: str
    measured: float
    bound: float
    is_least: bool = False

    @override
    def plain(self) -> dict[str, Any]:
        side = "at least" if self.is_least else "at most"
        return {"name": self.name, "measured": self.measured, side: self.bound, "ok": self.holds}

    @property
    def holds(self) -> bool:
        """Whether the bound is kept."""
        return self.measured >= self.bound if self.is_least else self.measured <= self.bound

    def __str__(self) -> str:
        side = "at least" if self.is_least else "at most "
        verdict = "ok" if self.holds else "BROKEN"
        return f"{self.name:<42}{self.measured:>17,.2f}  {side} {self.bound:>14,.2f}  {verdict}"


@dataclass(frozen=True, slots=True)
class Checked(BenchResult):
    """What a run measured, and those of its figures that have bounds.

    Attributes
    ----------
    values : dict
        What was measured, as JSON values.
    checks : list of Check
    lines : list of str
        What was measured, for people.

    Examples
    --------
    >>> print(Checked({"n": 2}, [Check("rate", 1.0, 0.95, is_least=True)], ["2 examples"]))
    2 examples
    rate                                                   1.00  at least           0.95  ok
    """

    values: dict[str, Any]
    checks: list[Check]
    lines: list[str]

    @property
    def holds(self) -> bool:
        """Whether every bound is kept."""
        return all(check.holds for check in self.checks)

    @override
    def plain(self) -> dict[str, Any]:
        return self.values | {"checks": [check.plain() for check in self.checks]}

    def __str__(self) -> str:
        return "\n".join([*self.lines, *map(str, self.checks)])
