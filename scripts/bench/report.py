"""Lines of a benchmark: ours beside a peer's, measured in the same run, or beside a bound."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from typing_extensions import override

Tell = Callable[[str], None]
"""Is told what a benchmark does next."""


def silent(_: str) -> None:
    """Report nothing."""


class Result(Protocol):
    """What every benchmark returns or yields, one after the other; its text is for people."""

    def plain(self) -> dict[str, Any]:
        """Return it as JSON values."""


@dataclass(frozen=True, slots=True)
class Row(Result):
    """One comparison; a ratio above 1 is in our favour.

    Attributes
    ----------
    name : str
        The task.
    ours, peer : float
        Seconds of one task, or tasks a second.
    note : str
        What else to say of it.
    unit : {"s", "/s", "B"}
        Seconds or bytes, where less is better, or a rate, where more is.

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
    unit: Literal["s", "/s", "B"] = "s"

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
        if self.unit == "B":
            sizes = f"{self.ours:>10,.0f} B  {self.peer:>10,.0f} B  {self.ratio:>8.2f}"
            return f"{self.name:<58}{sizes}"
        times = f"{1e3 * self.ours:10.3f} ms {1e3 * self.peer:10.2f} ms {self.ratio:7.1f} x"
        return f"{self.name:<44}{times}  {self.note}"


@dataclass(frozen=True, slots=True)
class Check(Result):
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


class Checked:
    """A run with figures that have bounds.

    A subclass says what else was measured: `lines` for people, `values` for JSON.
    """

    __slots__ = ()
    checks: list[Check]

    def lines(self) -> Iterator[str]:
        """Yield what was measured."""
        raise NotImplementedError

    def values(self) -> dict[str, Any]:
        """Return what was measured as JSON values."""
        raise NotImplementedError

    @property
    def holds(self) -> bool:
        """Whether every bound is kept."""
        return all(check.holds for check in self.checks)

    def plain(self) -> dict[str, Any]:
        """Return values and checks as JSON values."""
        return self.values() | {"checks": [check.plain() for check in self.checks]}

    def __str__(self) -> str:
        return "\n".join([*self.lines(), *map(str, self.checks)])
