"""Text from Redis in HTML: labels, ids and names may be anything, and stay text."""

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any

from workers.printable import printable

MOST = 60
"""Characters of a text that are shown."""

HELP = "help"
"""Where the page shows docs/monitoring.md."""


def safe(value: Any, most: int = MOST) -> str:
    """Return a value as text of an HTML page, on one line and not too long.

    Examples
    --------
    >>> safe("<script>alert(1)</script>")
    '&lt;script&gt;alert(1)&lt;/script&gt;'
    >>> safe("abcdef", most=4), safe(None)
    ('abc…', '–')
    """
    if value is None:
        return "–"
    text = printable(str(value)[: 4 * most])
    return html.escape(text if len(text) <= most else text[: most - 1] + "…")


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as HTML.

    Parameters
    ----------
    columns : sequence of str
        Headings. A column that begins with "<" is aligned left, and its cells are shortened where
        they are too wide; the others have numbers.
    rows : iterable of sequence of str
        Cells, as HTML; the last one of a short row is as wide as the columns that are left.

    Examples
    --------
    >>> table(["<part", "z"], [["a", "0.1"]]).count('class="left"')
    1
    """
    heads = "".join(
        f'<th class="left">{name[1:]}</th>' if name[:1] == "<" else f"<th>{name}</th>"
        for name in columns
    )
    body = "".join(f"<tr>{_cells(columns, row)}</tr>" for row in rows)
    return f'<div class="scroll" tabindex="0"><table><tr>{heads}</tr>{body}</table></div>'


def _cells(columns: Sequence[str], row: Sequence[str]) -> str:
    wide = len(columns) - len(row) + 1
    kinds = [' class="text"' if name[:1] == "<" else "" for name in columns]
    if wide > 1:
        kinds[len(row) - 1] = f' class="left soft" colspan="{wide}"'
    return "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, row, strict=False))


def probability(value: float) -> str:
    """Return a probability as text.

    Examples
    --------
    >>> probability(0.98765), probability(float("nan"))
    ('0.988', '–')
    """
    return "–" if math.isnan(value) else f"{value:.3f}"


def whole(value: float) -> str:
    """Return a count as text.

    Examples
    --------
    >>> whole(12345)
    '12,345'
    """
    return "–" if math.isnan(value) else f"{value:,.0f}"


def seconds(value: float) -> str:
    """Return a duration as text.

    Examples
    --------
    >>> seconds(0.25), seconds(75), seconds(7300), seconds(200_000)
    ('0.2 s', '75 s', '122 min', '56 h')
    """
    if value < 10:
        return f"{value:.1f} s"
    if value < 120:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 7_400 else f"{value / 3600:.0f} h"


def rate(value: float) -> str:
    """Return a number of examples a second as text.

    Examples
    --------
    >>> rate(0.0), rate(2.345), rate(1234.5)
    ('0', '2.3', '1,234')
    """
    if value <= 0:
        return "0"
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"
