"""A result of a reproduction as tables for a person."""

from collections.abc import Iterator
from typing import Any

from rich.table import Table
from rich.text import Text

Result = dict[str, Any]

HEADINGS = {
    "what": "",
    "paper": "paper",
    "measured": "measured",
    "reason": "why they differ",
    "range": "range",
    "standard_error": "standard error",
}


def report(result: Result) -> Iterator[Table | Text]:
    """Yield what to print of a result: its title, its tables, its claims and its notes.

    Examples
    --------
    >>> row = {"what": "errors", "paper": 2626, "measured": 2627, "reason": None}
    >>> title, table = report({"paper": "Platt (1999)", "rows": [row], "claims": [], "notes": []})
    >>> [column.header.plain for column in table.columns]
    ['', 'paper', 'measured', 'why they differ']
    """
    mode = ", a quick run" if result.get("quick") else ""
    yield Text(f"{result['paper']}{mode}", style="bold")
    if result["rows"]:
        yield _comparison(result["rows"])
    claims = [claim for claim in result["claims"] if claim["of"]]
    if claims:
        yield _claims(claims)
    for table in result.get("tables", []):
        yield _table(table["title"], table["columns"], table["rows"])
    for note in result["notes"]:
        yield Text(f"  {note}", style="dim")


def shown(value: Any) -> str:
    """Return a value as text: four digits, a range as "low to high", a dash for nothing.

    Examples
    --------
    >>> shown(2.1e-88), shown(0.12345), shown(2626), shown([1.5, 2.0]), shown(None)
    ('2.1e-88', '0.1235', '2626', '1.5 to 2', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, list):
        return " to ".join(map(shown, value))
    if not isinstance(value, float):
        return str(value)
    if value != 0.0 and abs(value) < 1e-3:
        return f"{value:.1e}"
    return f"{value:.4f}".rstrip("0").rstrip(".") if abs(value) < 100 else f"{value:.1f}"


def _comparison(rows: list[Result]) -> Table:
    """Set paper beside measured; whatever else the rows hold stands before the reason."""
    further = [k for k in rows[0] if k not in ("what", "paper", "measured", "reason")]
    keys = ["what", "paper", "measured", *further, "reason"]
    columns = [HEADINGS.get(key, key.replace("_", " ")) for key in keys]
    return _table(None, columns, [[row[key] for key in keys] for row in rows])


def _claims(claims: list[Result]) -> Table:
    columns = ["statement", "where", "holds in", "not in"]
    rows = [
        [c["claim"], c["source"], f"{c['holds']} of {c['of']}", _listed(c["not_in"])]
        for c in claims
    ]
    return _table("What the paper says, and what it leaves open", columns, rows)


def _listed(settings: list[str], most: int = 4) -> str:
    more = f" and {len(settings) - most} more" if len(settings) > most else ""
    return ", ".join(settings[:most]) + more


def _table(title: str | None, columns: list[str], rows: list[list[Any]]) -> Table:
    # Text objects: rich would read a bracket in a cell as a style.
    table = Table(title=Text(title) if title else None, title_justify="left")
    for number, column in enumerate(columns):
        numbers = all(isinstance(row[number], int | float | None) for row in rows)
        table.add_column(Text(column), justify="right" if numbers else "left")
    for row in rows:
        table.add_row(*(Text(shown(value)) for value in row))
    return table
