"""A failure that may pass: what it is, and since when."""

import time
from typing import NamedTuple


class Trouble(NamedTuple):
    """Something that does not work now.

    Attributes
    ----------
    reason : str
        One line, for a person.
    since : float
        Seconds by `time.monotonic`, of the first failure in a row.
    """

    reason: str
    since: float


def still(before: Trouble | None, reason: str) -> Trouble:
    """Return the trouble with a new reason; it began when the one before it did.

    Examples
    --------
    >>> first = still(None, "refused")
    >>> still(first, "no reply") == ("no reply", first.since)
    True
    """
    return Trouble(reason, time.monotonic() if before is None else before.since)
