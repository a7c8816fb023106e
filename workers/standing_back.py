"""Letting a process stand back for others while nobody waits for it.

A refit computes for milliseconds, an answer takes a fraction of one. Linux leaves the processor to
whoever has it for some 3 ms, and looks only at each tick of its clock: an answer would wait for
both. The less weight a process has, the sooner others come first. Where every session is a group of
its own, as is usual outside containers (man 7 sched, "The autogroup feature"), the weights of the
groups count, and a group's is changed through /proc, in both directions. Elsewhere nothing is done.

Under load, the least weight would leave a process next to nothing. So when somebody waits for it
for long, it stands back no more, until it has caught up. Where Linux takes no change now (it takes
some ten a second), or there are no such groups, as in containers, everything stays as it is.
"""

from contextlib import suppress
from pathlib import Path

LONG, SHORT = 0.05, 0.005
"""Seconds that a process may be waited for before it should hurry, and to have caught up."""


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

    def stand_back(self) -> None:
        """Let others come first, from now on."""
        self._set(True)

    def hurry(self) -> None:
        """Let the process be like any other again."""
        self._set(False)

    def _set(self, stands_back: bool) -> None:
        if stands_back == self.is_on:
            return
        with suppress(OSError):
            self._group.write_text("19" if stands_back else "0")
            self.is_on = stands_back
