"""The graceful stop: a signal requests it, a grace period bounds it, a second signal forces it."""

import os
import select
import signal
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SECOND_SIGNAL = 130  # exit code after a second signal, which ends the graceful stop

ONE_REQUEST_SECONDS = 0.5
"""Time in which signals count as one: a supervisor may signal a process and its whole group."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stop:
    """A request to stop, which a signal handler or any thread may make.

    A signal handler may interrupt the waiting code at any instruction, so a lock could deadlock.
    Instead the request is a number, and a pipe wakes the waiting code. A byte written to
    `wakeup_fd` wakes it too; without a request, `wait` then waits on. A graceful stop may take
    `grace` seconds.
    """

    def __init__(self, grace: float = 10.0) -> None:
        self.grace = grace
        self._since = float("inf")
        self._bell, self.wakeup_fd = os.pipe()
        self._poll, self._waited_for = select.poll(), set[int]()
        # Not at exit: background threads may still wait on the pipe.
        weakref.finalize(self, _close, self._bell, self.wakeup_fd).atexit = False
        os.set_blocking(self._bell, False)
        os.set_blocking(self.wakeup_fd, False)

    @property
    def requested(self) -> bool:
        """Whether to stop at the next safe point."""
        return self._since < float("inf")

    @property
    def age(self) -> float:
        """Seconds since the request; negative if there was none."""
        return time.monotonic() - self._since

    @property
    def pressing(self) -> bool:
        """Whether half of the grace period is over; the rest is for closing down."""
        return self.age >= self.grace / 2

    @property
    def overdue(self) -> bool:
        """Whether the grace period is over."""
        return self.age >= self.grace

    def request(self) -> None:
        """Request the stop; a second request changes nothing. Safe in a signal handler."""
        if not self.requested:
            self._since = time.monotonic()
            self._ring()

    def wait(self, seconds: float) -> bool:
        """Sleep until the time is over or a stop is requested; return whether it was requested."""
        end = time.monotonic() + seconds
        while not self.requested and (left := end - time.monotonic()) > 0:
            if _is_readable(self._bell, left) and not self.requested:
                self._silence()
        return self.requested

    def wait_for(self, descriptors: Iterable[int], seconds: float, spin: float = 0.0) -> set[int]:
        """Wait for a readable descriptor, `wake`, a request, or the end of the time.

        Return the descriptors that are readable or broken. It polls for `spin` seconds before it
        sleeps. Only one thread may wait here.
        """
        wanted = {self._bell, *descriptors}
        for descriptor in self._waited_for - wanted:
            self._poll.unregister(descriptor)
        for descriptor in wanted - self._waited_for:
            self._poll.register(descriptor, select.POLLIN)
        self._waited_for = wanted
        events, until = self._poll.poll(0), time.monotonic() + min(spin, seconds)
        while not events and time.monotonic() < until:
            os.sched_yield()  # the process that is waited for may need this processor
            events = self._poll.poll(0)
        if not events and seconds > 0:
            events = self._poll.poll(seconds * 1000)
        ready = {descriptor for descriptor, _ in events}
        if self._bell in ready and not self.requested:
            self._silence()
        ready.discard(self._bell)
        return ready

    def wake(self) -> None:
        """End the present or the next `wait_for` of another thread."""
        self._ring()

    def _ring(self) -> None:
        with suppress(BlockingIOError):  # a full pipe is readable anyway
            os.write(self.wakeup_fd, b"\0")

    def _silence(self) -> None:
        """Read the bytes of signals that request no stop, or whose handler has not run yet."""
        with suppress(BlockingIOError):  # another thread has read them
            os.read(self._bell, select.PIPE_BUF)
        if self.requested:  # since the check of the caller: its byte may have been read here
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
    """Within the block SIGTERM and SIGINT request the stop; a second one exits with 130.

    Signals within `ONE_REQUEST_SECONDS` of the first count as the same request. If the grace
    period ends first, because a system call hangs, the process exits with 0: committed answers are
    safe whenever it ends. After a block that a stop ended, later signals are ignored, since they
    would only change the exit code; the grace period still holds.
    """

    def handle(_number: int, _frame: FrameType | None) -> None:
        if not stop.requested:
            stop.request()
            signal.signal(signal.SIGALRM, expire)
            signal.setitimer(signal.ITIMER_REAL, stop.grace)
        elif stop.age >= ONE_REQUEST_SECONDS:
            os._exit(SECOND_SIGNAL)

    def expire(_number: int, _frame: FrameType | None) -> None:
        os._exit(0)

    # Python runs a handler only between two bytecode instructions. The C-level handler writes to
    # the descriptor at once, so that a wait that has just begun also ends.
    previous_fd = signal.set_wakeup_fd(stop.wakeup_fd, warn_on_full_buffer=False)
    previous = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous_fd)
        if stop.requested:
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_IGN)
        else:
            for number, handler in previous.items():
                signal.signal(number, handler)
