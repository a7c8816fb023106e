"""A statement of a paper, tried on measurements."""

from collections.abc import Mapping
from typing import Any


def claim(text: str, source: str, cases: Mapping[str, bool]) -> dict[str, Any]:
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
