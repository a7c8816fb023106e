"""The parts of a result, and how they are printed: figures, statements that were tried, tables."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from scripts import tables

Result = dict[str, Any]


def row(what: str, paper: Any, measured: Any, reason: str | None, **further: Any) -> Result:
    """Compare a printed figure with the measured one."""
    return {"what": what, "paper": paper, "measured": measured, **further, "reason": reason}


def table(title: str, columns: list[str], rows: list[list[Any]]) -> Result:
    """Return a table of what the paper has not."""
    return {"title": title, "columns": columns, "rows": rows}


def claim(text: str, source: str, cases: Mapping[str, bool]) -> Result:
    """Return in how many settings a statement holds, and where it does not.

    >>> claim("it rains", "section 1", {"Monday": True, "Tuesday": False})["not_in"]
    ['Tuesday']
    """
    failed = [setting for setting, holds in cases.items() if not holds]
    holds = len(cases) - len(failed)
    return {"claim": text, "source": source, "holds": holds, "of": len(cases), "not_in": failed}


def report(result: Result) -> Iterator[Table | Text]:
    """Yield what to print of a result: its title, its tables, its claims and its notes."""
    yield Text(f"{result['paper']}{', a quick run' if result.get('quick') else ''}", style="bold")
    if result["rows"]:
        further = [*result["rows"][0]][3:-1]
        columns = ["", "paper", "measured", *(key.replace("_", " ") for key in further)]
        rows = [list(one.values()) for one in result["rows"]]
        yield tables.table(None, [*columns, "why they differ"], rows)
    tried = [one for one in result["claims"] if one["of"]]
    if tried:
        yield tables.table(
            "What the paper says, and what it leaves open",
            ["statement", "where", "holds in", "not in"],
            [
                [c["claim"], c["source"], f"{c['holds']} of {c['of']}", _listed(c["not_in"])]
                for c in tried
            ],
        )
    for one in result.get("tables", []):
        yield tables.table(one["title"], one["columns"], one["rows"])
    for note in result["notes"]:
        yield Text(f"  {note}", style="dim")


def _listed(settings: list[str], most: int = 4) -> str:
    more = f" and {len(settings) - most} more" if len(settings) > most else ""
    return ", ".join(settings[:most]) + more
