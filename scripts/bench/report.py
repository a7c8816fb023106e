"""Results of a benchmark: figures against a peer's of the same run, or against a bound."""

from dataclasses import dataclass, field
from typing import Any, Literal

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured: `lines` and a line for each check, or as JSON `values` and the checks.

    A result without lines is for JSON alone, and one without values for people alone.
    """

    values: Values
    lines: list[str]
    checks: list[Values] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether every bound is kept."""
        return all(one["ok"] for one in self.checks)

    def plain(self) -> Values:
        """Return it as JSON values."""
        return self.values | ({"checks": self.checks} if self.checks else {})

    def __str__(self) -> str:
        return "\n".join([*self.lines, *map(_line, self.checks)])


def check(name: str, measured: float, bound: float, *, is_least: bool = False) -> Values:
    """Return a figure and its bound, the most or the least that may be measured."""
    side = "at least" if is_least else "at most"
    holds = measured >= bound if is_least else measured <= bound
    return {"name": name, "measured": measured, side: bound, "ok": holds}


def _line(one: Values) -> str:
    name, measured, bound, holds = one.values()
    side, verdict = list(one)[2], "ok" if holds else "BROKEN"
    return f"{name:<42}{measured:>17,.2f}  {side:<8} {bound:>14,.2f}  {verdict}"


def beside(
    name: str, ours: float, peer: float, note: str = "", unit: Literal["s", "/s"] = "s"
) -> Result:
    """Return one comparison, in seconds of a task or tasks a second; above 1 is in our favour.

    >>> beside("worker / null worker", ours=30.0, peer=60.0, unit="/s").values["ratio"]
    0.5
    """
    ratio = ours / peer if unit == "/s" else peer / ours
    if unit == "/s":
        line = f"{name:<58}{ours:>10,.0f}/s {peer:>10,.0f}/s {ratio:>8.2f}"
    else:
        line = f"{name:<44}{1e3 * ours:10.3f} ms {1e3 * peer:10.2f} ms {ratio:7.1f} x  {note}"
    values = {"name": name, "ours": ours, "peer": peer, "note": note, "unit": unit}
    return Result(values | {"ratio": ratio}, [line])
