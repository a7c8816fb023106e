"""A graceful stop: asked for once by a signal, given a grace period, forced by a second signal."""

import os
import select
import signal
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SECOND_SIGNAL = 130
"""Exit code when a second signal cuts the graceful stop short."""

ONE_REQUEST = 0.5
"""Seconds in which signals count as one: a supervisor may signal a process and its whole group."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stop:
    """Whether a stop was asked for, and since when.

    A signal handler may ask for it at any instruction of the code that waits. So there is no lock
    here, which the interrupted code might hold: only a number, and a pipe that wakes who waits.

    Parameters
    ----------
    grace : float
        Seconds a graceful stop may take.

    Attributes
    ----------
    wakeup_fd : int
        Any byte written here ends a wait early; it goes on where no stop was asked for.

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
        self._since = float("inf")
        self._bell, self.wakeup_fd = os.pipe()
        # Not at exit: threads of the background may still wait then.
        weakref.finalize(self, _close, self._bell, self.wakeup_fd).atexit = False
        os.set_blocking(self._bell, False)
        os.set_blocking(self.wakeup_fd, False)

    @property
    def requested(self) -> bool:
        """Whether the work should end at the next safe point."""
        return self._since < float("inf")

    @property
    def age(self) -> float:
        """Seconds since the stop was asked for; below zero where it was not."""
        return time.monotonic() - self._since

    @property
    def pressing(self) -> bool:
        """Whether half of the grace period is over: the rest is for an orderly end."""
        return self.age >= self.grace / 2

    @property
    def overdue(self) -> bool:
        """Whether the grace period is over."""
        return self.age >= self.grace

    def request(self) -> None:
        """Ask for the stop; asking again changes nothing. Safe in a signal handler."""
        if not self.requested:
            self._since = time.monotonic()
            self._ring()

    def wait(self, seconds: float) -> bool:
        """Sleep, or less if a stop is asked for; return whether it was."""
        end = time.monotonic() + seconds
        while not self.requested and (left := end - time.monotonic()) > 0:
            if _is_readable(self._bell, left) and not self.requested:
                self._silence()
        return self.requested

    def _ring(self) -> None:
        with suppress(BlockingIOError):  # a full pipe wakes as well
            os.write(self.wakeup_fd, b"\0")

    def _silence(self) -> None:
        """Read the bytes of signals that ask for no stop, or whose handler is still to run."""
        with suppress(BlockingIOError):  # another thread was faster
            os.read(self._bell, select.PIPE_BUF)
        if self.requested:  # since then: its byte may be among them
            self._ring()


def _is_readable(descriptor: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


@contextmanager
def signals(stop: Stop) -> Iterator[None]:
    """Within the block SIGTERM and SIGINT ask for the stop; a second one exits with 130.

    Signals within `ONE_REQUEST` seconds of the first are part of it. What is committed stays
    committed whenever the process ends, so a stop that outlasts the grace period (a hung system
    call) is ended as well, with exit code 0. After a block that ended because of the stop the
    process ends: a late signal, which would only change its exit code, is ignored, and the grace
    period goes on.
    """

    def handle(_number: int, _frame: FrameType | None) -> None:
        if not stop.requested:
            stop.request()
            signal.signal(signal.SIGALRM, expire)
            signal.setitimer(signal.ITIMER_REAL, stop.grace)
        elif stop.age >= ONE_REQUEST:
            os._exit(SECOND_SIGNAL)

    def expire(_number: int, _frame: FrameType | None) -> None:
        os._exit(0)

    # A handler runs between two instructions of Python. The system writes to the descriptor at
    # once, so that a wait which just begins ends as well.
    woken = signal.set_wakeup_fd(stop.wakeup_fd, warn_on_full_buffer=False)
    previous = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        signal.set_wakeup_fd(woken)
        if stop.requested:
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_IGN)
        else:
            for number, handler in previous.items():
                signal.signal(number, handler)
