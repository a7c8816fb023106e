"""The scheduling priority of the refit process: low while no answer waits for its results.

A refit computes for milliseconds, an answer takes a fraction of one. Linux lets a process keep the
processor for some 3 ms, and decides only at each tick of its clock: an answer would wait for both.
The lower the weight of a process, the sooner others run. Where each session is a group of its own,
as is usual outside containers (man 7 sched, "The autogroup feature"), the weights of the groups
count. The weight of a group is changed through /proc, in both directions.

Under load, a process of the least weight would hardly run. So the priority is low only while nearly
all results come in time, as when one example follows the other. It is normal where a feed waits for
results again and again. Linux takes about ten changes a second; further ones have no effect. In
containers, which have no such groups, nothing is changed.
"""

from contextlib import suppress
from pathlib import Path

IN_TIME = 0.0005
"""Seconds of waiting for a result that count as in time."""

CREDIT = 4
"""Credit at which the priority becomes low: a result in time adds one, a late one takes two."""


class ProcessPriority:
    """The priority of a process that leads a session of its own.

    Parameters
    ----------
    pid : int

    Attributes
    ----------
    is_low : bool
        Whether it is low now.
    """

    def __init__(self, pid: int) -> None:
        self._group = Path(f"/proc/{pid}/autogroup")
        self.is_low = False
        self._credit = 0

    def note(self, waited: float) -> None:
        """Choose the priority, given the seconds that a result was waited for."""
        change = 1 if waited < IN_TIME else -2
        self._credit = min(max(self._credit + change, 0), CREDIT)
        if self._credit == CREDIT:
            self._set(True)
        elif self._credit < CREDIT // 2:
            self._set(False)

    def restore(self) -> None:
        """Make the priority normal: an answer waits for the process."""
        self._credit = 0
        self._set(False)

    def _set(self, is_low: bool) -> None:
        if is_low == self.is_low:
            return
        with suppress(OSError):
            self._group.write_text("19" if is_low else "0")
            self.is_low = is_low
