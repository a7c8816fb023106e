"""What one of several servers lacks, so that whoever serves others as well need not wait for it."""

from enum import IntEnum


class Lack(IntEnum):
    """What a server lacked a moment ago.

    Examples
    --------
    >>> Lack.REPLIES > Lack.REPLICAS > Lack.NOTHING
    True
    """

    NOTHING = 0
    REPLICAS = 1
    """Too few replicas acknowledge what it writes."""
    REPLIES = 2
    """It does not answer."""
