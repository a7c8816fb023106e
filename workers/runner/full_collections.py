"""Put off full garbage collections while feeds are taken over.

Taking a feed over makes a thousand objects that stay, and hardly any garbage. Python collects all
generations each time the objects have grown by a quarter. So a start with a thousand feeds would
look at all of them a dozen times, which took a quarter of its time.
"""

import gc
import time

LONGEST = 60.0
"""Seconds for which they are put off at a time, at most: a replay may take long."""

_NEVER = 1 << 30
"""Collections of the middle generation before a full one."""


class FullCollections:
    """Full collections, which can be put off; younger objects are collected as ever.

    Examples
    --------
    >>> collections, usual = FullCollections(), gc.get_threshold()
    >>> collections.put_off()
    >>> gc.get_threshold()[:2] == usual[:2], gc.get_threshold()[2] > 1_000_000
    (True, True)
    >>> collections.allow()
    >>> gc.get_threshold() == usual
    True
    """

    def __init__(self) -> None:
        self._usual: tuple[int, int, int] | None = None
        self._until = 0.0

    def put_off(self) -> None:
        """Have none from now on, until `allow`, or for `LONGEST` seconds of calls of this."""
        now = time.monotonic()
        if self._usual is None and now >= self._until:
            usual = gc.get_threshold()
            if usual[2] >= _NEVER:
                return  # others in this process have put them off, and will restore what is usual
            self._usual, self._until = usual, now + LONGEST
            gc.set_threshold(*self._usual[:2], _NEVER)
        elif self._usual is not None and now >= self._until:
            self._restore()
            self._until = now + LONGEST  # one is due, and then as usual for as long

    def allow(self) -> None:
        """Have them as usual again."""
        self._until = 0.0
        self._restore()

    def _restore(self) -> None:
        if self._usual is not None:
            gc.set_threshold(*self._usual)
            self._usual = None
