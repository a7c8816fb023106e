"""The tables that the scripts print."""

import re
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

_NUMBER = re.compile(r"[-+\d.,± ()]*")


WIDTH = 120  # columns of a table where the output is no terminal


def wide_console() -> Console:
    """Return a console for tables; where the output is no terminal, they are `WIDTH` wide."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


def table(title: str | None, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Return a table; columns of numbers are on the right."""
    # Text objects: rich would read a bracket in a cell as a style.
    made = Table(title=Text(title) if title else None, title_justify="left")
    for number, column in enumerate(columns):
        is_numbers = all(_is_number(row[number]) for row in rows)
        made.add_column(Text(column), justify="right" if is_numbers else "left")
    for row in rows:
        made.add_row(*(Text(shown(value)) for value in row))
    return made


def printed(title: str | None, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table as the text that a console prints, without its last line break."""
    console = wide_console()
    with console.capture() as captured:
        console.print(table(title, columns, rows))
    return captured.get().removesuffix("\n")


def _is_number(value: Any) -> bool:
    return not isinstance(value, str) or _NUMBER.fullmatch(value) is not None


def shown(value: Any) -> str:
    """Return a value as text: four digits, a range as "low to high", a dash for nothing."""
    if value is None or value != value:  # not a number
        return "-"
    if isinstance(value, list):
        return " to ".join(map(shown, value))
    if not isinstance(value, float):
        return str(value)
    if value.is_integer() or abs(value) >= 1000.0:
        return f"{value:,.0f}"
    if abs(value) < 1e-3:
        return f"{value:.1e}"
    return f"{value:.4f}" if abs(value) < 100.0 else f"{value:.1f}"
