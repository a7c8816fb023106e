"""A graceful stop: asked for once by a signal, given a grace period, forced by a second signal."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SECOND_SIGNAL = 130
"""Exit code when a second signal cuts the graceful stop short."""


class Stop:
    """Whether a stop was asked for, and since when.

    Parameters
    ----------
    grace : float
        Seconds a graceful stop may take.

    Examples
    --------
    >>> stop = Stop(grace=10.0)
    >>> stop.requested, stop.wait(0.0)
    (False, False)
    >>> stop.request()
    >>> stop.requested, stop.overdue
    (True, False)
    """

    def __init__(self, grace: float = 10.0) -> None:
        self.grace = grace
        self._event = threading.Event()
        self._since = float("inf")

    @property
    def requested(self) -> bool:
        """Whether the work should end at the next safe point."""
        return self._event.is_set()

    @property
    def pressing(self) -> bool:
        """Whether half of the grace period is over: the rest is for an orderly end."""
        return time.monotonic() >= self._since + self.grace / 2

    @property
    def overdue(self) -> bool:
        """Whether the grace period is over."""
        return time.monotonic() >= self._since + self.grace

    def request(self) -> None:
        """Ask for the stop; asking again changes nothing."""
        if not self.requested:
            self._since = time.monotonic()
            self._event.set()

    def wait(self, seconds: float) -> bool:
        """Sleep, or less if a stop is asked for; return whether it was."""
        return self._event.wait(seconds)


@contextmanager
def signals(stop: Stop) -> Iterator[None]:
    """Within the block SIGTERM and SIGINT ask for the stop; a second one exits with 130.

    What is committed stays committed whenever the process ends, so a stop that outlasts the
    grace period (a hung system call) is ended as well, with exit code 0.
    """

    def handle(_number: int, _frame: FrameType | None) -> None:
        if stop.requested:
            os._exit(SECOND_SIGNAL)
        stop.request()
        signal.setitimer(signal.ITIMER_REAL, stop.grace)

    def expire(_number: int, _frame: FrameType | None) -> None:
        os._exit(0)

    previous = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    previous[signal.SIGALRM] = signal.signal(signal.SIGALRM, expire)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in previous.items():
            signal.signal(number, handler)
