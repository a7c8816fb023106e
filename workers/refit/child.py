"""The refit process: how it is started, and how it answers messages.

A message is one byte (its kind), eight bytes (the length of the body), eight bytes (the seconds
that a reply took to compute) and the body; nothing is pickled. `python -m workers.refit.child` runs
in the child, `RefitPool` in the parent. The child imports only what refits need, because a starting
worker waits for it.
"""

import os
import struct
import subprocess
import sys
import time
from typing import IO

from workers.fast_imports import importing

CONFIG, LOAD, TASK, STATE = b"C", b"L", b"T", b"S"
SELECT, FORGET, WEIGH = b"U", b"X", b"W"
DONE, FAILED = b"D", b"F"

Message = tuple[bytes, bytes]

HEAD = struct.Struct(">cQd")
"""The head of each message: kind, length and seconds."""

WEIGHT = struct.Struct(">Q")
"""The reply to `WEIGH`: the bytes that a learner takes."""

_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)

Child = subprocess.Popen[bytes]


def begin() -> Child:
    """Start a process that answers messages until its pipe closes.

    It begins its imports at once, so a caller that will need it should start it early.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "workers.refit.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env=os.environ | _ONE_THREAD,
        # Ctrl-C in a terminal goes to the whole group; the child ends when its pipe closes.
        start_new_session=True,
    )


def end(child: Child) -> None:
    """Kill a process, and close its pipes."""
    child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        assert pipe is not None
        pipe.close()


def framed(kind: bytes, body: bytes, seconds: float = 0.0) -> bytes:
    """Return a message as it is sent through the pipe."""
    return HEAD.pack(kind, len(body), seconds) + body


def write_message(pipe: IO[bytes], kind: bytes, body: bytes = b"", seconds: float = 0.0) -> None:
    """Write one message."""
    pipe.write(framed(kind, body, seconds))
    pipe.flush()


def read_message(pipe: IO[bytes]) -> Message:
    """Return kind and body of the next message.

    Raises
    ------
    EOFError
        If the other end is gone.
    """
    kind, length, _ = HEAD.unpack(_exactly(pipe, HEAD.size))
    return kind, _exactly(pipe, length)


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) != size:
        raise EOFError("the pipe was closed")
    return data


def serve(source: IO[bytes], target: IO[bytes]) -> None:
    """Answer messages until the pipe is closed.

    Parameters
    ----------
    source, target : binary file
        The ends of the pipes.
    """
    with importing():
        from workers.refit.served_learner import ServedLearners
    learners = ServedLearners()
    while True:
        try:
            message = read_message(source)
            began = time.perf_counter()
            answer = learners.answer(*message)
            write_message(target, *answer, seconds=time.perf_counter() - began)
        except (EOFError, BrokenPipeError):
            return


def main() -> None:
    """Serve on standard input and output; other prints go to standard error."""
    target = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin.buffer, target)


if __name__ == "__main__":
    main()
