"""A cell of a CSV file that a spreadsheet opens as what it is: text, and never a formula."""

import re
from typing import Any

from workers.printable import printable

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def cell(value: Any) -> Any:
    r"""Return what stands in a cell: numbers as they are, text without what a program would obey.

    Text that begins like a formula and is no number gets an apostrophe in front, as OWASP advises
    against CSV injection. A character that is not printable is written as an escape, so that a row
    is a line.

    Examples
    --------
    >>> [cell(value) for value in (-0.5, "-1", "+1", None, True, "spam")]
    [-0.5, '-1', '+1', None, 1, 'spam']
    >>> print(cell("=HYPERLINK(1)"), cell("-1+1"), cell("\t=1"), cell("a\nb"))
    '=HYPERLINK(1) '-1+1 '\t=1 a\nb
    """
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str):
        return value if value is None or isinstance(value, int | float) else cell(str(value))
    is_formula = value.startswith(_FORMULA) and not _NUMBER.fullmatch(value)
    return f"'{printable(value)}" if is_formula else printable(value)


def raw_cell(value: Any) -> Any:
    """Return a value as it is; a truth value is 1 or 0 here as well."""
    return int(value) if isinstance(value, bool) else value
