"""Letting a process stand back for others while nobody waits for it.

A refit computes for milliseconds, an answer takes a fraction of one. Linux leaves the processor to
whoever has it for some 3 ms, and looks only at each tick of its clock: an answer would wait for
both. The less weight a process has, the sooner others come first. Where every session is a group of
its own, as is usual outside containers (man 7 sched, "The autogroup feature"), the weights of the
groups count, and a group's is changed through /proc, in both directions. Elsewhere nothing is done.

Under load, the least weight would leave a process next to nothing. So it stands back only while it
is in time nearly always, as where one example comes after the other; where a feed waits for it
again and again it is like any other. Where Linux takes no change now (it takes some ten a second),
or there are no such groups, as in containers, everything stays as it is.
"""

from contextlib import suppress
from pathlib import Path

IN_TIME = 0.0005
"""Seconds that somebody may wait for a result that is in time."""

CREDIT = 4
"""Where a process stands back: a result in time earns one of it, a late one costs two."""


class StandingBack:
    """Whether a process, which leads a session of its own, stands back.

    Parameters
    ----------
    pid : int

    Attributes
    ----------
    is_on : bool
        Whether it stands back now.
    """

    def __init__(self, pid: int) -> None:
        self._group = Path(f"/proc/{pid}/autogroup")
        self.is_on = False
        self._credit = 0

    def note(self, waited: float) -> None:
        """Let the process stand back, or hurry, by the seconds that a result was waited for."""
        change = 1 if waited < IN_TIME else -2
        self._credit = min(max(self._credit + change, 0), CREDIT)
        if self._credit == CREDIT:
            self._set(True)
        elif self._credit < CREDIT // 2:
            self._set(False)

    def hurry(self) -> None:
        """Let the process be like any other again: somebody waits for it."""
        self._credit = 0
        self._set(False)

    def _set(self, stands_back: bool) -> None:
        if stands_back == self.is_on:
            return
        with suppress(OSError):
            self._group.write_text("19" if stands_back else "0")
            self.is_on = stands_back
