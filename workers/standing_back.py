"""Letting a process stand back for others while nobody waits for it.

A refit computes for milliseconds, an answer takes a fraction of one. Linux leaves the processor to
whoever has it for some 3 ms, and looks only at each tick of its clock: an answer would wait for
both. The less weight a process has, the sooner others come first. Where every session is a group of
its own, as is usual outside containers (man 7 sched, "The autogroup feature"), the weights of the
groups count, and a group's is changed through /proc, in both directions. Elsewhere nothing is done.

Under load, the least weight would leave a process next to nothing. So once somebody had to wait for
it, it does not stand back until it has caught up.
"""

from contextlib import suppress
from pathlib import Path

LONG, SHORT = 0.05, 0.005
"""Seconds of waiting: more than the first, and a process hurries; less than the second is fine."""


class StandingBack:
    """Whether a process, which leads a session of its own, stands back.

    Parameters
    ----------
    pid : int
    """

    def __init__(self, pid: int) -> None:
        self._group = Path(f"/proc/{pid}/autogroup")
        self._stands_back = False

    def note(self, waited: float) -> None:
        """Let the process stand back, or hurry, after somebody waited so many seconds for it."""
        if waited > LONG:
            self._set(False)
        elif waited < SHORT:
            self._set(True)

    def _set(self, stands_back: bool) -> None:
        if stands_back == self._stands_back:
            return
        with suppress(OSError):  # there are no such groups here, or it was changed a moment ago
            self._group.write_text("19" if stands_back else "0")
            self._stands_back = stands_back
