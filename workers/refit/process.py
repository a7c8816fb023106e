"""Start a refit process, send messages to it, and read its replies.

A message is one byte (its kind), eight bytes (the length of the body), eight bytes (for a reply,
the seconds of computing) and the body; nothing is pickled.
"""

import fcntl
import os
import select
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import IO, NamedTuple

from workers.errors import Stopped
from workers.python_process import command, environment

CONFIG, LOAD, TASK, STATE, FIT = b"C", b"L", b"T", b"S", b"M"
SELECT, FORGET, WEIGH = b"U", b"X", b"W"
DONE, FAILED = b"D", b"F"
"""Kinds of messages: for the selected learner its settings, its state, a task, a request for its
state, a fit of trees; then the choice of a learner, its end, a request for its bytes; replies."""

Message = tuple[bytes, bytes]  # kind and body
HEAD = struct.Struct(">cQd")  # the header of a message: kind, length and seconds
WEIGHT = struct.Struct(">Q")  # the reply to `WEIGH`: the bytes of a learner

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

_CHECK_SECONDS = 0.05  # between two checks for a cancellation during a wait

_PIPE_BYTES = 1 << 20  # the largest size that Linux allows without privileges
IN_TIME_SECONDS = 0.0005  # a result that was waited for no longer is in time

LOW_PRIORITY_CREDIT = 4
"""Credit at which the priority becomes low: a result in time adds one, a late one takes two."""

Child = subprocess.Popen[bytes]


def start() -> Child:
    """Start a process that answers messages until its pipe closes."""
    return subprocess.Popen(
        command("-m", "workers.refit.child"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env=environment() | _ONE_THREAD,
        # Ctrl-C in a terminal goes to the whole group; the child ends when its pipe closes.
        start_new_session=True,
    )


def end(child: Child) -> None:
    """Kill a process and close its pipes."""
    child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        assert pipe is not None
        pipe.close()


def framed(kind: bytes, body: bytes, seconds: float = 0.0) -> bytes:
    """Return the bytes of a message."""
    return HEAD.pack(kind, len(body), seconds) + body


def write_message(pipe: IO[bytes], kind: bytes, body: bytes = b"", seconds: float = 0.0) -> None:
    """Write one message."""
    pipe.write(framed(kind, body, seconds))
    pipe.flush()


def read_message(pipe: IO[bytes]) -> Message:
    """Return the next message; raise EOFError if the other end is gone."""
    kind, length, _ = HEAD.unpack(_read_exactly(pipe, HEAD.size))
    return kind, _read_exactly(pipe, length)


def _read_exactly(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) != size:
        raise EOFError("the pipe was closed")
    return data


class ProcessPriority:
    """The scheduling priority of a refit process: low while no answer waits for its results.

    A refit takes milliseconds, an answer a fraction of one. Linux lets a process keep the processor
    for some 3 ms, and preempts only at clock ticks, so an answer would wait. The lower the weight
    of the refit process, the sooner others run. Outside of containers each session usually is an
    autogroup (man 7 sched), whose weight counts, and which /proc can change in both directions.
    Without autogroups nothing is changed.

    Under load, a process of low weight would hardly run. So the priority is low only while nearly
    all results are in time. Linux ignores more than about ten changes a second.
    """

    def __init__(self, pid: int) -> None:
        self._group = Path(f"/proc/{pid}/autogroup")
        self.is_low = False
        self._credit = 0

    def note(self, waited: float) -> None:
        """Choose the priority after a result that was waited for."""
        change = 1 if waited < IN_TIME_SECONDS else -2
        self._credit = min(max(self._credit + change, 0), LOW_PRIORITY_CREDIT)
        if self._credit == LOW_PRIORITY_CREDIT:
            self._set(True)
        elif self._credit < LOW_PRIORITY_CREDIT // 2:
            self._set(False)

    def restore(self) -> None:
        """Set the normal priority, since an answer waits."""
        self._credit = 0
        self._set(False)

    def _set(self, is_low: bool) -> None:
        if is_low == self.is_low:
            return
        with suppress(OSError):
            self._group.write_text("19" if is_low else "0")
            self.is_low = is_low


class ProcessFailed(Exception):
    """The process died, hung, or reported an error."""


class Reply(NamedTuple):
    """The reply of a process to a message."""

    body: bytes
    seconds: float  # of computing


class RefitProcess:
    """A refit process and its two pipes.

    `send` writes as much of a message as fits into the pipe; a thread writes the rest, because the
    process may have to write a reply before it continues to read. Killing the process ends both.
    """

    def __init__(self, child: Child) -> None:
        self._child = child
        assert child.stdin is not None
        assert child.stdout is not None
        self._stdin, self._stdout = child.stdin, child.stdout
        _widen(self._stdin, self._stdout)
        os.set_blocking(self._stdin.fileno(), False)
        self.pid = child.pid
        self.priority = ProcessPriority(child.pid)
        self._received = bytearray()
        self._unsent: SimpleQueue[memoryview | None] = SimpleQueue()
        self._handed_over, self._written = 0, 0  # messages, to and by the thread
        self._writer = threading.Thread(target=self._write, name="refit", daemon=True)
        self._writer.start()

    def send(self, message: Message) -> None:
        """Send a message after the earlier ones, without blocking."""
        left = memoryview(framed(*message))
        if self._written == self._handed_over:
            left = self._write_available(left)
        if left:
            self._handed_over += 1
            self._unsent.put(left)

    def receive(self, timeout: float, is_cancelled: Callable[[], bool]) -> Reply:
        """Return the next reply.

        Raises ProcessFailed if the process died, reported an error, or did not reply within
        `timeout` seconds. Raises Stopped if the wait is cancelled.
        """
        deadline = time.monotonic() + timeout
        kind, length, seconds = HEAD.unpack(self._receive(HEAD.size, deadline, is_cancelled))
        body = self._receive(length, deadline, is_cancelled)
        if kind == FAILED:
            raise ProcessFailed(body.decode(errors="replace"))
        return Reply(body, seconds)

    def close(self) -> None:
        """Kill the process."""
        self._child.kill()  # unblocks the writer
        self._unsent.put(None)
        self._writer.join()
        end(self._child)

    def _receive(self, size: int, deadline: float, is_cancelled: Callable[[], bool]) -> bytes:
        """Return the next bytes of the replies."""
        while len(self._received) < size:
            if _is_ready(self._stdout, select.POLLIN, _CHECK_SECONDS):
                more = os.read(self._stdout.fileno(), _PIPE_BYTES)
                if not more:
                    raise ProcessFailed("it died")
                self._received += more
                continue
            if is_cancelled():
                raise Stopped("stopped while a refit was awaited")
            if time.monotonic() >= deadline:
                raise ProcessFailed("no reply in time")
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    def _write_available(self, data: memoryview) -> memoryview:
        """Write as much as fits into the pipe; return the rest, empty if the pipe is broken."""
        try:
            return data[os.write(self._stdin.fileno(), data) :]
        except BlockingIOError:
            return data
        except OSError:  # the process is dead, which reading its reply will detect
            return data[:0]

    def _write(self) -> None:
        while (left := self._unsent.get()) is not None:
            while left:
                _is_ready(self._stdin, select.POLLOUT, None)
                left = self._write_available(left)
            self._written += 1


def _widen(*pipes: IO[bytes]) -> None:
    """Enlarge pipes, if the system can, so that most messages fit."""
    for pipe in pipes:
        if sys.platform == "linux":
            with suppress(OSError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _is_ready(stream: IO[bytes], event: int, seconds: float | None) -> bool:
    """Wait until a pipe can be read or written; return False after `seconds`."""
    watch = select.poll()
    watch.register(stream, event)
    return bool(watch.poll(None if seconds is None else seconds * 1000))
