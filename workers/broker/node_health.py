"""Health of one Redis server, so that commands to others need not wait for it."""

from enum import IntEnum


class NodeHealth(IntEnum):
    """The health of a server a moment ago.

    Examples
    --------
    >>> NodeHealth.SILENT > NodeHealth.NO_REPLICAS > NodeHealth.GOOD
    True
    """

    GOOD = 0
    NO_REPLICAS = 1
    """Too few replicas acknowledge what it writes."""
    SILENT = 2
    """It does not answer."""
