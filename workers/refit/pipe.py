"""The parent's side of the pipes to the refit process."""

import fcntl
import os
import select
import sys
import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, Protocol

from workers.errors import Stopped
from workers.refit import child as refit_child
from workers.refit.child import Child
from workers.refit.messages import FAILED, HEAD, Message, framed
from workers.refit.priority import ProcessPriority

# Seconds between two looks at the stop, and at whether to hurry, while a reply is awaited.
_LOOK = 0.05

# The largest size that Linux allows without privileges.
_PIPE_BYTES = 1 << 20


class Pressing(Protocol):
    """What ends a wait: a stop, or anything else that says when."""

    @property
    def pressing(self) -> bool:
        """Whether to wait no more."""


class ChildFailed(Exception):
    """The child died, hung, or reported an error."""


class ChildPipe:
    """A refit process, and the two pipes to it.

    A message is written at once as far as the pipe has room. A thread writes the rest, because the
    child may have to write a reply before it reads on. Killing the process ends both.

    Parameters
    ----------
    process : Popen

    Attributes
    ----------
    seconds : float
        That the process computed for its last reply.
    """

    def __init__(self, process: Child) -> None:
        self._process = process
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        _widen(self._stdin, self._stdout)
        os.set_blocking(self._stdin.fileno(), False)
        self._priority = ProcessPriority(self._process.pid)
        self._waited = self.seconds = 0.0
        self._received = bytearray()
        self._unsent: SimpleQueue[memoryview | None] = SimpleQueue()
        self._handed_over, self._written = 0, 0
        self._writer = threading.Thread(target=self._write, name="refit", daemon=True)
        self._writer.start()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def has_low_priority(self) -> bool:
        """Whether other processes run first."""
        return self._priority.is_low

    def send(self, message: Message) -> None:
        """Send a message after the earlier ones; do not wait until it is written."""
        left = memoryview(framed(*message))
        if self._written == self._handed_over:
            left = self._written_at_once(left)
        if left:
            self._handed_over += 1
            self._unsent.put(left)

    def reply(self, patience: float, stop: Pressing, *, is_urgent: bool = True) -> bytes:
        """Return the body of the next reply; where it is urgent, a slow process hurries.

        Raises
        ------
        ChildFailed
            If the child died, reported an error, or does not reply.
        Stopped
            If the stop is pressing.
        """
        began = time.monotonic()
        deadline = began + patience
        kind, length, seconds = HEAD.unpack(self._receive(HEAD.size, deadline, stop, is_urgent))
        self._waited = time.monotonic() - began
        body = self._receive(length, deadline, stop, is_urgent)
        if kind == FAILED:
            raise ChildFailed(body.decode(errors="replace"))
        self.seconds = seconds
        return body

    def note_wait(self, waited: float | None = None) -> None:
        """Choose the priority of the process by the seconds that a reply was waited for.

        By default those of the last reply.
        """
        self._priority.note(self._waited if waited is None else waited)

    def hurry(self) -> None:
        """Give the process its normal priority."""
        self._priority.restore()

    def close(self) -> None:
        """Kill the process."""
        self._process.kill()  # a waiting writer then ends
        self._unsent.put(None)
        self._writer.join()
        refit_child.end(self._process)

    def _receive(self, size: int, deadline: float, stop: Pressing, is_urgent: bool) -> bytes:
        """Return the next bytes of the replies."""
        while len(self._received) < size:
            if _is_ready(self._stdout, select.POLLIN, _LOOK):
                more = os.read(self._stdout.fileno(), _PIPE_BYTES)
                if not more:
                    raise ChildFailed("it died")
                self._received += more
                continue
            if is_urgent:
                self.hurry()
            if stop.pressing:
                raise Stopped("stopped while a refit was awaited")
            if time.monotonic() >= deadline:
                raise ChildFailed("no reply in time")
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    def _written_at_once(self, data: memoryview) -> memoryview:
        """Write as much as the pipe has room for; return the rest, empty if the pipe is broken."""
        try:
            return data[os.write(self._stdin.fileno(), data) :]
        except BlockingIOError:
            return data
        except OSError:  # the process is gone, which reading its reply will show
            return data[:0]

    def _write(self) -> None:
        while (left := self._unsent.get()) is not None:
            while left:
                _is_ready(self._stdin, select.POLLOUT, None)
                left = self._written_at_once(left)
            self._written += 1


def _widen(*pipes: IO[bytes]) -> None:
    """Enlarge pipes to hold a whole message, if the system can, so that writers need not wait."""
    for pipe in pipes:
        if sys.platform == "linux":
            with suppress(OSError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _is_ready(stream: IO[bytes], event: int, seconds: float | None) -> bool:
    """Return whether a pipe can be read or written within some seconds; None waits for ever.

    Unlike `select.select`, `poll` takes descriptors above 1023.
    """
    watch = select.poll()
    watch.register(stream, event)
    return bool(watch.poll(None if seconds is None else seconds * 1000))
