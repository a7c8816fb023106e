"""Work that may have to wait for a refit, in steps: it pauses before each wait."""

from collections.abc import Generator
from typing import TypeVar

Result = TypeVar("Result")

Waits = Generator[None, None, Result]
"""Work that pauses where it would wait for the result of a refit; going on waits for it."""


def finished(work: Waits[Result]) -> Result:
    """Do all of some work, with its waits, and return its result.

    Examples
    --------
    >>> def work():
    ...     yield
    ...     return "done"
    >>> finished(work())
    'done'
    """
    while True:
        try:
            next(work)
        except StopIteration as ended:
            result: Result = ended.value
            return result
