"""The parts of a result: a printed figure beside a measured one, a statement tried, a table."""

from collections.abc import Mapping
from typing import Any

Entry = dict[str, Any]


def row(what: str, paper: Any, measured: Any, reason: str | None, **further: Any) -> Entry:
    """Return a printed figure beside the measured one.

    Parameters
    ----------
    what : str
    paper, measured : float, str or None
    reason : str or None
        Why they differ.
    **further
        Columns of their own, which stand before the reason; the same for all rows of a paper.

    Examples
    --------
    >>> row("errors", 2626, 2627, None, range=[2620, 2630])["range"]
    [2620, 2630]
    """
    return {"what": what, "paper": paper, "measured": measured, **further, "reason": reason}


def table(title: str, columns: list[str], rows: list[list[Any]]) -> Entry:
    """Return a table of what the paper has not."""
    return {"title": title, "columns": columns, "rows": rows}


def claim(text: str, source: str, cases: Mapping[str, bool]) -> Entry:
    """Return in how many settings a statement holds, and where it does not.

    Parameters
    ----------
    text, source : str
        The statement, and where the paper makes it.
    cases : mapping of str to bool
        Whether it holds, by setting.

    Examples
    --------
    >>> claim("it rains", "section 1", {"Monday": True, "Tuesday": False})["not_in"]
    ['Tuesday']
    """
    failed = [setting for setting, holds in cases.items() if not holds]
    return {
        "claim": text,
        "source": source,
        "holds": len(cases) - len(failed),
        "of": len(cases),
        "not_in": failed,
    }
